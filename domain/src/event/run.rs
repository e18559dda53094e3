//! The life of a run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{compaction::Compaction, family::family};
use crate::{
    compaction::CompactionSettings,
    definition::{CustomAgent, InConfigOrder, SubagentsSettings, TokenBudget},
    guard::{loop_detection::LoopLimits, tool_progress::ProgressLimits},
    ids::RunId,
    usage::Usage,
};

family! {
    /// The life of a run. `run.status` is the one source of truth for its state; `run.end` and
    /// `run.error` are recorded together with the status that they explain.
    pub enum RunEvent {
        /// The run was asked for, with everything that it will obey.
        Started(RunSettings) = "run.start" in Trace,
        /// The run's state changed.
        StatusChanged(RunStatusChanged) = "run.status" in Run,
        /// A guard warned or ended something early.
        Capped(Cap) = "run.cap" in Run,
        /// The lead's history was compacted, or was to be.
        Compacted(Compaction) = "run.compaction" in Context,
        /// The run returned.
        Ended(RunEnded) = "run.end" in Outputs,
        /// The run failed.
        Failed(RunFailed) = "run.error" in Error,
    }
}

impl RunEvent {
    pub(super) fn metadata(&self) -> Map<String, Value> {
        match self {
            // Facts §7.4: metadata.status of run.end is always success.
            Self::Ended(_) => Map::from_iter([("status".to_owned(), json!("success"))]),
            Self::Started(_)
            | Self::StatusChanged(_)
            | Self::Capped(_)
            | Self::Compacted(_)
            | Self::Failed(_) => Map::new(),
        }
    }
}

/// Everything that a run obeys, resolved once when it starts and never read again from anywhere
/// that can change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    /// The run.
    pub run_id: RunId,
    /// The lead agent; `lead` is the only one.
    pub assistant_id: String,
    /// The lead's model.
    pub model_name: String,
    /// Whether the lead has the `task` tool.
    pub subagent_enabled: bool,
    /// Delegations per response.
    pub max_concurrent_subagents: u32,
    /// Delegations per run.
    pub max_total_subagents: u32,
    /// Types that may be delegated to; `None` allows all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_subagents: Option<Vec<String>>,
    /// The lead's turns.
    pub max_turns: u32,
    /// The names of the lead's tools.
    pub tools: Vec<String>,
    /// The lead's system prompt.
    pub system_prompt: String,
    /// The subagent types and their limits, as they were configured; absent where an older run did
    /// not note them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagents: Option<Box<SubagentsSettings>>,
    /// The managed definitions that were enabled; absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_subagents: Option<Box<InConfigOrder<CustomAgent>>>,
    /// Whether history was compacted, which decides default token budgets.
    #[serde(default)]
    pub summarization_enabled: bool,
    /// The lead's token budget; absent where none is enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<Box<TokenBudget>>,
    /// When the lead or a subagent goes round in circles; absent where nobody looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_detection: Option<Box<LoopLimits>>,
    /// When a tool brings the lead or a subagent no further; absent where nobody looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_progress: Option<Box<ProgressLimits>>,
    /// Whether last words are looked at before they count as an answer; not in older runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checks_last_words: bool,
    /// When history is compacted, and what stays; absent where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summarization: Option<Box<CompactionSettings>>,
    /// How often model calls may be tried again in the whole run; absent where an older run set no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_retries_max: Option<u32>,
    /// What the client wants to find again.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Asked for, not yet begun.
    Pending,
    /// At work.
    Running,
    /// Returned.
    Success,
    /// Failed.
    Error,
    /// Cancelled from outside.
    Interrupted,
    /// Ran out of time.
    Timeout,
}

impl RunStatus {
    /// Whether nothing can come after it.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Success | Self::Error | Self::Interrupted | Self::Timeout => true,
        }
    }

    /// The name in the record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Success => "success",
            Self::Error => "error",
            Self::Interrupted => "interrupted",
            Self::Timeout => "timeout",
        }
    }
}

/// Why a run ended before its lead was done (facts §9.1; `turn_capped` is ours).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStopReason {
    /// The token budget was used up.
    TokenCapped,
    /// The lead went round in circles.
    LoopCapped,
    /// The provider stopped for safety.
    SafetyCapped,
    /// No delegations were left.
    SubagentLimitCapped,
    /// The model's reply was cut by its length limit.
    ModelLengthCapped,
    /// The lead used all its turns.
    TurnCapped,
    /// The run was found unfinished after a crash, and was not resumed.
    OrphanRecovered,
}

impl RunStopReason {
    /// The name in the record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TokenCapped => "token_capped",
            Self::LoopCapped => "loop_capped",
            Self::SafetyCapped => "safety_capped",
            Self::SubagentLimitCapped => "subagent_limit_capped",
            Self::ModelLengthCapped => "model_length_capped",
            Self::TurnCapped => "turn_capped",
            Self::OrphanRecovered => "orphan_recovered",
        }
    }
}

/// The run's state changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStatusChanged {
    /// The new state.
    pub status: RunStatus,
    /// Why it ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<RunStopReason>,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a guard watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapAxis {
    /// Model calls.
    Turns,
    /// Tokens.
    Tokens,
    /// Repeated tool calls.
    Loop,
    /// Delegations of a run.
    Delegations,
    /// Wall-clock time.
    Time,
    /// How deep delegation goes.
    Depth,
    /// The provider's safety stop.
    Safety,
    /// Model calls of the whole run, its delegations' too, that were tried again.
    Retries,
}

/// What a guard did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapAction {
    /// It told the model.
    Warn,
    /// It ended the work.
    Stop,
}

/// A guard fired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cap {
    /// What was watched.
    pub axis: CapAxis,
    /// What was done about it.
    pub action: CapAction,
    /// How much was used, in the unit of the axis.
    pub used: u64,
    /// How much was allowed.
    pub budget: u64,
}

/// The run returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEnded {
    /// The lead's last words, cut to the bound of a step's text.
    pub result: String,
    /// Whether `result` was cut; the whole text is in the last `llm.ai.response`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub result_truncated: bool,
    /// Tokens of the lead, of all its subagents and of summaries of their histories, where reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The lead's turns.
    pub turns: u32,
    /// Delegations that were requested.
    pub delegations: u32,
}

/// The run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFailed {
    /// What went wrong, and what to do.
    pub error: String,
}
