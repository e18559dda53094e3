use domain::message::ImageType;
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
    let turns = vec![
        Turn::Said("hi".into(), &[]),
        Turn::Replied(&called, results),
        Turn::Replied(&empty, Vec::new()),
    ];
    assert_eq!(Conversation::of(&messages, true), Conversation { system: "s\n\nnote".into(), turns });
}

// Field report 53: after a compaction a conversation may begin anywhere.
#[test]
fn a_conversation_begins_with_a_person() {
    let said = reply(&[]);
    let messages = [result("x", "lost", ToolStatus::Success), Message::Assistant(said.clone())];
    let turns = vec![Turn::Said(LOST_BEGINNING.into(), &[]), Turn::Replied(&said, Vec::new())];
    assert_eq!(Conversation::of(&messages, true), Conversation { system: String::new(), turns });
}

fn pictured(content: &str) -> Message {
    let images = vec![Image { media_type: ImageType::Png, data: "abcd".into() }];
    Message::Human(HumanMessage { content: content.into(), id: None, images })
}

#[test]
fn a_model_that_reads_no_images_is_told_that_some_are_left_out() {
    let messages = [pictured("what is it?\n"), pictured(" ")];
    let shown = |supports_vision| {
        let turns = Conversation::of(&messages, supports_vision).turns;
        let shown = |turn: &Turn<'_>| match turn {
            Turn::Said(text, images) => (text.to_string(), images.len()),
            Turn::Replied(..) => panic!("nobody replied"),
        };
        turns.iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(shown(true), [("what is it?\n".to_owned(), 1), (" ".to_owned(), 1)]);
    assert_eq!(shown(false), [(format!("what is it?\n\n{LEFT_OUT}"), 0), (LEFT_OUT.to_owned(), 0)]);
}
