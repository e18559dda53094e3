//! The subagent status contract, version 2: how a `task` call ended, in the tool message that the
//! lead sees and in its metadata (facts §9).

use serde::{Deserialize, Serialize};

/// The version of the contract.
pub const CONTRACT_VERSION: u32 = 2;

/// How a `task` call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentStatus {
    /// A proper end with a usable answer.
    Completed,
    /// Anything that went wrong.
    Failed,
    /// Stopped from outside.
    Cancelled,
    /// The subagent ran out of time.
    TimedOut,
    /// The lead's own wait ran out.
    PollingTimedOut,
}

/// The guard that ended a subagent early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The token budget was used up.
    TokenCapped,
    /// All turns were used.
    TurnCapped,
    /// It went round in circles.
    LoopCapped,
}
