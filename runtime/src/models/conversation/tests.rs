use domain::message::ToolArgs;

use super::*;

fn reply(ids: &[&str]) -> AssistantMessage {
    let call = |id: &&str| ToolCall { id: (*id).into(), name: "ls".into(), args: ToolArgs::parse("") };
    AssistantMessage { tool_calls: ids.iter().map(call).collect(), ..AssistantMessage::default() }
}

fn result(id: &str, content: &str, status: ToolStatus) -> Message {
    Message::Tool(ToolMessage {
        content: content.into(),
        tool_call_id: id.into(),
        name: "ls".into(),
        status,
        ..ToolMessage::default()
    })
}

#[test]
fn every_call_is_answered_once_behind_its_reply() {
    let (called, empty) = (reply(&["a", "b", "c"]), reply(&[]));
    let messages = [
        Message::system("s\n"),
        Message::human("hi"),
        Message::Assistant(called.clone()),
        result("stray", "?", ToolStatus::Success),
        result("b", "2", ToolStatus::Error),
        Message::system("note"),
        result("a", "1", ToolStatus::Success),
        result("a", "again", ToolStatus::Success),
        Message::Assistant(empty.clone()),
    ];
    let [a, b, c] = called.tool_calls.as_slice() else { unreachable!() };
    let results = vec![
        CallResult { call: a, content: "1", is_error: false },
        CallResult { call: b, content: "2", is_error: true },
        CallResult { call: c, content: NO_RESULT, is_error: true },
    ];
    let turns = vec![Turn::Said("hi"), Turn::Replied(&called, results), Turn::Replied(&empty, Vec::new())];
    assert_eq!(Conversation::of(&messages), Conversation { system: "s\n\nnote".into(), turns });
}

// Field report 53: after a compaction a conversation may begin anywhere.
#[test]
fn a_conversation_begins_with_a_person() {
    let said = reply(&[]);
    let messages = [result("x", "lost", ToolStatus::Success), Message::Assistant(said.clone())];
    let turns = vec![Turn::Said(LOST_BEGINNING), Turn::Replied(&said, Vec::new())];
    assert_eq!(Conversation::of(&messages), Conversation { system: String::new(), turns });
}
