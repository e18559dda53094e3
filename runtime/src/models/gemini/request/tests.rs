use domain::message::{HumanMessage, Image, ImageType, Message, ToolCall, ToolMessage, ToolStatus};

use super::*;
use crate::models::AgentTag;

fn reply(content: &str, names: &[&str]) -> AssistantMessage {
    let call = |(at, name): (usize, &&str)| ToolCall {
        id: format!("call_{}", at + 1),
        name: (*name).into(),
        args: ToolArgs::parse(if at == 0 { "{\"p\":1}" } else { "{\"p" }),
    };
    AssistantMessage {
        content: content.into(),
        tool_calls: names.iter().enumerate().map(call).collect(),
        ..AssistantMessage::default()
    }
}

fn result(id: &str, content: &str, status: ToolStatus) -> Message {
    Message::Tool(ToolMessage {
        tool_call_id: id.into(),
        content: content.into(),
        status,
        ..ToolMessage::default()
    })
}

#[track_caller]
fn check(conversation: &[Message], expected: Value) {
    assert_eq!(contents("local", &Conversation::of(conversation, true).turns), expected);
}

#[test]
fn responses_come_together_in_the_order_of_their_calls() {
    check(
        &[
            Message::human("hi"),
            Message::Assistant(reply("Looking.", &["ls", "2 web search"])),
            result("call_2", "no", ToolStatus::Error),
            result("call_1", "", ToolStatus::Success),
            Message::human("and?"),
        ],
        json!([
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [
                {"text": "Looking."},
                {"functionCall": {"name": "ls", "args": {"p": 1}}},
                {"functionCall": {"name": "__web_search", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "ls", "response": {"output": ""}}},
                {"functionResponse": {"name": "__web_search", "response": {"error": "no"}}},
                {"text": "and?"},
            ]},
        ]),
    );
}

// Field reports 53 and 85.
#[test]
fn roles_take_turns_and_empty_texts_are_left_out() {
    check(
        &[
            Message::Assistant(reply("yes", &[])),
            Message::human("a"),
            Message::Assistant(reply(" ", &[])),
            Message::human("b"),
            Message::Assistant(reply("c", &[])),
        ],
        json!([
            {"role": "user", "parts": [{"text": "(The beginning of this conversation was left out.)"}]},
            {"role": "model", "parts": [{"text": "yes"}]},
            {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
            {"role": "model", "parts": [{"text": "c"}]},
            {"role": "user", "parts": [{"text": GO_ON}]},
        ]),
    );
    check(&[], json!([{"role": "user", "parts": [{"text": GO_ON}]}]));
}

#[test]
fn a_body_holds_what_was_configured_and_nothing_else() {
    let tool = |name: &str, parameters| ToolSpec { name: name.into(), description: "d".into(), parameters };
    let properties = json!({"path": {"type": "string"}});
    let request = ModelRequest {
        messages: vec![Message::system("s"), Message::human("hi")],
        tools: [
            tool("ls", json!({"type": "object", "properties": properties, "additionalProperties": false})),
            tool("pwd", json!({"type": "object", "properties": {}})),
        ]
        .into(),
        agent: AgentTag::Lead,
    };
    let wire = Wire {
        name: "local".into(),
        model: "gemini".into(),
        max_tokens: Some(9),
        temperature: Some(0.5),
        supports_vision: false,
    };
    assert_eq!(
        body(&wire, &request),
        json!({
            "systemInstruction": {"parts": [{"text": "s"}]},
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "tools": [{"functionDeclarations": [
                {"name": "ls", "description": "d", "parameters": {"type": "object", "properties": properties}},
                {"name": "pwd", "description": "d"},
            ]}],
            "generationConfig": {"maxOutputTokens": 9, "temperature": 0.5},
        })
    );
    let bare = Wire { max_tokens: None, temperature: None, ..wire };
    let messages = vec![Message::human("hi")];
    let body = body(&bare, &ModelRequest { messages, tools: [].into(), ..request });
    assert_eq!(body, json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}));
}

#[test]
fn images_stand_before_the_text() {
    let images = vec![Image { media_type: ImageType::Webp, data: "abcd".into() }];
    let asked = [Message::Human(HumanMessage { content: "what?".into(), id: None, images })];
    let image = json!({"inlineData": {"mimeType": "image/webp", "data": "abcd"}});
    check(&asked, json!([{"role": "user", "parts": [image, {"text": "what?"}]}]));
    let sent = contents("local", &Conversation::of(&asked, false).turns);
    assert!(sent[0]["parts"][0]["text"].as_str().unwrap().starts_with("what?\n\n(Images"), "{sent}");
}
