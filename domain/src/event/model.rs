//! The lead's conversation, and what model calls met with.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::family::family;
use crate::{guard::tool_progress::Stalled, message::Message};

/// The lead, where a record says who made a model call (facts §8, `by_caller`).
pub const LEAD_CALLER: &str = "lead_agent";
/// Whoever sums up a lead's history, where a record says who made a model call. What sums up a
/// subagent's is counted as that subagent's.
pub const SUMMARY_CALLER: &str = "middleware:summarize";
/// Where the metadata of a record says who made a model call.
pub const CALLER_KEY: &str = "caller";

family! {
    /// The lead's conversation, and what model calls met with.
    pub enum ModelEvent {
        /// A person asked.
        HumanInput(Message) = "llm.human.input" in Message,
        /// The lead's model replied.
        AiResponse(Message) = "llm.ai.response" in Message,
        /// One of the lead's tool calls returned.
        ToolResult(Message) = "llm.tool.result" in Message,
        /// A model call failed for good.
        Failed(ModelFailed) = "llm.error" in Trace,
        /// A model call failed and will be tried again.
        Retried(ModelRetried) = "llm.retry" in Trace,
        /// An answer said nothing after tools had returned.
        AnswerMissing(GuardFired) = "middleware:terminal_response" in Middleware,
        /// An answer was cut by the model's own limit.
        AnswerCut(GuardFired) = "middleware:model_length" in Middleware,
        /// A tool brought an agent no further.
        ToolStalled(ToolStalled) = "middleware:tool_progress" in Middleware,
    }
}

impl ModelEvent {
    pub(super) fn metadata(&self) -> Map<String, Value> {
        self.caller().map(|caller| (CALLER_KEY.to_owned(), json!(caller))).into_iter().collect()
    }

    /// What a guard did that holds to no limit.
    pub const fn fired(tag: GuardTag, fired: GuardFired) -> Self {
        match tag {
            GuardTag::TerminalResponse => Self::AnswerMissing(fired),
            GuardTag::ModelLength => Self::AnswerCut(fired),
        }
    }

    /// Who made the model call that this is about.
    pub(super) fn caller(&self) -> Option<&str> {
        match self {
            Self::HumanInput(_) => None,
            Self::AiResponse(_) | Self::ToolResult(_) => Some(LEAD_CALLER),
            Self::Failed(failed) => Some(&failed.caller),
            Self::Retried(retried) => Some(&retried.caller),
            Self::AnswerMissing(fired) | Self::AnswerCut(fired) => Some(&fired.caller),
            Self::ToolStalled(stalled) => Some(&stalled.caller),
        }
    }
}

/// A model call failed for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailed {
    /// Who called: `lead_agent` or `subagent:{type}`.
    pub caller: String,
    /// The configured name of the model.
    pub model_name: String,
    /// The class of the failure, such as `auth`, `quota` or `transient`.
    pub reason: String,
    /// The provider's HTTP status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How often the call was tried; 0 when the model was left alone because it had failed too often.
    pub attempts: u32,
    /// What was being done and what came back, without secrets.
    pub error: String,
}

/// A model call failed and will be tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRetried {
    /// Who called: `lead_agent` or `subagent:{type}`.
    pub caller: String,
    /// The configured name of the model.
    pub model_name: String,
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// Attempts that there will be at most.
    pub max_attempts: u32,
    /// The wait before the next attempt, in milliseconds.
    pub wait_ms: u64,
    /// The class of the failure.
    pub reason: String,
    /// What came back, without secrets.
    pub message: String,
}

/// A guard that holds to no limit, by the tag of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardTag {
    /// Looks for answers that say nothing.
    TerminalResponse,
    /// Looks for answers that were cut.
    ModelLength,
}

/// What such a guard did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardAction {
    /// It asked the model for its answer once more.
    AskedAgain,
    /// It put the framework's words in place of an answer that never came.
    GaveUp,
    /// It named what it found, and changed nothing.
    Named,
}

/// A guard that holds to no limit did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardFired {
    /// Whose work it looked at: `lead_agent` or `subagent:{type}`.
    pub caller: String,
    /// What it did.
    pub action: GuardAction,
}

/// A tool brought an agent no further, and the guard on progress did something about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolStalled {
    /// Whose work it looked at: `lead_agent` or `subagent:{type}`.
    pub caller: String,
    /// The tool, and what was done.
    #[serde(flatten)]
    pub stalled: Stalled,
}
