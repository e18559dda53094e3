//! A model that plays a script. What it says depends on the conversation alone: who asks, what
//! was asked last, and how many replies came since. So a run that is resumed gets the same
//! replies, and one that was recorded is not asked for again.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
};

use domain::{
    message::{AssistantMessage, Message, ResponseMetadata, ToolArgs, ToolCall},
    tool_spec::TASK_TOOL,
    usage::Usage,
};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::models::{ChatModel, Deltas, ModelError, ModelErrorKind, ModelRequest};

/// One thing that the model does.
#[derive(Debug, Clone)]
pub(crate) enum Turn {
    /// It replies.
    Reply(AssistantMessage),
    /// It fails, each time that it is asked.
    Fail(ModelErrorKind),
    /// It fails this often, and replies then.
    Flaky(ModelErrorKind, u32, AssistantMessage),
    /// It replies when the gate of this name is opened.
    Held(&'static str, AssistantMessage),
    /// It never replies.
    Hang,
    /// It breaks.
    Panic,
}

impl From<AssistantMessage> for Turn {
    fn from(reply: AssistantMessage) -> Self {
        Self::Reply(reply)
    }
}

/// The model. Clones are one model.
#[derive(Clone)]
pub(crate) struct Script(Arc<Inner>);

struct Inner {
    name: String,
    parts: Mutex<HashMap<(bool, String), Vec<Turn>>>,
    seen: Mutex<Seen>,
    gates: watch::Sender<HashSet<&'static str>>,
}

/// What the model was asked.
#[derive(Default)]
struct Seen {
    /// Who asked, for what task, and which reply of it.
    calls: Vec<(String, String, usize)>,
    attempts: BTreeMap<(String, usize), u32>,
    requests: Vec<ModelRequest>,
    at_work: usize,
    at_work_most: usize,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self::named("scripted")
    }

    pub(crate) fn named(name: &str) -> Self {
        Self(Arc::new(Inner {
            name: name.to_owned(),
            parts: Mutex::default(),
            seen: Mutex::default(),
            gates: watch::Sender::new(HashSet::new()),
        }))
    }

    /// What the lead does when it is asked this.
    pub(crate) fn lead<T: Into<Turn>>(self, asked: &str, turns: impl IntoIterator<Item = T>) -> Self {
        self.part(true, asked, turns)
    }

    /// What a subagent does that is given this prompt.
    pub(crate) fn sub<T: Into<Turn>>(self, prompt: &str, turns: impl IntoIterator<Item = T>) -> Self {
        self.part(false, prompt, turns)
    }

    fn part<T: Into<Turn>>(self, is_lead: bool, asked: &str, turns: impl IntoIterator<Item = T>) -> Self {
        let turns = turns.into_iter().map(Into::into).collect();
        self.0.parts.lock().unwrap().insert((is_lead, asked.to_owned()), turns);
        self
    }

    /// Lets the replies go that are held at this gate, for good.
    pub(crate) fn open(&self, gate: &'static str) {
        self.0.gates.send_modify(|open| open.extend([gate]));
    }

    /// How often the model was asked.
    pub(crate) fn calls(&self) -> usize {
        self.seen().calls.len()
    }

    /// How often the model was asked by whoever was given this.
    pub(crate) fn calls_for(&self, asked: &str) -> usize {
        self.seen().calls.iter().filter(|(_, key, _)| key == asked).count()
    }

    /// Every request so far.
    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        self.seen().requests.clone()
    }

    /// Subagents that wait for a reply now, and at most at once so far.
    pub(crate) fn at_work(&self) -> (usize, usize) {
        let seen = self.seen();
        (seen.at_work, seen.at_work_most)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The turn that the conversation is at.
    fn turn(&self, request: &ModelRequest) -> (String, usize, Turn) {
        let is_lead = request.agent == crate::models::AgentTag::Lead;
        let asked_at = request.messages.iter().rposition(|message| matches!(message, Message::Human(_)));
        let since = asked_at.map_or(&[][..], |at| &request.messages[at..]);
        let asked = since.first().map_or("", Message::content);
        let index = since.iter().filter(|message| message.as_assistant().is_some()).count();
        let parts = self.0.parts.lock().unwrap();
        let fits = |((lead, key), _): &(&(bool, String), &Vec<Turn>)| *lead == is_lead && asked.contains(key);
        let Some(((_, key), turns)) = parts.iter().filter(fits).max_by_key(|((_, key), _)| key.len()) else {
            panic!("no part for {asked:?} (lead: {is_lead})");
        };
        let turn = turns.get(index).unwrap_or_else(|| panic!("{key:?} has no turn {index}"));
        (key.clone(), index, turn.clone())
    }

    /// Writes the call down and says which attempt it is, from 1.
    fn note(&self, request: &ModelRequest, key: &str, index: usize) -> u32 {
        let mut seen = self.seen();
        seen.calls.push((request.agent.caller(), key.to_owned(), index));
        seen.requests.push(request.clone());
        let attempt = seen.attempts.entry((key.to_owned(), index)).or_default();
        *attempt += 1;
        *attempt
    }

    async fn play(&self, turn: Turn, attempt: u32) -> Result<AssistantMessage, ModelError> {
        let failed = |kind| Err(ModelError::new(kind, "HTTP 500: the script says so"));
        match turn {
            Turn::Reply(reply) => Ok(reply),
            Turn::Fail(kind) => failed(kind),
            Turn::Flaky(kind, times, _) if attempt <= times => failed(kind),
            Turn::Flaky(_, _, reply) => Ok(reply),
            Turn::Held(gate, reply) => {
                let mut gates = self.0.gates.subscribe();
                drop(gates.wait_for(|open| open.contains(gate)).await.unwrap());
                Ok(reply)
            }
            Turn::Hang => std::future::pending().await,
            Turn::Panic => panic!("the script says so"),
        }
    }
}

/// Counts a subagent that waits for a reply, until it is dropped.
struct AtWork(Script);

impl AtWork {
    fn begin(script: &Script) -> Self {
        let mut seen = script.seen();
        seen.at_work += 1;
        seen.at_work_most = seen.at_work_most.max(seen.at_work);
        Self(script.clone())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.seen().at_work -= 1;
    }
}

impl ChatModel for Script {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        _deltas: Deltas<'a>,
    ) -> BoxFuture<'a, Result<AssistantMessage, ModelError>> {
        Box::pin(async move {
            let (key, index, turn) = self.turn(request);
            let attempt = self.note(request, &key, index);
            let is_sub = request.agent != crate::models::AgentTag::Lead;
            let _at_work = is_sub.then(|| AtWork::begin(self));
            self.play(turn, attempt).await
        })
    }
}

/// A last word.
pub(crate) fn saying(text: &str) -> AssistantMessage {
    AssistantMessage {
        content: text.to_owned(),
        response_metadata: ResponseMetadata { finish_reason: Some("stop".into()), model_name: None },
        ..AssistantMessage::default()
    }
}

/// A reply that calls tools: id, name and arguments of each.
pub(crate) fn calling(calls: &[(&str, &str, Value)]) -> AssistantMessage {
    let call = |(id, name, args): &(&str, &str, Value)| ToolCall {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        args: ToolArgs::parse(&args.to_string()),
    };
    AssistantMessage {
        tool_calls: calls.iter().map(call).collect(),
        response_metadata: ResponseMetadata { finish_reason: Some("tool_calls".into()), model_name: None },
        ..AssistantMessage::default()
    }
}

/// The arguments of a `task` call to a general-purpose subagent.
pub(crate) fn task(prompt: &str) -> Value {
    asking("general-purpose", prompt)
}

/// The arguments of a `task` call.
pub(crate) fn asking(subagent_type: &str, prompt: &str) -> Value {
    json!({"description": format!("do {prompt}"), "prompt": prompt, "subagent_type": subagent_type})
}

/// A reply that delegates: id and prompt of each.
pub(crate) fn delegating(tasks: &[(&str, &str)]) -> AssistantMessage {
    let calls: Vec<_> = tasks.iter().map(|(id, prompt)| (*id, TASK_TOOL, task(prompt))).collect();
    calling(&calls)
}

/// The reply with token counts.
pub(crate) trait Using {
    fn using(self, input: u64, output: u64) -> Self;
}

impl Using for AssistantMessage {
    fn using(mut self, input: u64, output: u64) -> Self {
        self.usage = Some(Usage::new(input, output));
        self
    }
}
