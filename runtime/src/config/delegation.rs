//! How many subagents run, and what is proven of their work.

use domain::{
    definition::SettingProblem,
    limits::{
        ADMISSION_QUEUE_DEFAULT, ADMISSION_QUEUE_RANGE, ADMISSION_TIMEOUT_SECONDS_DEFAULT,
        ADMISSION_TIMEOUT_SECONDS_RANGE, BATCH_ATTEMPTS_DEFAULT, BATCH_ATTEMPTS_RANGE, BATCH_ITEMS_DEFAULT,
        BATCH_ITEMS_RANGE, BATCH_LEASE_SECONDS_DEFAULT, BATCH_LEASE_SECONDS_RANGE,
        BATCH_RESULT_CHARS_DEFAULT, BATCH_RESULT_CHARS_RANGE, LIVE_BATCHES_DEFAULT, LIVE_BATCHES_RANGE,
        RUNNING_SUBAGENTS_DEFAULT, RUNNING_SUBAGENTS_RANGE,
    },
};
use serde::{Deserialize, Serialize};

use super::check::Checks;

/// The `subagent_runtime` section. Changing it needs a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SubagentRuntime {
    /// Subagents that run at once, in the whole process.
    pub max_running: u32,
    /// Delegations that may wait for a slot.
    pub queue_capacity: u32,
    /// The longest that one waits.
    pub queue_timeout_seconds: u64,
}

impl Default for SubagentRuntime {
    fn default() -> Self {
        Self {
            max_running: RUNNING_SUBAGENTS_DEFAULT,
            queue_capacity: ADMISSION_QUEUE_DEFAULT,
            queue_timeout_seconds: ADMISSION_TIMEOUT_SECONDS_DEFAULT,
        }
    }
}

impl SubagentRuntime {
    pub(super) fn problems(&self) -> Vec<SettingProblem> {
        let mut checks = Checks::below("subagent_runtime");
        checks.within("max_running", &self.max_running, &RUNNING_SUBAGENTS_RANGE);
        checks.within("queue_capacity", &self.queue_capacity, &ADMISSION_QUEUE_RANGE);
        checks.within("queue_timeout_seconds", &self.queue_timeout_seconds, &ADMISSION_TIMEOUT_SECONDS_RANGE);
        checks.found()
    }
}

/// The `subagent_batches` section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SubagentBatches {
    /// Items of one batch.
    pub max_items_per_batch: u32,
    /// Batches that are not yet done.
    pub max_live_batches: u32,
    /// Items that run at once; they share the process's slots with other delegations.
    pub max_running_items: u32,
    /// The right to work on an item, unless it is renewed.
    pub lease_seconds: u64,
    /// Tries at one item.
    pub max_attempts: u32,
    /// The stored result of one item.
    pub result_max_chars: u32,
}

impl Default for SubagentBatches {
    fn default() -> Self {
        Self {
            max_items_per_batch: BATCH_ITEMS_DEFAULT,
            max_live_batches: LIVE_BATCHES_DEFAULT,
            max_running_items: RUNNING_SUBAGENTS_DEFAULT,
            lease_seconds: BATCH_LEASE_SECONDS_DEFAULT,
            max_attempts: BATCH_ATTEMPTS_DEFAULT,
            result_max_chars: BATCH_RESULT_CHARS_DEFAULT,
        }
    }
}

impl SubagentBatches {
    pub(super) fn problems(&self) -> Vec<SettingProblem> {
        let mut checks = Checks::below("subagent_batches");
        checks.within("max_items_per_batch", &self.max_items_per_batch, &BATCH_ITEMS_RANGE);
        checks.within("max_live_batches", &self.max_live_batches, &LIVE_BATCHES_RANGE);
        checks.within("max_running_items", &self.max_running_items, &RUNNING_SUBAGENTS_RANGE);
        checks.within("lease_seconds", &self.lease_seconds, &BATCH_LEASE_SECONDS_RANGE);
        checks.within("max_attempts", &self.max_attempts, &BATCH_ATTEMPTS_RANGE);
        checks.within("result_max_chars", &self.result_max_chars, &BATCH_RESULT_CHARS_RANGE);
        checks.found()
    }
}

/// The `verification` section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Verification {
    /// Whether results are compared with the receipts of their tool calls.
    pub receipts_enabled: bool,
}

impl Default for Verification {
    fn default() -> Self {
        Self { receipts_enabled: true }
    }
}
