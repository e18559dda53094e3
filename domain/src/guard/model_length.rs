//! A lead's answer that the model's own limit cut (chain facts §2.11). It stays as it is; whoever
//! reads it is told that there was more to come.

use crate::message::AssistantMessage;

/// What providers say when a reply was as long as it may be.
const CUT: [&str; 2] = ["length", "max_tokens"];

/// Whether the reply is an answer that was cut. One that calls tools is not an answer, and one
/// without text has nothing that could be cut.
pub(crate) fn is_cut(reply: &AssistantMessage) -> bool {
    let finish = reply.response_metadata.finish_reason.as_deref();
    reply.tool_calls.is_empty()
        && !reply.content.trim().is_empty()
        && finish.is_some_and(|finish| CUT.iter().any(|word| word.eq_ignore_ascii_case(finish)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ResponseMetadata, ToolArgs, ToolCall};

    #[track_caller]
    fn check(finish: &str, content: &str, calls: usize, expected: bool) {
        let call = ToolCall { id: "a".into(), name: "ls".into(), args: ToolArgs::parse("") };
        let reply = AssistantMessage {
            content: content.into(),
            tool_calls: vec![call; calls],
            response_metadata: ResponseMetadata { finish_reason: Some(finish.into()), model_name: None },
            ..AssistantMessage::default()
        };
        assert_eq!(is_cut(&reply), expected, "{finish} {content:?} {calls}");
    }

    // Chain facts (f) line 104.
    #[test]
    fn line_104_only_text_without_calls_is_cut() {
        for finish in ["length", "max_tokens", "MAX_TOKENS"] {
            check(finish, "so far", 0, true);
            check(finish, "so far", 1, false);
            check(finish, " ", 0, false);
        }
        check("stop", "so far", 0, false);
    }
}
