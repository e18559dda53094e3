use domain::message::{HumanMessage, Image, ImageType, SystemMessage, ToolMessage};

use super::*;
use crate::models::{
    AgentTag,
    conversation::{LOST_BEGINNING, NO_RESULT},
    dialect::OPAQUE_SOURCE_KEY,
};

fn assistant_with(calls: &[(&str, &str, ToolArgs)]) -> AssistantMessage {
    let call = |(id, name, args): &(&str, &str, ToolArgs)| ToolCall {
        id: (*id).into(),
        name: (*name).into(),
        args: args.clone(),
    };
    AssistantMessage { tool_calls: calls.iter().map(call).collect(), ..AssistantMessage::default() }
}

fn result(id: &str, content: &str) -> Message {
    Message::Tool(ToolMessage {
        tool_call_id: id.into(),
        content: content.into(),
        name: "ls".into(),
        ..ToolMessage::default()
    })
}

fn no_args() -> ToolArgs {
    ToolArgs::Object(Map::new())
}

#[track_caller]
fn check(conversation: &[Message], expected: Value) {
    assert_eq!(Value::from(messages(&wire(true), conversation)), expected);
}

#[test]
fn the_system_messages_become_one_that_leads() {
    check(
        &[
            Message::system("a\n"),
            Message::human("hi"),
            Message::System(SystemMessage::default()),
            Message::system("b"),
        ],
        json!([{"role": "system", "content": "a\n\nb"}, {"role": "user", "content": "hi"}]),
    );
}

#[test]
fn results_follow_their_calls_once_each_and_in_order() {
    let reply = assistant_with(&[("a", "ls", no_args()), ("b", "grep", ToolArgs::parse("{\"x\":1}"))]);
    check(
        &[
            Message::human("hi"),
            Message::Assistant(reply),
            result("stray", "?"),
            result("b", "2"),
            result("b", "again"),
        ],
        json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "grep", "arguments": "{\"x\":1}"}},
            ]},
            {"role": "tool", "tool_call_id": "a", "content": NO_RESULT},
            {"role": "tool", "tool_call_id": "b", "content": "2"},
        ]),
    );
}

#[test]
fn a_system_note_between_a_call_and_its_result_does_not_part_them() {
    check(
        &[
            Message::human("hi"),
            Message::Assistant(assistant_with(&[("a", "ls", no_args())])),
            Message::system("note"),
            result("a", "1"),
        ],
        json!([
            {"role": "system", "content": "note"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
        ]),
    );
}

// Field report 85, and unfinished arguments of the past.
#[test]
fn malformed_calls_of_the_past_are_sent_in_good_form() {
    let reply = assistant_with(&[
        ("", "", ToolArgs::Invalid("{\"path\": \"/mn".into())),
        ("b", "web search", ToolArgs::Invalid("[1]".into())),
    ]);
    check(
        &[Message::human("hi"), Message::Assistant(reply), result("", "no such tool")],
        json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "unknown_tool", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "web_search", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "no such tool"},
            {"role": "tool", "tool_call_id": "b", "content": NO_RESULT},
        ]),
    );
}

#[test]
fn a_conversation_never_begins_with_an_assistant_or_a_result() {
    let answer = AssistantMessage { content: "yes".into(), ..AssistantMessage::default() };
    check(
        &[Message::system("s"), result("x", "lost"), Message::Assistant(answer)],
        json!([
            {"role": "system", "content": "s"},
            {"role": "user", "content": LOST_BEGINNING},
            {"role": "assistant", "content": "yes"},
        ]),
    );
}

// Field report 90.
#[test]
fn opaque_fields_go_back_to_their_own_model_only() {
    let mut reply = assistant_with(&[("a", "ls", no_args())]);
    for (key, value) in [
        ("reasoning_content", json!("hm")),
        (CALL_EXTRAS_KEY, json!({"a": {"google": 1}})),
        ("subagent_status", json!("completed")),
    ] {
        reply.additional_kwargs.insert(key.into(), value);
    }
    for (source, is_shown) in [("local", true), ("other", false)] {
        reply.additional_kwargs.insert(OPAQUE_SOURCE_KEY.into(), source.into());
        let sent = assistant("local", &reply);
        assert_eq!(sent.get("reasoning_content").is_some(), is_shown, "{source}");
        assert_eq!(sent.pointer("/tool_calls/0/extra_content").is_some(), is_shown, "{source}");
        assert_eq!(sent.get("subagent_status"), None);
        assert_eq!(sent.get(OPAQUE_SOURCE_KEY), None);
    }
}

#[test]
fn a_body_holds_what_was_configured_and_nothing_else() {
    let request = ModelRequest {
        messages: vec![Message::Human(HumanMessage {
            content: "hi".into(),
            id: Some("m1".into()),
            images: Vec::new(),
        })],
        tools: [ToolSpec {
            name: "ls".into(),
            description: "lists".into(),
            parameters: json!({"type": "object"}),
        }]
        .into(),
        agent: AgentTag::Lead,
    };
    let wire = Wire {
        name: "local".into(),
        model: "qwen".into(),
        max_tokens: Some(9),
        temperature: Some(0.5),
        supports_vision: false,
    };
    assert_eq!(
        body(&wire, &request),
        json!({
            "model": "qwen", "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"type": "function", "function":
                {"name": "ls", "description": "lists", "parameters": {"type": "object"}}}],
            "max_tokens": 9, "temperature": 0.5,
            "stream": true, "stream_options": {"include_usage": true},
        })
    );
    let bare = Wire { max_tokens: None, temperature: None, ..wire };
    let body = body(&bare, &ModelRequest { tools: [].into(), ..request });
    for absent in ["tools", "max_tokens", "temperature"] {
        assert_eq!(body.get(absent), None, "{absent}");
    }
}

fn wire(supports_vision: bool) -> Wire {
    let (name, model) = ("local".into(), "qwen".into());
    Wire { name, model, max_tokens: None, temperature: None, supports_vision }
}

#[test]
fn images_are_blocks_beside_the_text_and_only_where_they_are_read() {
    let images = vec![Image { media_type: ImageType::Png, data: "abcd".into() }];
    let asked = [Message::Human(HumanMessage { content: "what?".into(), id: None, images })];
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,abcd"}});
    let content = json!([{"type": "text", "text": "what?"}, image]);
    check(&asked, json!([{"role": "user", "content": content}]));
    let blind = messages(&wire(false), &asked);
    let text = blind[0]["content"].as_str().unwrap();
    assert!(text.starts_with("what?\n\n(Images"), "{text}");
}
