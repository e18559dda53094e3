//! The ids of a reply's tool calls: they pair calls with results, name delegations and tell a call
//! that was started from one that was not. So each call has an id of its own, of a length that
//! every record keeps. Most providers see to that; some leave ids out or repeat them.

use std::collections::{HashMap, HashSet};

use domain::{ids::ToolCallId, limits::TOOL_CALL_ID_CHARS_MAX, message::AssistantMessage};

/// Replaces ids that are missing or too long, and numbers repeated ones, before the reply is
/// recorded. Good ids stay as they are.
pub(crate) fn settle(reply: &mut AssistantMessage, mut fresh: impl FnMut() -> ToolCallId) {
    let mut taken: HashSet<String> = reply.tool_calls.iter().map(|call| call.id.clone()).collect();
    let mut uses: HashMap<String, usize> = HashMap::new();
    for call in &mut reply.tool_calls {
        if !fits(&call.id) {
            call.id = fresh().into();
            continue;
        }
        let uses = uses.entry(call.id.clone()).or_default();
        *uses += 1;
        if *uses > 1 {
            call.id = numbered(&call.id, uses, &mut taken).unwrap_or_else(|| fresh().into());
        }
    }
}

fn fits(id: &str) -> bool {
    !id.is_empty() && id.chars().count() <= TOOL_CALL_ID_CHARS_MAX
}

/// The id with the next number that makes it new; `None` when it is too long for one.
fn numbered(id: &str, number: &mut usize, taken: &mut HashSet<String>) -> Option<String> {
    loop {
        let numbered = format!("{id}-{number}");
        if !fits(&numbered) {
            return None;
        }
        if taken.insert(numbered.clone()) {
            return Some(numbered);
        }
        *number += 1;
    }
}

#[cfg(test)]
mod tests {
    use domain::message::{ToolArgs, ToolCall};

    use super::*;

    #[track_caller]
    fn check(given: &[&str], expected: &[&str]) {
        let call = |id: &&str| ToolCall { id: (*id).into(), name: "ls".into(), args: ToolArgs::parse("") };
        let mut reply =
            AssistantMessage { tool_calls: given.iter().map(call).collect(), ..AssistantMessage::default() };
        let mut fresh = (1..).map(|number| ToolCallId::new(format!("fresh{number}")).unwrap());
        settle(&mut reply, || fresh.next().unwrap());
        let ids: Vec<&str> = reply.tool_calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, expected);
    }

    #[test]
    fn every_call_gets_an_id_of_its_own() {
        check(&["a", "b"], &["a", "b"]);
        check(&["", "a", ""], &["fresh1", "a", "fresh2"]);
        check(&["a", "a", "a"], &["a", "a-2", "a-3"]);
        check(&["a", "a", "a-2"], &["a", "a-3", "a-2"]);
        let (long, longest) = ("x".repeat(257), "x".repeat(256));
        check(&[&long, &longest, &longest], &["fresh1", &longest, "fresh2"]);
    }
}
