//! The subagent status contract: how a `task` call ended, in words and in metadata.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

/// The contract as it is committed; the wording in it is for people.
const CONTRACT_JSON: &str = include_str!("../subagent_status_contract.json");

static CONTRACT: LazyLock<SubagentStatus> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the file is compiled in, and the test below reads it")]
    serde_json::from_str(CONTRACT_JSON).expect("the committed subagent status contract can be read")
});

/// The contract, read once per process.
pub fn subagent_status() -> &'static SubagentStatus {
    &CONTRACT
}

/// The subagent status contract.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubagentStatus {
    /// What the contract is about.
    pub title: String,
    /// The version of the contract.
    pub version: u32,
    /// Every status with what it means.
    pub statuses: BTreeMap<String, String>,
    /// Every stop reason.
    pub stop_reasons: BTreeMap<String, StopReason>,
    /// The statuses that `subagent.end` may have.
    pub persisted_end_statuses: Vec<String>,
    /// The keys in a tool message's metadata.
    pub metadata: BTreeMap<String, MetadataKey>,
    /// The bound of a brief, in characters.
    pub brief_chars_max: usize,
    /// The texts of the tool message, by status.
    pub display: BTreeMap<String, Display>,
    /// What readers and writers hold to, for people.
    pub rules: Vec<String>,
    /// Statuses of the past.
    pub legacy: Legacy,
}

/// The guard that ended a subagent early.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopReason {
    /// Its name in the display text.
    pub label: String,
    /// What it means.
    pub meaning: String,
}

/// A key in a tool message's metadata.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetadataKey {
    /// When it is there.
    pub written_when: String,
    /// What is in it.
    pub value: String,
}

/// The texts of one status. `{result}`, `{error}` and `{label}` stand for what is filled in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Display {
    /// Without an error.
    pub plain: String,
    /// With an error.
    pub detailed: Option<String>,
    /// Ended early by a guard, without an error.
    pub capped: Option<String>,
    /// Ended early by a guard, with an error.
    pub capped_detailed: Option<String>,
}

/// Statuses of the past.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Legacy {
    /// What a reader makes of `max_turns_reached`.
    pub max_turns_reached: LegacyReading,
}

/// What a reader makes of a status of the past.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegacyReading {
    /// Where the metadata has a brief of the result.
    pub with_brief: Reading,
    /// Where it has none.
    pub without_brief: Reading,
    /// The rule in words.
    pub rule: String,
}

/// A status and stop reason that stand for an old status.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// The status.
    pub status: String,
    /// The stop reason.
    pub stop_reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_the_contract_fit_together() {
        let contract = subagent_status();
        assert!(contract.statuses.keys().eq(contract.display.keys()), "every status has its texts");
        assert!(contract.persisted_end_statuses.iter().all(|status| contract.statuses.contains_key(status)));
        let legacy = &contract.legacy.max_turns_reached;
        for reading in [&legacy.with_brief, &legacy.without_brief] {
            assert!(contract.statuses.contains_key(&reading.status));
            assert!(contract.stop_reasons.contains_key(&reading.stop_reason));
        }
        for (status, display) in &contract.display {
            let is_capped = matches!(status.as_str(), "completed" | "failed");
            assert_eq!(display.capped.is_some(), is_capped, "only these show the guard: {status}");
        }
    }
}
