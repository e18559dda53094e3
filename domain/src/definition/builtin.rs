//! The built-in kinds of subagent (facts §2).

use super::{Definition, ModelChoice, denied_by_default};
use crate::{ids::SubagentType, prompt};

/// The name of the built-in subagent for any work.
pub const GENERAL_PURPOSE: &str = "general-purpose";
/// The name of the built-in subagent for shell commands.
pub const BASH: &str = "bash";

/// The wall-clock limit of the records themselves, in seconds; the global setting lies over it.
const TIMEOUT_SECONDS: u64 = 900;

/// Every built-in definition, in listing order.
pub(super) fn definitions() -> Vec<Definition> {
    [general_purpose(), bash()].into_iter().flatten().collect()
}

fn general_purpose() -> Option<Definition> {
    Some(Definition {
        name: SubagentType::new(GENERAL_PURPOSE).ok()?,
        description: prompt::general_purpose_description(),
        system_prompt: Some(prompt::general_purpose()),
        tools: None,
        disallowed_tools: denied_by_default(),
        skills: None,
        model: ModelChoice::Inherit,
        max_turns: 150,
        timeout_seconds: TIMEOUT_SECONDS,
    })
}

fn bash() -> Option<Definition> {
    let tools = ["bash", "ls", "read_file", "write_file", "str_replace"];
    Some(Definition {
        name: SubagentType::new(BASH).ok()?,
        description: prompt::bash_description(),
        system_prompt: Some(prompt::bash()),
        tools: Some(tools.map(str::to_owned).to_vec()),
        disallowed_tools: denied_by_default(),
        skills: None,
        model: ModelChoice::Inherit,
        max_turns: 60,
        timeout_seconds: TIMEOUT_SECONDS,
    })
}
