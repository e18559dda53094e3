//! Steps: a subagent's messages as people see them, cut to bounds, so that a card stays small
//! whatever a tool returned. The whole message is recorded beside it.

use std::io;

use serde::Serialize as _;
use serde_json::{Map, Serializer, Value, ser::Formatter};

use crate::{
    event::{CapturedCall, Step, StepBody},
    ids::ToolCallId,
    limits::{END_TEXT_CHARS_MAX, STEP_TEXT_CHARS_MAX},
    message::{Message, ToolArgs, ToolCall},
    text::{self, Bounded},
};

/// Makes a step of a message (facts §6.2). Only what a model replied and what a tool returned are
/// steps; anything else is `None`. `message_index` counts the captured messages from 1.
pub fn capture(task_id: &ToolCallId, message_index: u32, message: &Message) -> Option<Step> {
    let body = match message {
        Message::Assistant(message) => {
            StepBody::Ai { tool_calls: message.tool_calls.iter().map(capture_call).collect() }
        }
        Message::Tool(message) => StepBody::Tool { tool_name: message.name.clone() },
        Message::System(_) | Message::Human(_) => return None,
    };
    let Bounded { text, is_truncated } = text::prefix(message.content(), STEP_TEXT_CHARS_MAX);
    Some(Step { task_id: task_id.clone(), message_index, text, truncated: is_truncated, body })
}

/// Cuts the result or the error that `subagent.end` carries (facts §6.3).
pub fn bounded_end_text(text: &str) -> Bounded {
    text::prefix(text, END_TEXT_CHARS_MAX)
}

/// Arguments within the bound keep their structure; over it, a prefix of their text is left.
fn capture_call(call: &ToolCall) -> CapturedCall {
    let (whole, serialised) = match &call.args {
        ToolArgs::Object(args) => (Value::Object(args.clone()), spaced_json(args)),
        ToolArgs::Invalid(text) => (Value::String(text.clone()), text.clone()),
    };
    let Bounded { text, is_truncated } = text::prefix(&serialised, STEP_TEXT_CHARS_MAX);
    let args = if is_truncated { Value::String(text) } else { whole };
    CapturedCall { name: call.name.clone(), args, args_truncated: is_truncated }
}

/// JSON with `", "` and `": "` between its parts and every character as it is: what the bound of
/// a call's arguments is measured on.
fn spaced_json(args: &Map<String, Value>) -> String {
    let mut bytes = Vec::new();
    let written = args.serialize(&mut Serializer::with_formatter(&mut bytes, Spaced));
    assert!(written.is_ok(), "a JSON object with text keys always serialises into memory");
    String::from_utf8_lossy(&bytes).into_owned()
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        if is_first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        if is_first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::message::{AssistantMessage, ToolMessage};

    fn task_id() -> ToolCallId {
        ToolCallId::new("call_1").unwrap()
    }

    fn reply(content: &str, args: Vec<ToolArgs>) -> Message {
        let call = |args| ToolCall { id: "c".into(), name: "ls".into(), args };
        let tool_calls = args.into_iter().map(call).collect();
        Message::Assistant(AssistantMessage { content: content.into(), tool_calls, ..Default::default() })
    }

    fn returned(content: &str) -> Message {
        Message::Tool(ToolMessage { content: content.into(), name: "bash".into(), ..Default::default() })
    }

    /// `{"a": "xx…"}` as text is this many characters longer than the x's.
    const WRAPPING_CHARS: usize = r#"{"a": ""}"#.len();

    fn object(value: Value) -> ToolArgs {
        let Value::Object(map) = value else { panic!("not an object: {value}") };
        ToolArgs::Object(map)
    }

    // Facts §12 line 86.
    #[test]
    fn text_is_cut_only_above_its_bound() {
        for (length, kept, truncated) in [(8_192, 8_192, false), (8_193, 8_192, true), (8_692, 8_192, true)] {
            for message in [reply(&"é".repeat(length), vec![]), returned(&"é".repeat(length))] {
                let step = capture(&task_id(), 1, &message).unwrap();
                assert_eq!((step.text.chars().count(), step.truncated), (kept, truncated), "{length}");
            }
        }
    }

    // Facts §12 line 87.
    #[track_caller]
    fn check_args(args: ToolArgs, expected: CapturedCall) {
        let step = capture(&task_id(), 1, &reply("", vec![args])).unwrap();
        assert_eq!(step.body, StepBody::Ai { tool_calls: vec![expected] });
    }

    #[test]
    fn arguments_over_the_bound_become_a_prefix_of_their_text() {
        let whole = |args: Value| CapturedCall { name: "ls".into(), args, args_truncated: false };
        let cut = |args: String| CapturedCall { args_truncated: true, ..whole(Value::String(args)) };

        let fits = "é".repeat(STEP_TEXT_CHARS_MAX - WRAPPING_CHARS);
        check_args(object(json!({"a": fits})), whole(json!({"a": fits})));
        let over = format!("{fits}é");
        check_args(object(json!({"a": over})), cut(format!("{{\"a\": \"{over}\"")));
        check_args(ToolArgs::Invalid("{\"pa".into()), whole(json!("{\"pa")));
        check_args(ToolArgs::Invalid("x".repeat(9_000)), cut("x".repeat(STEP_TEXT_CHARS_MAX)));
        check_args(object(json!({})), whole(json!({})));
    }

    #[test]
    fn arguments_are_measured_with_spaces_and_raw_characters() {
        let args = json!({"a": [1, 2.5, null], "ü": {"b": true, "c": "\n\""}});
        assert_eq!(
            spaced_json(args.as_object().unwrap()),
            r#"{"a": [1, 2.5, null], "ü": {"b": true, "c": "\n\""}}"#
        );
    }

    // Facts §12 line 88.
    #[test]
    fn no_content_is_empty_text() {
        assert_eq!(crate::message::text_of(&Value::Null), "");
        let step = capture(&task_id(), 0, &reply("", vec![])).unwrap();
        let expected = json!({"task_id": "call_1", "message_index": 0, "kind": "ai", "text": "", "truncated": false, "tool_calls": []});
        assert_eq!(serde_json::to_value(step).unwrap(), expected);
    }

    // Facts §12 line 89.
    #[test]
    fn a_reply_and_its_three_results_are_four_steps_in_order() {
        let messages = [reply("look", vec![]), returned("one"), returned("two"), returned("three")];
        let steps: Vec<_> =
            (1..).zip(&messages).filter_map(|(index, message)| capture(&task_id(), index, message)).collect();
        let seen: Vec<_> = steps.iter().map(|step| (step.message_index, step.text.as_str())).collect();
        assert_eq!(seen, [(1, "look"), (2, "one"), (3, "two"), (4, "three")]);
        assert_eq!(steps[3].body, StepBody::Tool { tool_name: "bash".into() });
    }

    #[test]
    fn what_nobody_replied_or_returned_is_no_step() {
        assert_eq!(capture(&task_id(), 1, &Message::human("hello")), None);
        assert_eq!(capture(&task_id(), 1, &Message::system("be good")), None);
    }

    // Facts §12 line 94.
    #[test]
    fn the_end_text_is_cut_above_its_bound() {
        assert!(!bounded_end_text(&"x".repeat(8_192)).is_truncated);
        let cut = bounded_end_text(&"x".repeat(8_193));
        assert_eq!((cut.text.len(), cut.is_truncated), (8_192, true));
    }

    proptest! {
        #[test]
        fn a_step_never_exceeds_its_bounds_and_survives_storage(
            content in "[a-z\u{1F600}漢\u{2028}\"]{0,40}", repeats in 1_usize..500, key in "[a-z\u{85}]{1,5}",
        ) {
            let content = content.repeat(repeats);
            let args = Map::from_iter([(key, json!([content.clone(), 1]))]);
            let message = reply(&content, vec![ToolArgs::Object(args.clone()), ToolArgs::parse(&content)]);
            let step = capture(&task_id(), 7, &message).unwrap();

            prop_assert_eq!(step.text.chars().count(), content.chars().count().min(STEP_TEXT_CHARS_MAX));
            prop_assert!(content.starts_with(&step.text));
            let StepBody::Ai { tool_calls } = &step.body else { panic!("an assistant message is an ai step") };
            prop_assert_eq!(tool_calls.len(), 2);
            prop_assert_eq!(tool_calls[0].args_truncated, spaced_json(&args).chars().count() > STEP_TEXT_CHARS_MAX);
            for call in tool_calls.iter().filter(|call| call.args_truncated) {
                prop_assert_eq!(call.args.as_str().unwrap().chars().count(), STEP_TEXT_CHARS_MAX);
            }
            let stored = serde_json::to_string(&step).unwrap();
            prop_assert_eq!(serde_json::from_str::<Step>(&stored).unwrap(), step);
        }
    }
}
