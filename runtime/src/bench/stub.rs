//! A model that answers after a fixed time, and a tool that answers at once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use domain::{
    message::{AssistantMessage, Message, ResponseMetadata, ToolArgs, ToolCall},
    tool_spec::{SideEffect, TASK_TOOL, ToolSpec},
    usage::Usage,
};
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::AgentsLoad;
use crate::{
    models::{AgentTag, ChatModel, Deltas, ModelError, ModelRequest},
    tools::{
        Tool, ToolContext, ToolOutcome, ToolOutput,
        capture::{Capture, Frame},
    },
};

/// What a lead is asked. Its number is in the prompts of its subagents, so that each has its own.
pub(super) fn lead_task(number: u32) -> String {
    format!("run {number}")
}

/// When agents asked and were answered.
#[derive(Clone, Default)]
pub(super) struct Times(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    turns: u64,
    /// Subagents that have said their last.
    done: u64,
    /// When each subagent had its last reply.
    answered: HashMap<String, Instant>,
    overheads: Vec<Duration>,
}

impl Times {
    pub(super) fn turns(&self) -> u64 {
        self.seen().turns
    }

    pub(super) fn done(&self) -> u64 {
        self.seen().done
    }

    pub(super) fn overheads(&self) -> Vec<Duration> {
        self.seen().overheads.clone()
    }

    fn asked(&self, who: &str) {
        let now = Instant::now();
        let mut seen = self.seen();
        seen.turns += 1;
        if let Some(answered) = seen.answered.remove(who) {
            seen.overheads.push(now.duration_since(answered));
        }
    }

    fn answered(&self, who: &str) {
        let mut seen = self.seen();
        seen.answered.insert(who.to_owned(), Instant::now());
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The model.
pub(super) struct PacedModel {
    load: AgentsLoad,
    times: Times,
}

impl PacedModel {
    pub(super) const fn new(load: AgentsLoad, times: Times) -> Self {
        Self { load, times }
    }

    fn lead(&self, task: &str, turn: u32) -> AssistantMessage {
        if turn > 0 {
            return saying("Everything is done.");
        }
        let calls = (0..self.load.delegations_per_run).map(|number| {
            let arguments = json!({
                "description": "look around", "prompt": format!("{task}, part {number}"),
                "subagent_type": "general-purpose",
            });
            call(&format!("task_{number}"), TASK_TOOL, arguments)
        });
        calling(calls.collect())
    }

    fn subagent(&self, turn: u32) -> AssistantMessage {
        if turn + 1 >= self.load.turns_per_delegation {
            return saying("There is nothing to report.");
        }
        calling(vec![call(&format!("look_{turn}"), Look::NAME, json!({"place": turn}))])
    }
}

impl ChatModel for PacedModel {
    fn name(&self) -> &'static str {
        "bench"
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        _deltas: Deltas<'a>,
    ) -> BoxFuture<'a, Result<AssistantMessage, ModelError>> {
        let asked = request.messages.iter().rposition(|message| matches!(message, Message::Human(_)));
        let since = request.messages.get(asked.unwrap_or_default()..).unwrap_or_default();
        let task = since.first().map(Message::content).unwrap_or_default().to_owned();
        let replies = since.iter().filter(|message| message.as_assistant().is_some()).count();
        let turn = u32::try_from(replies).unwrap_or(u32::MAX);
        let is_lead = request.agent == AgentTag::Lead;
        if is_lead {
            // A lead waits for its subagents, which is no overhead.
            self.times.seen().turns += 1;
        } else {
            self.times.asked(&task);
        }
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(self.load.model_ms)).await;
            let reply = if is_lead { self.lead(&task, turn) } else { self.subagent(turn) };
            match (is_lead, reply.tool_calls.is_empty()) {
                (true, _) => {}
                (false, true) => self.times.seen().done += 1,
                (false, false) => self.times.answered(&task),
            }
            Ok(reply)
        })
    }
}

fn call(id: &str, name: &str, args: Value) -> ToolCall {
    let args = match args {
        Value::Object(args) => args,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    ToolCall { id: id.to_owned(), name: name.to_owned(), args: ToolArgs::Object(args) }
}

fn calling(tool_calls: Vec<ToolCall>) -> AssistantMessage {
    AssistantMessage { tool_calls, ..reply("tool_calls") }
}

fn saying(text: &str) -> AssistantMessage {
    AssistantMessage { content: text.to_owned(), ..reply("stop") }
}

fn reply(finish_reason: &str) -> AssistantMessage {
    let finish_reason = Some(finish_reason.to_owned());
    AssistantMessage {
        response_metadata: ResponseMetadata { finish_reason, ..ResponseMetadata::default() },
        usage: Some(Usage::new(100, 10)),
        ..AssistantMessage::default()
    }
}

/// A tool without side effects.
pub(super) struct Look;

impl Look {
    const NAME: &'static str = "look";
}

impl Tool for Look {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: Self::NAME.to_owned(),
            description: "Looks at one place.".to_owned(),
            parameters: json!({"type": "object", "properties": {"place": {"type": "integer"}}}),
        }
    }

    fn side_effect(&self, _args: &Map<String, Value>) -> SideEffect {
        SideEffect::ReadOnly
    }

    fn run<'a>(
        &'a self,
        _context: &'a ToolContext,
        _args: &'a Map<String, Value>,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async { Capture::of("Nothing to be seen here.").finish(ToolOutcome::Ok, Frame::default()) })
    }
}
