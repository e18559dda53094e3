//! What of a conversation stays: its newest part, and the request that it is about.

use super::{Extent, estimate, share_of};
use crate::message::Message;

/// Where a conversation is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Split {
    /// The first message of the newest part.
    pub(super) kept_from: usize,
    /// Places of older messages that stay as well, oldest first.
    pub(super) protected: Vec<usize>,
}

impl Split {
    /// Whether the message at this place goes.
    pub(super) fn goes(&self, index: usize) -> bool {
        index < self.kept_from && !self.protected.contains(&index)
    }
}

/// Cuts the conversation so that this much is kept. `None` when nothing would go.
///
/// A reply and the results of its calls stay or go together, and the newest message always stays:
/// it is what the model is to react to. The newest request stays too, wherever it stands: it is the
/// task.
pub(super) fn split(messages: &[Message], keep: Extent, context_tokens: Option<u64>) -> Option<Split> {
    let kept_from = with_its_reply(messages, kept_from(messages, keep, context_tokens));
    let protected: Vec<usize> = newest_request(messages).filter(|index| *index < kept_from).collect();
    (kept_from > protected.len()).then_some(Split { kept_from, protected })
}

fn kept_from(messages: &[Message], keep: Extent, context_tokens: Option<u64>) -> usize {
    match keep {
        Extent::Messages(count) => {
            messages.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX).max(1))
        }
        Extent::Tokens(budget) => within(messages, budget),
        Extent::Fraction(share) => {
            within(messages, context_tokens.map_or(u64::MAX, |all| share_of(all, share)))
        }
    }
}

/// The beginning of the longest newest part that the budget has room for.
fn within(messages: &[Message], budget: u64) -> usize {
    let mut used = 0_u64;
    for (index, message) in messages.iter().enumerate().rev() {
        used = used.saturating_add(estimate::of_message(message));
        if used > budget {
            return (index + 1).min(messages.len().saturating_sub(1));
        }
    }
    0
}

/// Moves a cut between a reply and its results back before the reply; behind results that no reply
/// stands before.
fn with_its_reply(messages: &[Message], cut: usize) -> usize {
    let is_result = |index: usize| matches!(messages.get(index), Some(Message::Tool(_)));
    if !is_result(cut) {
        return cut;
    }
    let first = (0..cut).rev().take_while(|index| is_result(*index)).last().unwrap_or(cut);
    let before = first.checked_sub(1).and_then(|index| messages.get(index));
    if before.is_some_and(|message| message.as_assistant().is_some()) {
        return first - 1;
    }
    (cut..messages.len()).find(|index| !is_result(*index)).unwrap_or(messages.len())
}

/// Places of the newest request: the last thing that a person asked, or the task of a subagent,
/// which may be several messages that follow on one another.
fn newest_request(messages: &[Message]) -> impl Iterator<Item = usize> {
    let is_human = |index: &usize| matches!(messages.get(*index), Some(Message::Human(_)));
    let last = (0..messages.len()).rev().find(|index| is_human(index));
    let first = last.and_then(|last| (0..=last).rev().take_while(is_human).last());
    first.zip(last).into_iter().flat_map(|(first, last)| first..=last)
}
