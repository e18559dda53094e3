//! Makes a conversation that any provider accepts: every call has its result, right after it.

use crate::message::{Message, ToolCall, ToolMessage, ToolStatus};

/// What the model is told of a call whose result was never recorded.
const INTERRUPTED: &str =
    "Error: this call was interrupted and its result is not known. Check before you repeat it.";

/// Puts results behind the reply that asked for them, in call order, drops results that nothing
/// asked for, and answers calls that were never answered. A repeated id is consumed first in,
/// first out. A clean transcript comes back as it was (chain facts §2.6).
pub(super) fn repaired(messages: Vec<Message>) -> Vec<Message> {
    let mut repaired = Vec::with_capacity(messages.len());
    let mut rest = messages.into_iter().peekable();
    while let Some(message) = rest.next() {
        let Message::Assistant(reply) = message else {
            if !matches!(message, Message::Tool(_)) {
                repaired.push(message);
            }
            continue;
        };
        let mut results = Vec::new();
        while let Some(Message::Tool(result)) = rest.next_if(|next| matches!(next, Message::Tool(_))) {
            results.push(result);
        }
        let answers: Vec<Message> = reply.tool_calls.iter().map(|call| answer(call, &mut results)).collect();
        repaired.push(Message::Assistant(reply));
        repaired.extend(answers);
    }
    repaired
}

fn answer(call: &ToolCall, results: &mut Vec<ToolMessage>) -> Message {
    match results.iter().position(|result| result.tool_call_id == call.id) {
        Some(at) => Message::Tool(results.remove(at)),
        None => Message::Tool(ToolMessage {
            content: INTERRUPTED.to_owned(),
            tool_call_id: call.id.clone(),
            name: call.name.clone(),
            status: ToolStatus::Error,
            ..ToolMessage::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{AssistantMessage, ToolArgs};

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
    fn every_call_is_answered_in_its_place() {
        let clean =
            vec![Message::human("x"), reply(&["a", "b"]), result("a", "1"), result("b", "2"), reply(&[])];
        check(clean.clone(), clean);
        check(
            vec![reply(&["a"]), Message::human("x")],
            vec![reply(&["a"]), interrupted("a"), Message::human("x")],
        );
        check(vec![result("orphan", "1"), reply(&[])], vec![reply(&[])]);
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
}
