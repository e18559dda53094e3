//! When the older part of a conversation is replaced by a summary, and what stays (chain facts
//! §2.9).
//!
//! Everything is decided from the conversation and from settings that were frozen when the run
//! started, so that a run that is resumed decides the same. Asking a model for the summary is left
//! to whoever carries the plan out; what comes of it is a [`Compaction`].

mod estimate;
mod keep;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::plan::CompactionPlan;
use crate::{agent::Conversation, event::CompactionTrigger, event::CompactionUnit};

/// Messages that stay where a share of an unknown number of tokens was to stay (chain facts §2.9:
/// the number that is kept by default).
const KEPT_MESSAGES_FALLBACK: u32 = 20;

/// How much of a history, in one of three units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Tokens, from 1.
    Tokens(u64),
    /// Messages, from 1.
    Messages(u32),
    /// A share of the model's context, above 0 and up to 1.
    Fraction(f64),
}

/// The `summarization` section, as it held when a run started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompactionSettings {
    /// What starts a compaction: any of these. None of them means never.
    pub trigger: Vec<Extent>,
    /// What is kept as it is.
    pub keep: Extent,
    /// Tokens of history that the summary model is shown; `None` shows it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim_tokens: Option<u64>,
    /// The model that is asked for summaries first; the agent's own is asked after it, or alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// What the summary model is told, in place of Remit's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What each model can hold, in tokens, where the configuration says so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context_tokens: BTreeMap<String, u32>,
}

/// What holds for one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionRules {
    trigger: Vec<Extent>,
    keep: Extent,
    trim_tokens: Option<u64>,
    prompt: Option<String>,
    /// What the agent's model can hold, in tokens.
    context_tokens: Option<u64>,
}

impl CompactionSettings {
    /// What holds for an agent with this model.
    pub fn rules(&self, model_name: &str) -> CompactionRules {
        CompactionRules {
            trigger: self.trigger.clone(),
            keep: self.keep,
            trim_tokens: self.trim_tokens,
            prompt: self.prompt.clone(),
            context_tokens: self.context_tokens.get(model_name).copied().map(u64::from),
        }
    }

    /// The models to ask for a summary for an agent with this model, in order and each once.
    pub fn candidates<'a>(&'a self, model_name: &'a str) -> Vec<&'a str> {
        let first = self.model_name.as_deref().filter(|first| *first != model_name);
        first.into_iter().chain([model_name]).collect()
    }
}

impl CompactionRules {
    /// What to do about a conversation that is about to be shown to the model; `None` when it is
    /// short enough, or nothing in it may go. `reported` is the total that the provider gave for
    /// the agent's last reply.
    pub fn plan(&self, conversation: &Conversation, reported: Option<u64>) -> Option<CompactionPlan> {
        let trigger = self.trigger.iter().find_map(|limit| self.reached(*limit, conversation, reported))?;
        let split = keep::split(conversation.messages(), self.kept(), self.context_tokens)?;
        Some(plan::plan(self, conversation, trigger, &split))
    }

    /// The limit, where it is reached. An earlier summary counts as one more message.
    fn reached(
        &self,
        limit: Extent,
        conversation: &Conversation,
        reported: Option<u64>,
    ) -> Option<CompactionTrigger> {
        let tokens = || estimate::tokens(conversation, reported).max(reported.unwrap_or(0));
        let (unit, used, limit) = match limit {
            Extent::Messages(limit) => {
                let messages = conversation.messages().len() + usize::from(conversation.summary().is_some());
                (CompactionUnit::Messages, u64::try_from(messages).unwrap_or(u64::MAX), limit.into())
            }
            Extent::Tokens(limit) => (CompactionUnit::Tokens, tokens(), limit),
            Extent::Fraction(share) => {
                (CompactionUnit::Fraction, tokens(), share_of(self.context_tokens?, share))
            }
        };
        (used >= limit).then_some(CompactionTrigger { unit, used, limit })
    }

    fn keeps_messages(&self) -> bool {
        matches!(self.kept(), Extent::Messages(_))
    }

    fn kept(&self) -> Extent {
        match (self.keep, self.context_tokens) {
            (Extent::Fraction(_), None) => Extent::Messages(KEPT_MESSAGES_FALLBACK),
            (keep @ (Extent::Tokens(_) | Extent::Messages(_) | Extent::Fraction(_)), _) => keep,
        }
    }
}

/// A share of a number of tokens, at least one.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a context has far fewer than 2^53 tokens, and a share is from 0 to 1"
)]
fn share_of(tokens: u64, share: f64) -> u64 {
    ((tokens as f64 * share) as u64).max(1)
}
