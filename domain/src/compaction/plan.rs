//! A compaction that is to be carried out, and what is recorded of it.

use super::{CompactionRules, estimate, keep::Split};
use crate::{
    agent::Conversation,
    event::{Compacted, Compaction, CompactionOutcome, CompactionTrigger, CompactionUnit, SummaryFailure},
    limits::SUMMARY_CHARS_MAX,
    message::Message,
    prompt::{SummaryMaterial, summary_request},
    text,
    usage::Usage,
};

/// A compaction that is to be carried out: ask for the summary, and record what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionPlan {
    /// What the model is asked that is to write the summary.
    pub request: Vec<Message>,
    /// The limit that was reached.
    pub trigger: CompactionTrigger,
    /// How many of the newest messages stay.
    pub kept: u32,
    /// Older messages that stay as well: places counted back from the newest message, which is 1.
    pub protected: Vec<u32>,
    /// Whether messages alone were counted, and no tokens estimated.
    pub is_exact: bool,
    messages_before: u32,
    tokens_before: u64,
    /// Tokens of the messages that stay.
    tokens_kept: u64,
}

pub(super) fn plan(
    rules: &CompactionRules,
    conversation: &Conversation,
    trigger: CompactionTrigger,
    split: &Split,
) -> CompactionPlan {
    let messages = conversation.messages();
    let numbered = || messages.iter().enumerate();
    let going: Vec<&Message> =
        numbered().filter(|(index, _)| split.goes(*index)).map(|(_, one)| one).collect();
    let staying = numbered().filter(|(index, _)| !split.goes(*index)).map(|(_, one)| one);
    let place = |index: &usize| count(messages.len() - index);
    CompactionPlan {
        request: summary_request(&SummaryMaterial {
            prompt: rules.prompt.as_deref(),
            existing: conversation.summary(),
            messages: &going,
            chars_max: rules.trim_tokens.map(estimate::chars_of),
        }),
        trigger,
        kept: count(messages.len() - split.kept_from),
        protected: split.protected.iter().map(place).collect(),
        is_exact: trigger.unit == CompactionUnit::Messages && rules.keeps_messages(),
        messages_before: count(messages.len()),
        tokens_before: estimate::tokens(conversation, None),
        tokens_kept: estimate::of_all(staying),
    }
}

impl CompactionPlan {
    /// What is recorded when a model gave a summary, after these others gave none.
    pub fn done(
        &self,
        model_name: &str,
        summary: &str,
        usage: Option<Usage>,
        failures: Vec<SummaryFailure>,
    ) -> Compaction {
        let summary = text::head_and_tail(summary.trim(), SUMMARY_CHARS_MAX).text;
        let protected = u32::try_from(self.protected.len()).unwrap_or(u32::MAX);
        let compacted = Compacted {
            model_name: model_name.to_owned(),
            kept: self.kept,
            protected: self.protected.clone(),
            messages_after: self.kept.saturating_add(protected),
            tokens_after: self.tokens_kept.saturating_add(estimate::summary_tokens(Some(&summary))),
            usage,
            summary,
        };
        self.compaction(failures, CompactionOutcome::Compacted(Box::new(compacted)))
    }

    /// What is recorded when none of the models gave a summary.
    pub fn failed(&self, failures: Vec<SummaryFailure>) -> Compaction {
        self.compaction(failures, CompactionOutcome::Failed)
    }

    fn compaction(&self, failures: Vec<SummaryFailure>, outcome: CompactionOutcome) -> Compaction {
        Compaction {
            trigger: self.trigger,
            messages_before: self.messages_before,
            tokens_before: self.tokens_before,
            failures,
            outcome,
        }
    }
}

fn count(messages: usize) -> u32 {
    u32::try_from(messages).unwrap_or(u32::MAX)
}
