//! What a subagent did, from its first step to its one end.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{compaction::SubagentCompaction, family::family, run::Cap};
use crate::{
    citation::Citations,
    ids::ToolCallId,
    message::Message,
    receipt::Receipt,
    status_contract::{StopReason, SubagentStatus},
    usage::Usage,
};

family! {
    /// What a subagent did.
    pub enum SubagentEvent {
        /// It began.
        Started(SubagentStarted) = "subagent.start" in Subagent,
        /// One of its messages, captured for people and cut to the step's bounds.
        Step(Step) = "subagent.step" in Subagent,
        /// One of its messages, whole: what the agent is resumed from.
        Message(SubagentMessage) = "subagent.message" in Subagent,
        /// Evidence that one of its tool calls ended.
        Receipt(Receipt) = "subagent.receipt" in Subagent,
        /// A guard warned it or ended it early.
        Capped(SubagentCapped) = "subagent.cap" in Subagent,
        /// Its history was compacted, or was to be.
        Compacted(SubagentCompaction) = "subagent.compaction" in Subagent,
        /// It ended: the one terminal event of a delegation that was not refused.
        Ended(SubagentEnded) = "subagent.end" in Subagent,
    }
}

impl SubagentEvent {
    /// The provider's id of the delegation's `task` call.
    pub const fn task_id(&self) -> &ToolCallId {
        match self {
            Self::Started(payload) => &payload.task_id,
            Self::Step(payload) => &payload.task_id,
            Self::Message(payload) => &payload.task_id,
            Self::Receipt(payload) => &payload.task_id,
            Self::Capped(payload) => &payload.task_id,
            Self::Compacted(payload) => &payload.task_id,
            Self::Ended(payload) => &payload.task_id,
        }
    }

    pub(super) fn metadata(&self) -> Map<String, Value> {
        let mut metadata = Map::from_iter([("task_id".to_owned(), json!(self.task_id()))]);
        match self {
            Self::Step(step) => {
                metadata.insert("message_index".into(), json!(step.message_index));
            }
            Self::Started(_)
            | Self::Message(_)
            | Self::Receipt(_)
            | Self::Capped(_)
            | Self::Compacted(_)
            | Self::Ended(_) => {}
        }
        metadata
    }
}

/// A subagent began (facts §6.3; `subagent_type` and `model_name` are ours).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentStarted {
    /// The provider's id of the `task` call.
    pub task_id: ToolCallId,
    /// What the lead calls it.
    pub description: String,
    /// The kind of subagent.
    pub subagent_type: String,
    /// Its model.
    pub model_name: String,
}

/// One captured message (facts §6.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The provider's id of the `task` call.
    pub task_id: ToolCallId,
    /// Its place among the captured messages, from 1.
    pub message_index: u32,
    /// The text, cut to its bound; empty when the message had none.
    pub text: String,
    /// Whether `text` was cut.
    pub truncated: bool,
    /// What only one of the kinds has.
    #[serde(flatten)]
    pub body: StepBody,
}

/// What only one kind of step has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StepBody {
    /// The model replied.
    Ai {
        /// What it asked for.
        tool_calls: Vec<CapturedCall>,
    },
    /// A tool returned.
    Tool {
        /// The tool.
        tool_name: String,
    },
}

/// A tool call as a step shows it. The call's id is left out (facts §6.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapturedCall {
    /// The tool.
    pub name: String,
    /// The arguments: as they are, or a prefix of their text when that is over the bound.
    pub args: Value,
    /// Whether `args` was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub args_truncated: bool,
}

/// One of a subagent's messages, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubagentMessage {
    /// The provider's id of the `task` call.
    pub task_id: ToolCallId,
    /// The message.
    pub message: Message,
}

/// A guard warned a subagent or ended it early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentCapped {
    /// The provider's id of the `task` call.
    pub task_id: ToolCallId,
    /// What fired.
    #[serde(flatten)]
    pub cap: Cap,
}

/// How a subagent ended. A lead whose own wait ran out sees `polling_timed_out`; the subagent's
/// own end is then `timed_out` (facts §6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndStatus {
    /// A proper end with a usable answer.
    Completed,
    /// Anything that went wrong.
    Failed,
    /// Stopped from outside.
    Cancelled,
    /// Out of time.
    TimedOut,
}

impl From<EndStatus> for SubagentStatus {
    fn from(status: EndStatus) -> Self {
        match status {
            EndStatus::Completed => Self::Completed,
            EndStatus::Failed => Self::Failed,
            EndStatus::Cancelled => Self::Cancelled,
            EndStatus::TimedOut => Self::TimedOut,
        }
    }
}

/// Who stopped it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// Somebody cancelled this delegation.
    CancelledByUser,
    /// Its run was cancelled.
    ParentInterrupted,
    /// Its run ended.
    ParentEnded,
}

/// A subagent ended (facts §6.3; `stop_reason`, `turns`, `steps`, `receipts`, `cancel_reason`,
/// `citations` and `result_sha256` are ours).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubagentEnded {
    /// The provider's id of the `task` call.
    pub task_id: ToolCallId,
    /// How.
    pub status: EndStatus,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// Its tokens, where reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Its result, cut to the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Whether `result` was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub result_truncated: bool,
    /// SHA-256 of the whole result, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_sha256: Option<String>,
    /// What went wrong, cut to the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether `error` was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub error_truncated: bool,
    /// The guard that ended it early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Who stopped it, if somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<CancelReason>,
    /// What became of the citations of its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub citations: Option<Citations>,
    /// Model calls that it made.
    pub turns: u32,
    /// Messages that were captured.
    pub steps: u32,
    /// Tool calls that ended.
    pub receipts: u32,
}
