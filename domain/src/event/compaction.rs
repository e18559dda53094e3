//! A history that became too long for its model, and what was made of it.

use serde::{Deserialize, Serialize};

use crate::{ids::ToolCallId, usage::Usage};

/// The older part of an agent's conversation was to be replaced by a summary. The messages
/// themselves stay in the log: only what the model is shown from here on is shorter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// What started it.
    pub trigger: CompactionTrigger,
    /// Messages of the conversation before it; system messages and the summary are not counted.
    pub messages_before: u32,
    /// Their tokens and those of the summary before it, estimated.
    pub tokens_before: u64,
    /// The models that were asked for a summary and gave none, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<SummaryFailure>,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: CompactionOutcome,
}

/// The limit that a conversation had reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionTrigger {
    /// What was counted.
    pub unit: CompactionUnit,
    /// How much there was: messages, or tokens.
    pub used: u64,
    /// From how much on history is compacted, in the same unit.
    pub limit: u64,
}

/// What starts a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionUnit {
    /// The number of messages.
    Messages,
    /// The number of tokens.
    Tokens,
    /// The number of tokens as a share of what the model can hold.
    Fraction,
}

/// What came of a compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum CompactionOutcome {
    /// A summary stands for the older part.
    Compacted(Box<Compacted>),
    /// No model gave a summary: the history is as it was, and the work goes on with it.
    Failed,
}

/// A summary, and what stays beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// The configured name of the model that wrote the summary.
    pub model_name: String,
    /// The summary. It takes the place of an earlier one. Models wrote it: it is no more to be
    /// trusted than what it sums up.
    pub summary: String,
    /// How many of the newest messages stay.
    pub kept: u32,
    /// Older messages that stay as well, such as the task: places counted back from the newest
    /// message, which is 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<u32>,
    /// Messages of the conversation after it, counted as before.
    pub messages_after: u32,
    /// Their tokens and the summary's, estimated.
    pub tokens_after: u64,
    /// What the summary cost, where that was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A model that gave no summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryFailure {
    /// Its configured name.
    pub model_name: String,
    /// The class of the failure: that of a failed model call, or `blank`.
    pub reason: String,
    /// What came back, without secrets.
    pub error: String,
    /// What it cost, where that was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A subagent's history was compacted, or was to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentCompaction {
    /// The provider's id of the `task` call.
    pub task_id: ToolCallId,
    /// What happened.
    #[serde(flatten)]
    pub compaction: Compaction,
}

impl Compaction {
    /// The summary and what stays beside it, where there is one.
    pub fn compacted(&self) -> Option<&Compacted> {
        match &self.outcome {
            CompactionOutcome::Compacted(compacted) => Some(compacted),
            CompactionOutcome::Failed => None,
        }
    }

    /// The model calls that were made for it and replied, with what they reported: all of them
    /// that gave a summary, and those that cost something and gave none.
    pub fn calls(&self) -> impl Iterator<Item = (&str, Option<Usage>)> {
        let useless = self.failures.iter().filter(|failure| failure.usage.is_some());
        let useless = useless.map(|failure| (failure.model_name.as_str(), failure.usage));
        useless.chain(self.compacted().map(|summed| (summed.model_name.as_str(), summed.usage)))
    }

    /// What those calls reported together.
    pub fn usage(&self) -> Option<Usage> {
        let mut total = None;
        self.calls().for_each(|(_, usage)| Usage::add_to(&mut total, usage));
        total
    }
}
