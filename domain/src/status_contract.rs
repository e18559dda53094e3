//! The subagent status contract, version 2: how a `task` call ended, in the tool message that the
//! lead sees and in its metadata (facts §9).
//!
//! The writer is strict, for it writes only what the contract knows. The reader is tolerant, for
//! what it reads may have been written by somebody else or long ago.

mod raised;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::{
    raised::{RaisedMessage, raised_message},
    reader::{Reading, ResultBrief, read},
    writer::{TaskOutcome, polling_timed_out_detail},
};

/// The version of the contract.
pub const CONTRACT_VERSION: u32 = 2;

/// Stands for the result of a subagent that said nothing.
pub const NO_RESPONSE: &str = "No response generated";

/// The metadata key of the status: always written.
pub const STATUS_KEY: &str = "subagent_status";
/// The metadata key of the result's brief: only of a completed task.
pub const RESULT_BRIEF_KEY: &str = "subagent_result_brief";
/// The metadata key of the digest of the whole result: only together with its brief.
pub const RESULT_SHA256_KEY: &str = "subagent_result_sha256";
/// The metadata key of the error's brief: never of a completed task.
pub const ERROR_KEY: &str = "subagent_error";
/// The metadata key of the guard that ended it early.
pub const STOP_REASON_KEY: &str = "subagent_stop_reason";
/// The metadata key of the subagent's model.
pub const MODEL_NAME_KEY: &str = "subagent_model_name";
/// The metadata key of its tokens.
pub const TOKEN_USAGE_KEY: &str = "subagent_token_usage";

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

impl SubagentStatus {
    /// Every status, in the order of the contract.
    pub const ALL: [Self; 5] =
        [Self::Completed, Self::Failed, Self::Cancelled, Self::TimedOut, Self::PollingTimedOut];

    /// The name in the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::PollingTimedOut => "polling_timed_out",
        }
    }
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

impl StopReason {
    /// Every stop reason, in the order of the contract.
    pub const ALL: [Self; 3] = [Self::TokenCapped, Self::TurnCapped, Self::LoopCapped];

    /// The name in the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TokenCapped => "token_capped",
            Self::TurnCapped => "turn_capped",
            Self::LoopCapped => "loop_capped",
        }
    }

    /// The name in the text that the lead and people read.
    pub const fn label(self) -> &'static str {
        match self {
            Self::TokenCapped => "token budget",
            Self::TurnCapped => "turn budget",
            Self::LoopCapped => "repeated tool-call loop",
        }
    }
}

/// A value that the contract does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} {text:?}: contract version {CONTRACT_VERSION} knows {known}")]
pub struct UnknownValue {
    /// What was read: `subagent status` or `stop reason`.
    pub kind: &'static str,
    /// What was given.
    pub text: String,
    /// What would have been accepted.
    pub known: String,
}

impl FromStr for SubagentStatus {
    type Err = UnknownValue;

    fn from_str(text: &str) -> Result<Self, UnknownValue> {
        let named = Self::ALL.into_iter().find(|status| status.as_str() == text);
        named.ok_or_else(|| unknown("subagent status", text, &Self::ALL.map(Self::as_str)))
    }
}

impl FromStr for StopReason {
    type Err = UnknownValue;

    fn from_str(text: &str) -> Result<Self, UnknownValue> {
        let named = Self::ALL.into_iter().find(|reason| reason.as_str() == text);
        named.ok_or_else(|| unknown("stop reason", text, &Self::ALL.map(Self::as_str)))
    }
}

fn unknown(kind: &'static str, text: &str, known: &[&str]) -> UnknownValue {
    UnknownValue { kind, text: text.chars().take(80).collect(), known: known.join(", ") }
}
