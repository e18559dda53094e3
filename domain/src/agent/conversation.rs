//! What an agent's model is shown of what was said: all of it, or a summary and the newest part.

use super::{
    AgentEvent,
    delegated::{self, DelegatedTask},
};
use crate::{
    event::{Compacted, Compaction},
    message::Message,
};

/// A conversation, as far as a model is shown it. What was compacted away is in the log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    /// Oldest first; never a system message.
    messages: Vec<Message>,
    /// Stands for everything that was said before the messages.
    summary: Option<String>,
    /// What was delegated, oldest first, and what came of it: also by messages that are gone.
    delegated: Vec<DelegatedTask>,
}

impl From<Vec<Message>> for Conversation {
    fn from(messages: Vec<Message>) -> Self {
        let mut conversation = Self::default();
        messages.into_iter().for_each(|message| conversation.say(message));
        conversation
    }
}

impl Conversation {
    /// Takes what an event adds to it, or takes away. The framework's own words are no part of it:
    /// each run has its own.
    pub fn take(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Said(message) => self.say(*message),
            AgentEvent::Compacted(compaction) => self.compact(&compaction),
            AgentEvent::Delegated
            | AgentEvent::ToolStarted(_)
            | AgentEvent::CallDropped(_)
            | AgentEvent::Capped(_) => {}
        }
    }

    /// The messages, oldest first.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What stands for everything before the messages.
    pub fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    /// What was delegated, oldest first: the newest of it, if it is much.
    pub fn delegated(&self) -> &[DelegatedTask] {
        &self.delegated
    }

    pub(super) fn say(&mut self, message: Message) {
        if !matches!(message, Message::System(_)) {
            delegated::observe(&mut self.delegated, &message);
            self.messages.push(message);
        }
    }

    /// Keeps what the event says. Places are counted from the newest message, so that they mean the
    /// same where a run before this one was erased.
    pub(crate) fn compact(&mut self, compaction: &Compaction) {
        let Some(Compacted { summary, kept, protected, .. }) = compaction.compacted() else { return };
        let count = self.messages.len();
        let place = |index: usize| u32::try_from(count - index).unwrap_or(u32::MAX);
        let messages = std::mem::take(&mut self.messages).into_iter().enumerate();
        // Only what was asked for is ever protected; a place that means something else by now,
        // because a run was erased, keeps nothing.
        let stays = |index: usize, message: &Message| {
            place(index) <= *kept
                || (protected.contains(&place(index)) && matches!(message, Message::Human(_)))
        };
        self.messages =
            messages.filter(|(index, message)| stays(*index, message)).map(|(_, message)| message).collect();
        self.summary = Some(summary.clone());
    }
}
