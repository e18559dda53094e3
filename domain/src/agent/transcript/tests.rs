use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn reply(ids: &[&str]) -> Message {
    let call = |id: &&str| ToolCall { id: (*id).into(), name: "ls".into(), args: ToolArgs::parse("") };
    Message::Assistant(AssistantMessage {
        tool_calls: ids.iter().map(call).collect(),
        ..AssistantMessage::default()
    })
}

fn result(id: &str, content: &str) -> Message {
    Message::Tool(ToolMessage {
        content: content.into(),
        tool_call_id: id.into(),
        name: "ls".into(),
        ..Default::default()
    })
}

fn said(text: &str) -> Message {
    Message::Assistant(AssistantMessage { content: text.into(), ..AssistantMessage::default() })
}

fn interrupted(id: &str) -> Message {
    let Message::Tool(mut message) = result(id, INTERRUPTED) else { unreachable!() };
    message.status = ToolStatus::Error;
    Message::Tool(message)
}

#[track_caller]
fn check(given: Vec<Message>, expected: Vec<Message>) {
    assert_eq!(repaired(given), expected);
}

// Chain facts (f) line 101.
#[test]
fn line_101_every_call_is_answered_in_its_place() {
    let clean = vec![Message::human("x"), reply(&["a", "b"]), result("a", "1"), result("b", "2"), said("y")];
    check(clean.clone(), clean);
    check(
        vec![reply(&["a"]), Message::human("x")],
        vec![reply(&["a"]), interrupted("a"), Message::human("x")],
    );
    check(vec![result("orphan", "1"), said("y")], vec![said("y")]);
    check(
        vec![reply(&["a", "b"]), result("b", "2")],
        vec![reply(&["a", "b"]), interrupted("a"), result("b", "2")],
    );
    check(
        vec![reply(&["a"]), result("a", "1"), reply(&["a"]), result("a", "2")],
        vec![reply(&["a"]), result("a", "1"), reply(&["a"]), result("a", "2")],
    );
    check(
        vec![reply(&["a", "a"]), result("a", "1"), result("a", "2")],
        vec![reply(&["a", "a"]), result("a", "1"), result("a", "2")],
    );
}

/// One call of this tool without an id.
fn lost(name: &str) -> ToolCall {
    ToolCall { id: " ".into(), name: name.into(), args: ToolArgs::parse("") }
}

fn asking(calls: Vec<ToolCall>) -> Message {
    Message::Assistant(AssistantMessage { tool_calls: calls, ..AssistantMessage::default() })
}

fn of(name: &str, id: &str, content: &str) -> Message {
    Message::Tool(ToolMessage {
        content: content.into(),
        tool_call_id: id.into(),
        name: name.into(),
        ..ToolMessage::default()
    })
}

fn named(at: usize, position: usize, name: &str) -> ToolCall {
    let id = format!("deerflow_synthetic_tool_call_{at}_call_{position}");
    ToolCall { id, name: name.into(), args: ToolArgs::parse("") }
}

fn error(call: &ToolCall) -> Message {
    let Message::Tool(mut message) = of(&call.name, &call.id, INTERRUPTED) else { unreachable!() };
    message.status = ToolStatus::Error;
    Message::Tool(message)
}

// Chain facts (f) line 102.
#[test]
fn line_102_calls_without_ids_get_some() {
    let (first, second) = (named(1, 0, "bash"), named(1, 1, "bash"));
    let both = || vec![Message::human("x"), asking(vec![lost("bash"), lost("bash")])];
    check(
        [both(), vec![of("bash", "", "1"), of("bash", "", "2")]].concat(),
        vec![
            Message::human("x"),
            asking(vec![first.clone(), second.clone()]),
            of("bash", &first.id, "1"),
            of("bash", &second.id, "2"),
        ],
    );
    check(
        [both(), vec![of("bash", "", "1")]].concat(),
        vec![Message::human("x"), asking(vec![first.clone(), second.clone()]), error(&first), error(&second)],
    );
    // Results go to calls of their own tool.
    let (ls, bash) = (named(0, 0, "ls"), named(0, 1, "bash"));
    check(
        vec![asking(vec![lost("ls"), lost("bash")]), of("bash", "", "b"), of("ls", "", "l")],
        vec![asking(vec![ls.clone(), bash.clone()]), of("ls", &ls.id, "l"), of("bash", &bash.id, "b")],
    );
}

// Chain facts §2.6: why there is no result, and what to do.
#[test]
fn a_call_that_could_not_be_run_says_why() {
    let call =
        |name: &str, args: &str| ToolCall { id: "a".into(), name: name.into(), args: ToolArgs::parse(args) };
    for (call, name, expected) in [
        (call("", "{}"), "unknown_tool", "names no tool"),
        (call("ls", "{\"path\": "), "ls", "Call it again with complete arguments"),
        (call("ls", "[1]"), "ls", "are not a complete JSON object"),
        (call("write_file", "{\"content\": \"long"), "write_file", "Do not send the same content again"),
    ] {
        let sent = repaired(vec![asking(vec![call])]);
        let [Message::Assistant(reply), Message::Tool(result)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(
            (reply.tool_calls[0].name.as_str(), &reply.tool_calls[0].args),
            (name, &ToolArgs::parse("{}"))
        );
        assert!(result.content.contains(expected), "{}", result.content);
        assert_eq!(result.status, ToolStatus::Error);
    }
}

#[test]
fn a_reply_that_says_and_asks_nothing_is_left_out() {
    check(
        vec![Message::human("x"), said(" \n"), Message::human("y")],
        vec![Message::human("x"), Message::human("y")],
    );
    check(vec![reply(&[]), result("a", "1"), said("y")], vec![said("y")]);
}

/// What a strict provider has against a conversation, written down without regard to how it is
/// repaired.
fn refusal(messages: &[Message]) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match message {
            Message::Tool(result) => {
                if open.first() != Some(&result.tool_call_id.as_str()) {
                    return Some(format!("{:?} answers nothing, or out of turn", result.tool_call_id));
                }
                open.remove(0);
            }
            _ if !open.is_empty() => return Some(format!("{open:?} have no results")),
            Message::Assistant(reply) => {
                if reply.tool_calls.is_empty() && reply.content.trim().is_empty() {
                    return Some("an empty reply".to_owned());
                }
                for call in &reply.tool_calls {
                    if call.id.trim().is_empty() || call.name.trim().is_empty() {
                        return Some(format!("{call:?} has no id or no name"));
                    }
                    if matches!(call.args, ToolArgs::Invalid(_)) {
                        return Some(format!("the arguments of {call:?} are no object"));
                    }
                }
                open = reply.tool_calls.iter().map(|call| call.id.as_str()).collect();
            }
            Message::System(_) | Message::Human(_) => {}
        }
    }
    (!open.is_empty()).then(|| format!("{open:?} have no results"))
}

fn arb_id() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", " ", "a", "b", "deerflow_synthetic_tool_call_1_call_0"])
        .prop_map(str::to_owned)
}

fn arb_call() -> impl Strategy<Value = ToolCall> {
    let names = prop::sample::select(vec!["", "ls", "bash", "write_file"]);
    let args = prop::sample::select(vec!["", "{}", "{\"path\": \"", "[1]", "null"]);
    (arb_id(), names, args).prop_map(|(id, name, args)| ToolCall {
        id,
        name: name.into(),
        args: ToolArgs::parse(args),
    })
}

fn arb_conversation() -> impl Strategy<Value = Vec<Message>> {
    let spoken = (prop::sample::select(vec!["", " ", "text"]), prop::collection::vec(arb_call(), 0..4))
        .prop_map(|(text, tool_calls)| {
            Message::Assistant(AssistantMessage {
                content: text.into(),
                tool_calls,
                ..AssistantMessage::default()
            })
        });
    let names = prop::sample::select(vec!["", "ls", "bash"]);
    let returned = (arb_id(), names).prop_map(|(id, name)| of(name, &id, "r"));
    let message = prop_oneof![3 => spoken, 4 => returned, 1 => Just(Message::human("x"))];
    prop::collection::vec(message, 0..24)
}

proptest! {
    /// Whatever was recorded, a strict provider takes what is sent.
    #[test]
    fn a_repaired_conversation_is_one_that_a_strict_provider_accepts(given in arb_conversation()) {
        let sent = repaired(given.clone());
        prop_assert_eq!(refusal(&sent), None, "{:?}", sent);
        // What is already right is not touched, so repairing twice changes nothing.
        if refusal(&given).is_none() {
            prop_assert_eq!(&sent, &given);
        }
        prop_assert_eq!(repaired(sent.clone()), sent.clone());
        // No words and no question get lost.
        let spoken = |messages: &[Message]| -> Vec<String> {
            let is_tool = |message: &&Message| matches!(message, Message::Tool(_));
            let said = messages.iter().filter(|message| !is_tool(message)).map(|message| message.content().trim());
            said.filter(|text| !text.is_empty()).map(str::to_owned).collect()
        };
        prop_assert_eq!(spoken(&sent), spoken(&given));
        // Nor is anything answered that was not asked.
        let ids: HashSet<&str> = given.iter().filter_map(Message::as_assistant)
            .flat_map(|reply| reply.tool_calls.iter().map(|call| call.id.as_str())).collect();
        for message in &sent {
            if let Message::Tool(result) = message {
                let id = result.tool_call_id.as_str();
                prop_assert!(ids.contains(id) || id.starts_with(SYNTHETIC_ID), "{id:?}");
            }
        }
    }
}
