//! The card: one delegation as a person looks at it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    delegation::{DelegationStatus, StopReason},
    evidence::{Acceptance, Citations, Receipt},
    usage::Usage,
};

/// One delegation as a person looks at it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// The provider's id of the `task` call.
    pub task_id: String,
    /// Our id.
    pub delegation_id: String,
    /// Where it stands.
    pub status: DelegationStatus,
    /// Its place in the queue now, from 1; absent unless it waits in this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_place: Option<u32>,
    /// How long it will wait for its slot, in seconds; absent while nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_wait_seconds: Option<u64>,
    /// What the lead calls it.
    pub description: String,
    /// What the subagent was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The kind of subagent.
    pub subagent_type: String,
    /// Its model; null until it is known.
    pub model_name: Option<String>,
    /// Its tokens; null until something was reported.
    pub usage: Option<Usage>,
    /// Model calls so far.
    pub turns: u32,
    /// How often its history was compacted; left out when it never was.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub compactions: u32,
    /// What it did, by `message_index`.
    pub steps: Vec<CardStep>,
    /// Guards that fired, in order.
    pub caps: Vec<CardCap>,
    /// Evidence, in order.
    pub receipts: Vec<Receipt>,
    /// Whether what its result cites did happen; null until it ended.
    pub citations: Option<Citations>,
    /// Whether its acceptance criteria hold; empty when there were none or it has not ended.
    pub acceptance: Vec<Acceptance>,
    /// Its result, cut to its bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The guard that ended it early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// The last event's place in the thread: the card as of then.
    pub seq: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// One thing that a subagent did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CardStep {
    /// Its place among the steps.
    pub message_index: u32,
    /// Who spoke.
    pub kind: StepKind,
    /// The text, cut to its bound.
    pub text: String,
    /// Whether `text` was cut.
    pub truncated: bool,
    /// What the model asked for; kind `ai` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<CardCall>>,
    /// The tool; kind `tool` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
}

/// Who spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// The model.
    Ai,
    /// A tool.
    Tool,
}

/// A tool call in a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CardCall {
    /// The tool.
    pub name: String,
    /// The arguments, or a prefix of their text.
    pub args: Value,
    /// Whether `args` was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub args_truncated: bool,
}

/// A guard that fired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardCap {
    /// What was watched: `turns`, `tokens`, `loop`, `delegations`, `time`, `depth`, `safety` or `retries`.
    pub axis: String,
    /// `warn` or `stop`.
    pub action: String,
    /// How much was used, in the unit of the axis.
    pub used: u64,
    /// How much was allowed.
    pub budget: u64,
    /// Place of its event in the thread.
    pub seq: u64,
}
