//! Types of subagent.

use contracts::wire::subagent as wire;
use domain::definition::{Origin, Resolved, TokenBudget};

/// A type of subagent, as it was resolved.
pub(crate) fn to_wire(resolved: Resolved, available: bool) -> wire::Subagent {
    let Resolved { origin, definition, token_budget } = resolved;
    wire::Subagent {
        name: definition.name.as_str().to_owned(),
        description: definition.description,
        source: source(origin),
        available,
        model: definition.model.into(),
        max_turns: definition.max_turns,
        timeout_seconds: definition.timeout_seconds,
        tools: definition.tools,
        disallowed_tools: definition.disallowed_tools,
        skills: definition.skills,
        token_budget: budget(token_budget),
        system_prompt: definition.system_prompt,
    }
}

pub(super) const fn source(origin: Origin) -> wire::SubagentSource {
    match origin {
        Origin::BuiltIn => wire::SubagentSource::BuiltIn,
        Origin::Configured => wire::SubagentSource::Configured,
        Origin::Managed => wire::SubagentSource::Managed,
    }
}

const fn budget(budget: TokenBudget) -> wire::SubagentBudget {
    wire::SubagentBudget {
        enabled: budget.enabled,
        max_tokens: budget.max_tokens,
        max_input_tokens: budget.max_input_tokens,
        max_output_tokens: budget.max_output_tokens,
        warn_threshold: budget.warn_threshold,
        hard_stop_threshold: budget.hard_stop_threshold,
    }
}
