//! Tries a model with two tiny questions: whether it is there, lets us in, streams, reports tokens and
//! calls tools.

use std::{error::Error as _, sync::Mutex, time::Duration};

use domain::{
    message::{AssistantMessage, Message, ToolArgs},
    tool_spec::ToolSpec,
    usage::Usage,
};
use serde_json::json;
use tokio::time::Instant;

use super::{AgentTag, ChatModel, Delta, ModelError, ModelErrorKind, ModelRequest, no_deltas};

#[cfg(test)]
mod tests;

/// The tool that the model is asked to call.
const TOOL: &str = "report_word";
const QUESTION: &str = "Count from one to ten in words, separated by spaces.";
const TOOL_QUESTION: &str =
    "Call the tool report_word with the word \"ready\". Do not answer in any other way.";

/// What came of trying a model.
#[derive(Debug)]
pub struct Probe {
    /// What it answered, or why it did not.
    pub answer: Result<ProbeAnswer, ModelError>,
    /// Whether it called the tool that it was asked to call. `None` when it did not answer before.
    pub tool_call: Option<Result<bool, ModelError>>,
}

/// An answer to the first question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeAnswer {
    /// The model as the provider names it, where it does.
    pub model_name: Option<String>,
    /// The answer's beginning.
    pub text: String,
    /// In how many pieces its text came; more than one when it streams.
    pub pieces: usize,
    /// Until the first piece.
    pub first_piece_after: Option<Duration>,
    /// Until the end.
    pub took: Duration,
    /// What the provider counted.
    pub usage: Option<Usage>,
}

/// How far a call that failed had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedAt {
    /// Nobody answers at the address.
    Reaching,
    /// The provider does not let us in.
    Authorising,
    /// The account has nothing left.
    Paying,
    /// The provider does not know the address or the model.
    Finding,
    /// The provider refuses what it was sent, or is not what the settings say.
    Answering,
    /// The provider is busy or slow, which may pass.
    Waiting,
}

impl FailedAt {
    /// How far this call had come.
    pub fn of(error: &ModelError) -> Self {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<reqwest::Error>());
        match (error.kind, error.status) {
            (ModelErrorKind::Auth, _) => Self::Authorising,
            (ModelErrorKind::Quota, _) => Self::Paying,
            (_, Some(404)) => Self::Finding,
            (ModelErrorKind::Transient, None) if cause.is_some_and(reqwest::Error::is_connect) => {
                Self::Reaching
            }
            (
                ModelErrorKind::Transient
                | ModelErrorKind::BurstRate
                | ModelErrorKind::Busy
                | ModelErrorKind::CircuitOpen
                | ModelErrorKind::StreamStalled,
                _,
            ) => Self::Waiting,
            (ModelErrorKind::InvalidReply | ModelErrorKind::Generic, _) => Self::Answering,
        }
    }
}

/// Asks a model two tiny questions, once each.
pub async fn probe(model: &dyn ChatModel) -> Probe {
    let answer = answer_of(model).await;
    let tool_call = match &answer {
        Ok(_) => Some(calls_tool(model).await),
        Err(_) => None,
    };
    Probe { answer, tool_call }
}

async fn answer_of(model: &dyn ChatModel) -> Result<ProbeAnswer, ModelError> {
    let started = Instant::now();
    let pieces: Mutex<Vec<Duration>> = Mutex::default();
    let deltas = |delta| {
        if matches!(delta, Delta::Text(_))
            && let Ok(mut pieces) = pieces.lock()
        {
            pieces.push(started.elapsed());
        }
    };
    let reply = model.call(&asked(QUESTION, Vec::new()), &deltas).await?;
    let took = started.elapsed();
    let pieces = pieces.into_inner().unwrap_or_default();
    let AssistantMessage { content, response_metadata, usage, .. } = reply;
    Ok(ProbeAnswer {
        model_name: response_metadata.model_name,
        text: domain::text::prefix(&domain::text::one_line(&content), TEXT_CHARS_MAX).text,
        pieces: pieces.len(),
        first_piece_after: pieces.first().copied(),
        took,
        usage,
    })
}

/// What is kept of an answer.
const TEXT_CHARS_MAX: usize = 120;

async fn calls_tool(model: &dyn ChatModel) -> Result<bool, ModelError> {
    let tool = ToolSpec {
        name: TOOL.to_owned(),
        description: "Reports one word.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"word": {"type": "string", "description": "the word"}},
            "required": ["word"],
            "additionalProperties": false,
        }),
    };
    let reply = model.call(&asked(TOOL_QUESTION, vec![tool]), &no_deltas).await?;
    Ok(reply.tool_calls.iter().any(|call| call.name == TOOL && matches!(call.args, ToolArgs::Object(_))))
}

fn asked(question: &str, tools: Vec<ToolSpec>) -> ModelRequest {
    let system = Message::system("You are being tried out. Answer in one short line.");
    ModelRequest {
        messages: vec![system, Message::human(question)],
        tools: tools.into(),
        agent: AgentTag::Lead,
    }
}
