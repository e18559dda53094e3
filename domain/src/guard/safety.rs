//! A reply that the provider ended for safety (chain facts §2.11). It is no answer and its calls are
//! not carried out: nobody knows whether they are whole or meant.
//!
//! What was said until then is kept. The audit names the tools, never their arguments.

use serde_json::json;

use super::{last_words, notes};
use crate::{
    event::{Cap, CapAction, CapAxis},
    limits::NAME_CHARS_MAX,
    message::AssistantMessage,
    text,
};

/// Where a reply says which stop was found, and what it took away.
pub(crate) const SAFETY_TERMINATION_KEY: &str = "safety_termination";
/// The field that adapters put a provider's own word for the end into.
const REASON_FIELD: &str = "finish_reason";
/// Which words mean it, by the detector that knows them; the first that fits is named.
const DETECTORS: [(&str, &[&str]); 3] = [
    ("content_filter", &["content_filter"]),
    ("refusal", &["refusal"]),
    (
        "gemini",
        &[
            "SAFETY",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "RECITATION",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
        ],
    ),
];

/// A safety stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SafetyStop {
    /// Who found it.
    pub(crate) detector: &'static str,
    /// The provider's word, cut to the bound of a name.
    pub(crate) value: String,
}

/// The safety stop of a reply, if it has one. Upper and lower case are the same.
pub(crate) fn detect(reply: &AssistantMessage) -> Option<SafetyStop> {
    let value = reply.response_metadata.finish_reason.as_deref()?;
    let knows = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(value));
    let (detector, _) = DETECTORS.into_iter().find(|(_, words)| knows(words))?;
    Some(SafetyStop { detector, value: text::prefix(value, NAME_CHARS_MAX).text })
}

/// Ends the work with the reply. Calls are taken out and silence is explained; a text without calls
/// stays as it is. The finish reason stays in any case.
pub(super) fn stop(reply: &mut AssistantMessage, found: &SafetyStop) -> Cap {
    if !reply.tool_calls.is_empty() || reply.content.trim().is_empty() {
        let names: Vec<String> =
            reply.tool_calls.iter().map(|call| text::prefix(&call.name, NAME_CHARS_MAX).text).collect();
        let termination = json!({
            "detector": found.detector, "reason_field": REASON_FIELD, "reason_value": found.value,
            "count": names.len(), "names": names,
        });
        if reply.content.trim().is_empty() {
            reply.content.clear();
        }
        last_words::end(reply, &notes::safety_stop(found, names.len()));
        reply.additional_kwargs.insert(SAFETY_TERMINATION_KEY.to_owned(), termination);
    }
    Cap { axis: CapAxis::Safety, action: CapAction::Stop, used: 1, budget: 0 }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::message::{ResponseMetadata, ToolArgs, ToolCall};

    fn reply(finish: &str, content: &str, calls: &[&str]) -> AssistantMessage {
        let call = |name: &&str| ToolCall {
            id: (*name).into(),
            name: (*name).into(),
            args: ToolArgs::parse("{\"secret\": \"s3cret\"}"),
        };
        AssistantMessage {
            content: content.into(),
            tool_calls: calls.iter().map(call).collect(),
            response_metadata: ResponseMetadata { finish_reason: Some(finish.into()), model_name: None },
            ..AssistantMessage::default()
        }
    }

    #[track_caller]
    fn check(given: AssistantMessage, content: &str, termination: Option<Value>) {
        let finish = given.response_metadata.clone();
        let mut stopped = given;
        let found = detect(&stopped).unwrap();
        let cap = stop(&mut stopped, &found);
        assert_eq!((cap.axis, cap.action), (CapAxis::Safety, CapAction::Stop));
        assert_eq!((stopped.content.as_str(), stopped.tool_calls.len()), (content, 0));
        assert_eq!(stopped.response_metadata, finish);
        assert_eq!(stopped.additional_kwargs.get(SAFETY_TERMINATION_KEY), termination.as_ref());
        assert!(!serde_json::to_string(&stopped).unwrap().contains("s3cret"), "arguments are nowhere");
    }

    // Chain facts (f) line 103.
    #[test]
    fn line_103_calls_go_and_text_stays() {
        let termination = |detector: &str, value: &str, names: &[&str]| {
            Some(json!({"detector": detector, "reason_field": "finish_reason", "reason_value": value,
                "count": names.len(), "names": names}))
        };
        check(
            reply("content_filter", "so far", &["task"]),
            "so far\n\n[SAFETY STOP] The provider ended this reply for safety (finish_reason content_filter). \
             1 tool call in it was not carried out.",
            termination("content_filter", "content_filter", &["task"]),
        );
        check(reply("content_filter", "half of it", &[]), "half of it", None);
        check(
            reply("refusal", " ", &[]),
            "[SAFETY STOP] The provider ended this reply for safety (finish_reason refusal). It says nothing.",
            termination("refusal", "refusal", &[]),
        );
        check(
            reply("PROHIBITED_CONTENT", "", &["ls", "bash"]),
            "[SAFETY STOP] The provider ended this reply for safety (finish_reason PROHIBITED_CONTENT). 2 tool \
             calls in it were not carried out.",
            termination("gemini", "PROHIBITED_CONTENT", &["ls", "bash"]),
        );
    }

    #[test]
    fn other_ends_are_none() {
        for finish in ["stop", "tool_calls", "length", "", "safe"] {
            assert_eq!(detect(&reply(finish, "", &[])), None, "{finish}");
        }
        assert_eq!(detect(&AssistantMessage::default()), None);
        assert_eq!(detect(&reply("Content_Filter", "", &[])).unwrap().detector, "content_filter");
    }
}
