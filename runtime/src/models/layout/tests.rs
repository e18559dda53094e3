use domain::message::ToolArgs;

use super::*;

fn call(id: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "ls".into(), args: ToolArgs::parse("") }
}

fn extra(signature: &str) -> Map<String, Value> {
    Map::from_iter([("sig".to_owned(), signature.into())])
}

/// Thinking, text, thinking, a call, text, and a signed call.
fn reply() -> AssistantMessage {
    let mut layout = Layout::default();
    layout.add_opaque(json!({"thinking": "hm"}));
    layout.add_text("é1", Map::new());
    layout.add_opaque(json!({"thinking": "ah"}));
    layout.add_call("a", Map::new());
    layout.add_text("two", extra("t"));
    layout.add_call("b", extra("c"));
    let mut reply = AssistantMessage {
        content: "é1two".into(),
        tool_calls: vec![call("a"), call("b")],
        ..AssistantMessage::default()
    };
    layout.keep_in(&mut reply.additional_kwargs, "local");
    reply
}

fn shown(reply: &AssistantMessage, model: &str) -> String {
    let of_block = |block: &Block<'_>| match block {
        Block::Opaque(value) => format!("<{}>", value["thinking"].as_str().unwrap_or("?")),
        Block::Text(text, extra) => format!("{text}{}", extra.map_or("", |_| "+")),
        Block::Call(at, call, extra) => format!("{}#{at}{}", call.id, extra.map_or("", |_| "+")),
    };
    blocks(reply, model).iter().map(of_block).collect::<Vec<_>>().join(" ")
}

// Field report 90.
#[test]
fn blocks_come_again_as_they_lay_for_their_own_model_only() {
    assert_eq!(shown(&reply(), "local"), "<hm> é1 <ah> a#0 two+ b#1+");
    assert_eq!(shown(&reply(), "other"), "é1two a#0 b#1");
}

#[test]
fn what_guards_changed_gives_way() {
    let mut stripped = reply();
    stripped.tool_calls.remove(0);
    stripped.content.push_str("\n\nnote");
    assert_eq!(shown(&stripped, "local"), "<hm> é1 <ah> two+ \n\nnote b#0+");
    let mut stopped = reply();
    stopped.tool_calls.clear();
    stopped.content = "x".into();
    assert_eq!(shown(&stopped, "local"), "<hm> x <ah> +");
    let mut renamed = reply();
    renamed.tool_calls[1].id = "b-2".into();
    assert_eq!(shown(&renamed, "local"), "<hm> é1 <ah> a#0 two+ b-2#1");
}

// After a crash the history is read from the log, where secrets are masked.
#[test]
fn a_signed_block_that_was_masked_is_left_out() {
    let mut masked = reply();
    let blocks = masked.additional_kwargs.get_mut(LAYOUT_KEY).unwrap();
    blocks[0][OPAQUE]["thinking"] = "the key is [redacted:password:sha256=00000000]".into();
    assert_eq!(shown(&masked, "local"), "é1 <ah> a#0 two+ b#1+");
}

#[test]
fn signatures_are_no_secrets() {
    let signature = "EqQBCgIYAhIkZ8mQ3c1rVx0b9fK2pTq7LwYdN5sUo6HjGaBeCiDkElFmGnHoIpJqKrLsMtNuOvPwQxRy+/Sz==";
    let mut layout = Layout::default();
    layout.add_opaque(json!({"type": "thinking", "thinking": "hm", "signature": signature}));
    layout.add_opaque(json!({"type": "redacted_thinking", "data": signature}));
    layout.add_call("a", Map::from_iter([("thoughtSignature".to_owned(), signature.into())]));
    let mut kwargs = Map::new();
    layout.keep_in(&mut kwargs, "local");
    let stored = Value::from(kwargs).to_string();
    assert_eq!(domain::redaction::Redactor::standard().redact_json(&stored), None);
}

#[test]
fn without_anything_opaque_there_is_no_layout() {
    let mut layout = Layout::default();
    layout.add_text("x", Map::new());
    layout.add_call("a", Map::new());
    let mut kwargs = Map::new();
    layout.keep_in(&mut kwargs, "local");
    assert!(kwargs.is_empty());
    let plain = AssistantMessage { content: "x".into(), tool_calls: vec![call("a")], ..Default::default() };
    assert_eq!(shown(&plain, "local"), "x a#0");
}
