//! Guards that fired, of leads and of subagents.

use serde::{Deserialize, Serialize};

/// A guard that warned or ended something early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cap {
    /// The run.
    pub run_id: Option<String>,
    /// The provider's id of the `task` call, where it was a subagent's guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The delegation, where it was a subagent's guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation_id: Option<String>,
    /// What was watched: `turns`, `tokens`, `loop`, `delegations`, `time`, `depth`, `safety` or `retries`.
    pub axis: String,
    /// `warn` or `stop`.
    pub action: String,
    /// How much was used, in the unit of the axis.
    pub used: u64,
    /// How much was allowed.
    pub budget: u64,
    /// When it was recorded.
    pub at: String,
    /// Place of its event in the thread: the cursor of the list.
    pub seq: u64,
}
