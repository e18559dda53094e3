//! Delegations: the rows of the ledger.

use serde::{Deserialize, Serialize};

use super::{
    evidence::{Acceptance, Citations},
    usage::Usage,
};

/// One delegation in the ledger of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegation {
    /// The provider's id of the `task` call; may repeat in another run.
    pub task_id: String,
    /// Our id; never repeats.
    pub delegation_id: String,
    /// The run.
    pub run_id: String,
    /// What the lead calls it.
    pub description: String,
    /// The kind of subagent.
    pub subagent_type: String,
    /// Where it stands.
    pub status: DelegationStatus,
    /// The guard that ended it early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// The brief of its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_brief: Option<String>,
    /// SHA-256 of its whole result, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_sha256: Option<String>,
    /// What went wrong, or why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// Its tokens, where reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether what its result cites did happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub citations: Option<Citations>,
    /// Whether its acceptance criteria hold; absent when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<Vec<Acceptance>>,
    /// When it began to wait for a slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_at: Option<String>,
    /// When its subagent began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it ended or was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Whether the lead has its answer.
    pub delivered: bool,
    /// The `seq` of its request: the `after_seq` of the next page of the ledger.
    #[serde(default)]
    pub first_seq: u64,
}

/// Where a delegation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelegationStatus {
    /// Waits for a slot.
    Queued,
    /// At work.
    InProgress,
    /// A proper end with a usable answer.
    Completed,
    /// Anything that went wrong.
    Failed,
    /// Stopped from outside.
    Cancelled,
    /// The subagent used up its time.
    TimedOut,
    /// The lead's own wait ran out.
    PollingTimedOut,
    /// No model was called for it.
    Refused,
}

/// The guard that ended a subagent early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The token budget was used up.
    TokenCapped,
    /// All turns were used.
    TurnCapped,
    /// It went round in circles.
    LoopCapped,
}

/// The state of one delegation: what the ledger says of it, and how far it has got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationState {
    /// What the ledger says of it.
    #[serde(flatten)]
    pub delegation: Delegation,
    /// Model calls so far.
    pub turns: u32,
    /// Its turn limit; 0 when it was refused.
    pub max_turns: u32,
    /// Messages that were captured.
    pub steps: u32,
    /// Receipts so far.
    pub receipts: u32,
    /// The newest receipt: `r3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_receipt: Option<String>,
    /// The last tool that it asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tool: Option<String>,
    /// Guards that fired.
    pub caps: u32,
    /// The last event's place in the thread: the state as of then.
    pub seq: u64,
}
