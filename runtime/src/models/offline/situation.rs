//! Where a conversation stands, as a scenario sees it.

use std::collections::BTreeMap;

use domain::{
    message::{AssistantMessage, Message, ToolArgs, ToolMessage, ToolStatus},
    sanitise::{BEGIN_MARKER, END_MARKER},
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::listing;

/// One tool's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ToolResult {
    pub(super) tool: String,
    pub(super) text: String,
    pub(super) ok: bool,
    /// Lines of what it found: none where it failed or found nothing.
    pub(super) found: usize,
    pub(super) call_id: String,
    pub(super) args: Map<String, Value>,
}

/// What happened since the last request.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Situation {
    /// The request's text.
    pub(super) task: String,
    /// Replies since then.
    pub(super) turn: usize,
    /// Results since then.
    pub(super) results: Vec<ToolResult>,
    /// How many of them came before the last reply.
    before_last: usize,
    calls: BTreeMap<String, (String, Map<String, Value>)>,
    previous: Previous,
}

/// What the last message, system messages aside, was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Previous {
    /// The beginning, or a reply without calls.
    #[default]
    Rest,
    Request,
    /// A reply with calls, a result, or a note after either.
    Work,
}

impl Situation {
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut situation = Self::default();
        for message in messages {
            match message {
                Message::System(_) => {}
                Message::Human(message) => situation.hear(&message.content),
                Message::Assistant(reply) => situation.say(reply),
                Message::Tool(result) => situation.receive(result),
            }
        }
        situation
    }

    /// The results of the previous turn.
    pub(super) fn last(&self) -> &[ToolResult] {
        self.results.get(self.before_last..).unwrap_or_default()
    }

    /// A request, unless work is going on: then it is a note of a guard. What is framed as a user's
    /// words is always a request; the work before it was stopped.
    fn hear(&mut self, content: &str) {
        let is_framed = content.trim_start().starts_with(BEGIN_MARKER);
        match self.previous {
            Previous::Work if !is_framed => {}
            // Of several together, the framework's own begin with a tag.
            Previous::Request if content.trim_start().starts_with('<') => {}
            Previous::Request | Previous::Rest | Previous::Work => {
                *self = Self { task: request_text(content), previous: Previous::Request, ..Self::default() };
            }
        }
    }

    fn say(&mut self, reply: &AssistantMessage) {
        self.turn += 1;
        self.before_last = self.results.len();
        self.previous = if reply.tool_calls.is_empty() { Previous::Rest } else { Previous::Work };
        for call in &reply.tool_calls {
            let args = match &call.args {
                ToolArgs::Object(map) => map.clone(),
                ToolArgs::Invalid(_) => Map::new(),
            };
            self.calls.insert(call.id.clone(), (call.name.clone(), args));
        }
    }

    fn receive(&mut self, result: &ToolMessage) {
        self.previous = Previous::Work;
        let (called, args) = self.calls.get(&result.tool_call_id).cloned().unwrap_or_default();
        self.results.push(ToolResult {
            tool: if called.is_empty() { result.name.clone() } else { called },
            found: if result.status == ToolStatus::Success { listing::found(&result.content) } else { 0 },
            text: result.content.clone(),
            ok: result.status == ToolStatus::Success,
            call_id: result.tool_call_id.clone(),
            args,
        });
    }
}

/// The text without the boundary lines that frame what a user wrote.
fn request_text(content: &str) -> String {
    let text = content.trim();
    let inner = text.strip_prefix(BEGIN_MARKER).and_then(|rest| rest.strip_suffix(END_MARKER));
    inner.unwrap_or(text).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use domain::message::ToolCall;

    use super::*;

    fn calls(id: &str) -> Message {
        let call = ToolCall { id: id.into(), name: "ls".into(), args: ToolArgs::parse("{\"path\": \"/a\"}") };
        Message::Assistant(AssistantMessage { tool_calls: vec![call], ..AssistantMessage::default() })
    }

    fn says() -> Message {
        Message::Assistant(AssistantMessage { content: "done".into(), ..AssistantMessage::default() })
    }

    fn result(id: &str) -> Message {
        Message::Tool(ToolMessage {
            content: format!("of {id}"),
            tool_call_id: id.into(),
            ..ToolMessage::default()
        })
    }

    #[track_caller]
    fn check(messages: &[Message], task: &str, turn: usize, results: usize, last: usize) {
        let situation = Situation::of(messages);
        assert_eq!(
            (situation.task.as_str(), situation.turn, situation.results.len(), situation.last().len()),
            (task, turn, results, last)
        );
    }

    #[test]
    fn turns_and_results_are_counted_from_the_last_request() {
        let human = Message::human;
        check(&[human("a")], "a", 0, 0, 0);
        check(&[human("a"), calls("1"), result("1")], "a", 1, 1, 1);
        check(&[human("a"), calls("1"), result("1"), calls("2"), result("2")], "a", 2, 2, 1);
        check(&[human("a"), calls("1"), result("1"), says(), human("b")], "b", 0, 0, 0);
    }

    #[test]
    fn notes_between_results_and_replies_are_not_requests() {
        let note = Message::human("[WARNING] finish soon");
        check(&[Message::human("a"), calls("1"), result("1"), note.clone()], "a", 1, 1, 1);
        check(&[Message::human("a"), calls("1"), result("1"), note, calls("2")], "a", 2, 1, 0);
        check(&[Message::human("a"), calls("1"), result("1"), Message::system("s")], "a", 1, 1, 1);
    }

    #[test]
    fn the_request_is_told_from_what_the_framework_adds() {
        let memory = Message::human("<system-reminder>x</system-reminder>");
        check(&[memory.clone(), Message::human("a")], "a", 0, 0, 0);
        check(&[Message::human("a"), memory], "a", 0, 0, 0);
        check(&[Message::human("--- BEGIN USER INPUT ---\na\nb\n--- END USER INPUT ---")], "a\nb", 0, 0, 0);
    }

    #[test]
    fn a_result_knows_its_call() {
        let situation = Situation::of(&[Message::human("a"), calls("1"), result("1")]);
        let [result] = situation.last() else { panic!("{situation:?}") };
        assert_eq!((result.tool.as_str(), &result.args["path"]), ("ls", &Value::from("/a")));
    }
}
