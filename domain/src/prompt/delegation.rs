//! What a lead is told of delegation (chain facts §3, "Lead prompt, delegation section").

use super::{BLANK_LINE, bash, general_purpose, routing::ROUTING_POLICY};
use crate::{
    definition::{BASH, Definition, GENERAL_PURPOSE, Listed, Origin},
    guard::subagent_limit::DelegationLimits,
    sanitise::escape,
};

/// What a lead may delegate, and to whom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DelegationOffer<'a> {
    /// The types, in listing order.
    pub types: &'a [Listed<'a>],
    /// The limits that the guard enforces.
    pub limits: DelegationLimits,
    /// Whether results come with a line on their citations.
    pub receipts_enabled: bool,
}

impl DelegationOffer<'_> {
    /// Whether two delegations can ever be at work at once.
    fn is_parallel(&self) -> bool {
        self.limits.per_response.min(self.limits.per_run) > 1
    }
}

/// The section. Where only one delegation can be at work, it has no word of several.
pub(super) fn delegation_section(offer: &DelegationOffer<'_>) -> String {
    let parts = [
        Some(format!("You may hand parts of the work to subagents with the `task` tool. {ROUTING_POLICY}")),
        Some(limits(offer.limits)),
        Some(AGAINST.to_owned()),
        offer.is_parallel().then(|| PARALLEL_VETOES.to_owned()),
        Some(catalogue(offer.types)),
        Some(workflow(offer)),
    ];
    let written: Vec<String> = parts.into_iter().flatten().collect();
    format!("<subagent_system>\n{}\n</subagent_system>", written.join(BLANK_LINE))
}

fn limits(DelegationLimits { per_response, per_run }: DelegationLimits) -> String {
    format!(
        "Hard limits: {per_response} `task` {} in one response, {per_run} in this run. Calls beyond them are dropped, the \
         last ones first. Delegations of earlier runs do not count.",
        if per_response == 1 { "call" } else { "calls" }
    )
}

const AGAINST: &str = "\
Do it yourself when
- the direct way is short;
- a subagent would first have to find out what you already know;
- explaining and putting together would cost more than the work.
When something essential is unclear, clear it up first.";

const PARALLEL_VETOES: &str = "\
Do not delegate in parallel when
- one task needs what another will find or make;
- two tasks would change the same files or other state, or their side effects overlap.
Such a chain may still go to one subagent, as one bounded task.";

fn catalogue(types: &[Listed<'_>]) -> String {
    let bullets: Vec<String> = types.iter().map(bullet).collect();
    format!("Types:\n{}", bullets.join("\n"))
}

/// One line for each type. The words of whoever wrote a definition stay on that line and cannot
/// close the section.
fn bullet(listed: &Listed<'_>) -> String {
    let Definition { name, description, .. } = listed.definition;
    let summary = match (listed.origin, name.as_str()) {
        (Origin::BuiltIn, GENERAL_PURPOSE) => general_purpose::SUMMARY.to_owned(),
        (Origin::BuiltIn, BASH) => bash::SUMMARY.to_owned(),
        (Origin::BuiltIn | Origin::Configured | Origin::Managed, _) => {
            escape(description.trim().lines().next().unwrap_or_default().trim_end())
        }
    };
    format!("- {name}: {summary}")
}

fn workflow(offer: &DelegationOffer<'_>) -> String {
    let (split, again) = if offer.is_parallel() {
        (
            format!(
                "Divide it into tasks that stand alone, and use as few subagents as the work needs. Put those that may run in \
                 parallel into one response, {} at most.",
                offer.limits.per_response
            ),
            "After each batch decide anew: go on directly, start another batch within the limits, or finish.",
        )
    } else {
        (
            "Cut out one task that stands alone.".to_owned(),
            "Then decide anew: go on directly, delegate once more within the limits, or finish.",
        )
    };
    let check = if offer.receipts_enabled { CHECK_WITH_RECEIPTS } else { CHECK_WITHOUT_RECEIPTS };
    format!(
        "How to delegate:\n\
         1. Weigh benefit against cost, and delegate only where the benefit clearly wins.\n\
         2. {split}\n\
         3. Write each prompt for a reader who knows nothing of this conversation, and add acceptance criteria where they can be checked.\n\
         4. Wait: the tool returns when the subagent has ended. There is nothing to poll.\n\
         5. {check}\n\
         6. {again} Put the results together in your own answer."
    )
}

const CHECK_WITH_RECEIPTS: &str = "\
Read each result. Its citation line is evidence that the cited calls happened, not that what is said of them is true: \
look up some of the paths, URLs and identifiers yourself.";

const CHECK_WITHOUT_RECEIPTS: &str = "\
Read each result as a claim: look up some of the paths, URLs and identifiers yourself.";
