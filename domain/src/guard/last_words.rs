//! What makes the last words of an agent an answer.

use crate::{
    guard::{append_note, notes},
    message::AssistantMessage,
};

/// How the last words of an agent are looked at, frozen when its run started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LastWords {
    /// As they are: in runs that were started before anybody looked.
    #[default]
    Taken,
    /// A subagent's: a provider's safety stop ends its work, and a guard's note alone is no answer.
    OfSubagent,
    /// A lead's, which a person reads: an empty answer is asked for once more, and one that was cut
    /// is named, beside all that holds for a subagent.
    OfLead,
}

impl LastWords {
    /// Whether anybody looks.
    pub const fn are_checked(self) -> bool {
        match self {
            Self::Taken => false,
            Self::OfSubagent | Self::OfLead => true,
        }
    }

    /// Whether a person reads them.
    pub const fn are_for_a_person(self) -> bool {
        match self {
            Self::Taken | Self::OfSubagent => false,
            Self::OfLead => true,
        }
    }
}

/// Whether a text is nothing but the note of a guard that ended the work.
pub(crate) fn are_a_note_alone(text: &str) -> bool {
    notes::STOP_TAGS.iter().any(|tag| text.trim_start().starts_with(tag))
}

/// Takes all calls out of a reply, in every form, and says why. What the model said stays, and so
/// does how the provider says that it ended.
pub(super) fn end(reply: &mut AssistantMessage, note: &str) {
    reply.tool_calls.clear();
    for key in super::RAW_CALL_KEYS {
        reply.additional_kwargs.shift_remove(key);
    }
    append_note(reply, note);
}
