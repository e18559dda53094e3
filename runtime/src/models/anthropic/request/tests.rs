use domain::message::{HumanMessage, Image, ImageType, Message, ToolCall, ToolMessage, ToolStatus};

use super::*;
use crate::models::AgentTag;

fn call(id: &str, name: &str, args: ToolArgs) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), args }
}

fn reply(content: &str, calls: &[ToolCall]) -> AssistantMessage {
    AssistantMessage { content: content.into(), tool_calls: calls.to_vec(), ..AssistantMessage::default() }
}

fn result(id: &str, content: &str) -> Message {
    Message::Tool(ToolMessage {
        tool_call_id: id.into(),
        content: content.into(),
        name: "ls".into(),
        ..ToolMessage::default()
    })
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[track_caller]
fn check(conversation: &[Message], expected: Value) {
    let mut sent = messages("local", &Conversation::of(conversation, true).turns);
    let last = sent.as_array_mut().unwrap().last_mut().unwrap();
    let last = last["content"].as_array_mut().unwrap().last_mut().unwrap().as_object_mut().unwrap();
    assert_eq!(last.remove("cache_control"), Some(json!({"type": "ephemeral"})));
    assert_eq!(sent, expected);
}

#[test]
fn results_are_the_first_blocks_behind_their_calls() {
    let args = || ToolArgs::parse("{\"p\":1}");
    let failed = Message::Tool(ToolMessage {
        tool_call_id: "b".into(),
        status: ToolStatus::Error,
        ..ToolMessage::default()
    });
    check(
        &[
            Message::human("hi"),
            Message::Assistant(reply("Looking.", &[call("a", "ls", args()), call("b", "ls", args())])),
            failed,
            result("a", "1"),
            Message::human("and?"),
        ],
        json!([
            {"role": "user", "content": [text("hi")]},
            {"role": "assistant", "content": [
                text("Looking."),
                {"type": "tool_use", "id": "a", "name": "ls", "input": {"p": 1}},
                {"type": "tool_use", "id": "b", "name": "ls", "input": {"p": 1}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "content": NO_OUTPUT, "is_error": true},
                text("and?"),
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
            Message::Assistant(reply(" \n", &[])),
            Message::human("  "),
            Message::human("b"),
            Message::Assistant(reply("c", &[])),
        ],
        json!([
            {"role": "user", "content": [text("(The beginning of this conversation was left out.)")]},
            {"role": "assistant", "content": [text("yes")]},
            {"role": "user", "content": [text("a"), text("b")]},
            {"role": "assistant", "content": [text("c")]},
            {"role": "user", "content": [text(GO_ON)]},
        ]),
    );
    check(&[], json!([{"role": "user", "content": [text(GO_ON)]}]));
}

// Field report 48: the ids of other providers repeat, and may have other letters.
#[test]
fn an_id_stands_for_one_call_in_the_whole_conversation() {
    let turn = |id: &str| {
        let called = call(id, "web search", ToolArgs::Invalid("{\"p".into()));
        [Message::human("x"), Message::Assistant(reply("", &[called])), result(id, "1")]
    };
    let conversation = [turn("call_1"), turn("call_1"), turn("functions.ls:0")].concat();
    let sent = messages("local", &Conversation::of(&conversation, true).turns);
    let ids: Vec<_> = sent
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["content"].as_array().unwrap())
        .filter_map(|block| block["id"].as_str().or(block["tool_use_id"].as_str()))
        .collect();
    assert_eq!(ids, ["call_1", "call_1", "call_1_2", "call_1_2", "functions_ls_0", "functions_ls_0"]);
    assert_eq!(sent[1]["content"][0]["name"], "web_search");
    assert_eq!(sent[1]["content"][0]["input"], json!({}));
}

#[test]
fn a_body_holds_what_was_configured_and_nothing_else() {
    let request = ModelRequest {
        messages: vec![Message::system("s"), Message::human("hi")],
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
        model: "claude".into(),
        max_tokens: Some(9),
        temperature: Some(0.5),
        supports_vision: false,
    };
    let cached = json!({"type": "ephemeral"});
    assert_eq!(
        body(&wire, &request),
        json!({
            "model": "claude", "max_tokens": 9, "temperature": 0.5, "stream": true,
            "system": [{"type": "text", "text": "s", "cache_control": cached}],
            "tools": [{"name": "ls", "description": "lists", "input_schema": {"type": "object"}}],
            "messages": [{"role": "user", "content":
                [{"type": "text", "text": "hi", "cache_control": cached}]}],
        })
    );
    let bare = Wire { max_tokens: None, temperature: None, ..wire };
    let messages = vec![Message::human("hi")];
    let body = body(&bare, &ModelRequest { messages, tools: [].into(), ..request });
    assert_eq!(body["max_tokens"], MAX_TOKENS_DEFAULT);
    for absent in ["tools", "temperature", "system"] {
        assert_eq!(body.get(absent), None, "{absent}");
    }
}

#[test]
fn images_stand_before_the_text() {
    let images = vec![Image { media_type: ImageType::Jpeg, data: "abcd".into() }];
    let asked = [Message::Human(HumanMessage { content: "what?".into(), id: None, images })];
    let turns = Conversation::of(&asked, true).turns;
    let source = json!({"type": "base64", "media_type": "image/jpeg", "data": "abcd"});
    let sent = messages("local", &turns);
    assert_eq!(sent[0]["content"][0], json!({"type": "image", "source": source}));
    assert_eq!(sent[0]["content"][1]["text"], "what?");
    let turns = Conversation::of(&asked, false).turns;
    assert!(
        messages("local", &turns)[0]["content"][0]["text"].as_str().unwrap().starts_with("what?\n\n(Images")
    );
}
