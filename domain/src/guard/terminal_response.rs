//! An answer that says nothing, after tools have returned (chain facts §2.10). A person waits for
//! it, so the model is asked once more; if it is silent again, the framework says so in its place.

use serde_json::json;

use super::{Finding, RAW_CALL_KEYS, notes};
use crate::message::{AssistantMessage, ERROR_FALLBACK_KEY, ERROR_REASON_KEY};

/// The reason in a reply that stands for an answer which never came.
const EMPTY_REPLY: &str = "empty_reply";
/// Ends of a reply that say that it wants to call something, whatever came of it.
const CALL_INTENTS: [&str; 2] = ["tool_calls", "function_call"];

/// What a run's last words are so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TerminalResponse {
    /// Whether a tool has returned since somebody asked.
    has_results: bool,
    /// Whether the run has had its second chance.
    was_asked_again: bool,
    /// Whether that chance is now.
    is_asking: bool,
}

impl TerminalResponse {
    /// Somebody asked.
    pub(super) const fn asked(&mut self) {
        self.has_results = false;
    }

    /// A tool returned.
    pub(super) const fn returned(&mut self) {
        self.has_results = true;
    }

    /// Takes a reply: a warning asks for it once more, a stop gives it up.
    pub(super) fn judge(&mut self, reply: &AssistantMessage) -> Finding<()> {
        self.is_asking = false;
        if !self.has_results || !is_silent(reply) {
            return Finding::Fine;
        }
        if std::mem::replace(&mut self.was_asked_again, true) {
            return Finding::Stop(());
        }
        self.is_asking = true;
        Finding::Warn(())
    }

    /// Whether the last reply is none, and is asked for again.
    pub(super) const fn is_asking(&self) -> bool {
        self.is_asking
    }
}

/// Puts words into a reply that never came. It is marked, so that nobody takes it for an answer.
pub(super) fn give_up(reply: &mut AssistantMessage) {
    notes::NO_ANSWER.clone_into(&mut reply.content);
    reply.additional_kwargs.insert(ERROR_FALLBACK_KEY.to_owned(), json!(true));
    reply.additional_kwargs.insert(ERROR_REASON_KEY.to_owned(), json!(EMPTY_REPLY));
}

/// Neither words nor the wish to call something.
fn is_silent(reply: &AssistantMessage) -> bool {
    let finish = reply.response_metadata.finish_reason.as_deref();
    reply.content.trim().is_empty()
        && reply.tool_calls.is_empty()
        && !RAW_CALL_KEYS.iter().any(|key| reply.additional_kwargs.contains_key(*key))
        && !finish.is_some_and(|finish| CALL_INTENTS.contains(&finish))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ResponseMetadata;

    fn reply(content: &str, finish: &str) -> AssistantMessage {
        AssistantMessage {
            content: content.into(),
            response_metadata: ResponseMetadata { finish_reason: Some(finish.into()), model_name: None },
            ..AssistantMessage::default()
        }
    }

    // Chain facts (f) line 105.
    #[test]
    fn line_105_silence_after_a_tool_is_asked_about_once() {
        let mut last = TerminalResponse::default();
        assert_eq!(last.judge(&reply("", "stop")), Finding::Fine, "no tool has returned");
        last.returned();
        assert_eq!(last.judge(&reply("", "tool_calls")), Finding::Fine, "it wants to call something");
        assert_eq!(last.judge(&reply("words", "stop")), Finding::Fine);
        assert_eq!((last.judge(&reply(" \n", "stop")), last.is_asking()), (Finding::Warn(()), true));
        assert_eq!((last.judge(&reply("", "stop")), last.is_asking()), (Finding::Stop(()), false));
        let mut gone = reply("", "stop");
        give_up(&mut gone);
        assert!(gone.is_error_fallback() && gone.content == notes::NO_ANSWER);
    }

    #[test]
    fn a_new_question_needs_a_new_result() {
        let mut last = TerminalResponse::default();
        last.returned();
        last.asked();
        assert_eq!(last.judge(&reply("", "stop")), Finding::Fine);
    }

    #[test]
    fn a_raw_call_is_a_wish_to_call() {
        let mut last = TerminalResponse::default();
        last.returned();
        let mut raw = reply("", "stop");
        raw.additional_kwargs.insert("function_call".into(), json!({"name": "ls"}));
        assert_eq!(last.judge(&raw), Finding::Fine);
    }
}
