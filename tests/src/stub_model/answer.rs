//! What a script answers, and how carelessly.

use serde_json::{Map, Value, json};

use super::{Face, Gate};

/// An answer to one request.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) kind: Kind,
    /// Nothing is answered until the gate is open, not even a status.
    pub(super) held: Option<Gate>,
    /// Where the body ends early.
    pub(super) cut: Option<Cut>,
    /// The body is sent in pieces of so many bytes; whole events when absent.
    pub(super) piece_bytes: Option<usize>,
}

/// The sorts of answer.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// Streamed, with status 200.
    Stream(Reply),
    /// As one JSON object, with status 200.
    Whole(Reply),
    /// Anything else.
    Raw { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
}

/// Where and how a body ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The connection breaks after so many bytes.
    Break(usize),
    /// The body ends properly after so many bytes.
    Close(usize),
    /// After so many bytes nothing comes any more, and the connection stays open.
    Stall(usize),
}

impl Answer {
    /// A refusal as providers word it.
    pub fn refusal(status: u16, message: &str) -> Self {
        Self::raw(status, json!({"error": {"message": message}}).to_string().into_bytes())
    }

    /// Any status and any body.
    pub fn raw(status: u16, body: Vec<u8>) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { kind: Kind::Raw { status, headers, body }, held: None, cut: None, piece_bytes: None }
    }

    /// Adds a header to a refusal.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match &mut self.kind {
            Kind::Raw { headers, .. } => headers.push((name.to_owned(), value.to_owned())),
            Kind::Stream(_) | Kind::Whole(_) => panic!("only refusals have headers of their own"),
        }
        self
    }

    /// Holds the answer until the gate is open.
    #[must_use]
    pub fn held_by(self, gate: &Gate) -> Self {
        Self { held: Some(gate.clone()), ..self }
    }

    /// Ends the body early.
    #[must_use]
    pub fn cut(self, cut: Cut) -> Self {
        Self { cut: Some(cut), ..self }
    }

    /// Sends the body in small pieces.
    #[must_use]
    pub fn in_pieces_of(self, bytes: usize) -> Self {
        Self { piece_bytes: Some(bytes), ..self }
    }

    /// The bytes of the body, for tests that cut it.
    pub fn body(&self, number: usize) -> Vec<u8> {
        self.body_as(Face::Openai, number)
    }

    /// The same, as another provider sends it.
    pub fn body_as(&self, face: Face, number: usize) -> Vec<u8> {
        face.body(&self.kind, number).concat()
    }
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self { kind: Kind::Stream(reply), held: None, cut: None, piece_bytes: None }
    }
}

/// A reply of the model.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) text: Option<String>,
    pub(super) reasoning: Option<String>,
    pub(super) calls: Vec<Call>,
    pub(super) finish: Finish,
    pub(super) usage: UsageSent,
    pub(super) fragments: Fragments,
    /// Whether `[DONE]` ends the stream.
    pub(super) has_done: bool,
}

/// A tool call of a reply.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its id; one that is used nowhere else when absent.
    pub(super) id: Option<String>,
    pub(super) name: String,
    /// The arguments as text, which need not be JSON.
    pub(super) arguments: String,
}

/// What is said of why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Finish {
    /// `tool_calls` when there are calls, else `stop`.
    #[default]
    Proper,
    /// This, whatever the reply holds.
    Said(&'static str),
    /// `null` to the end.
    Null,
    /// The field is in no chunk.
    Absent,
}

/// How tokens are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageSent {
    /// In a last chunk without choices, as input and output.
    LastChunk(u64, u64),
    /// In the chunk that has the finish reason.
    WithFinish(u64, u64),
    /// `null` in every chunk.
    Null,
    /// Never.
    Absent,
}

/// How the calls of a reply are cut into fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragments {
    /// Bytes of arguments per fragment; all of them in one when 0.
    pub piece_bytes: usize,
    /// Whether pieces may end inside a character.
    pub inside_characters: bool,
    /// The `index` of fragments.
    pub index: IndexSent,
    /// The `id` of fragments.
    pub id: IdSent,
    /// The `name` in fragments.
    pub name: NameSent,
}

/// The `index` of fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexSent {
    /// The call's place.
    Place,
    /// 0 for every call.
    Zero,
    /// Left out.
    Missing,
}

/// The `id` of fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdSent {
    /// In the first fragment of a call.
    First,
    /// In each.
    Every,
    /// In none.
    Missing,
}

/// The `name` in fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameSent {
    /// In the first fragment of a call, and left out after it.
    First,
    /// In each.
    Every,
    /// In the first; empty after it.
    ThenEmpty,
}

impl Default for Fragments {
    fn default() -> Self {
        Self {
            piece_bytes: 0,
            inside_characters: false,
            index: IndexSent::Place,
            id: IdSent::First,
            name: NameSent::First,
        }
    }
}

impl Reply {
    fn new(text: Option<String>, calls: Vec<Call>) -> Self {
        Self {
            text,
            reasoning: None,
            calls,
            finish: Finish::Proper,
            usage: UsageSent::LastChunk(100, 10),
            fragments: Fragments::default(),
            has_done: true,
        }
    }

    /// A reply that is only text.
    pub fn says(text: impl Into<String>) -> Self {
        Self::new(Some(text.into()), Vec::new())
    }

    /// A reply that calls tools.
    pub fn calls(calls: impl IntoIterator<Item = Call>) -> Self {
        Self::new(None, calls.into_iter().collect())
    }

    /// Adds text beside the calls.
    #[must_use]
    pub fn and_says(self, text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..self }
    }

    /// Adds what the provider wants to see again.
    #[must_use]
    pub fn reasoning(self, text: impl Into<String>) -> Self {
        Self { reasoning: Some(text.into()), ..self }
    }

    /// Says why the model stopped.
    #[must_use]
    pub fn finish(self, finish: Finish) -> Self {
        Self { finish, ..self }
    }

    /// Reports tokens so.
    #[must_use]
    pub fn usage(self, usage: UsageSent) -> Self {
        Self { usage, ..self }
    }

    /// Cuts the calls so.
    #[must_use]
    pub fn fragments(self, fragments: Fragments) -> Self {
        Self { fragments, ..self }
    }

    /// Ends the stream without `[DONE]`.
    #[must_use]
    pub fn without_done(self) -> Self {
        Self { has_done: false, ..self }
    }

    /// As one JSON object, for a server that does not stream.
    pub fn whole(self) -> Answer {
        Answer { kind: Kind::Whole(self), held: None, cut: None, piece_bytes: None }
    }

    /// Holds the answer until the gate is open.
    pub fn held_by(self, gate: &Gate) -> Answer {
        Answer::from(self).held_by(gate)
    }

    /// Ends the body early.
    pub fn cut(self, cut: Cut) -> Answer {
        Answer::from(self).cut(cut)
    }
}

impl Call {
    /// A call with these arguments.
    pub fn new(name: &str, arguments: Value) -> Self {
        Self::raw(name, &arguments.to_string())
    }

    /// A call whose arguments are this text.
    pub fn raw(name: &str, arguments: &str) -> Self {
        Self { id: None, name: name.to_owned(), arguments: arguments.to_owned() }
    }

    /// A `task` call.
    pub fn task(subagent_type: &str, prompt: &str) -> Self {
        Self::task_with(subagent_type, prompt, Map::new())
    }

    /// A `task` call with more arguments.
    pub fn task_with(subagent_type: &str, prompt: &str, more: Map<String, Value>) -> Self {
        let mut arguments = Map::new();
        arguments.insert("description".into(), format!("about {prompt}").into());
        arguments.insert("prompt".into(), prompt.into());
        arguments.insert("subagent_type".into(), subagent_type.into());
        arguments.extend(more);
        Self::new("task", arguments.into())
    }

    /// Gives it an id that may repeat elsewhere.
    #[must_use]
    pub fn id(self, id: &str) -> Self {
        Self { id: Some(id.to_owned()), ..self }
    }
}
