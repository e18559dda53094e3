//! A request as a script sees it.

use serde_json::Value;

use super::Face;

/// Who asks, as far as the system prompt tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seat {
    /// The lead.
    Lead,
    /// A subagent of the built-in type `general-purpose`.
    GeneralPurpose,
    /// A subagent of the built-in type `bash`.
    Bash,
    /// What sums up the older part of a history.
    Summary,
    /// Somebody with another prompt: a type of the configuration.
    Other,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its place among all requests to this stub, from 1.
    pub number: usize,
    /// Who asks.
    pub seat: Seat,
    /// The newest message of a person, or the task of a subagent, as it was sent.
    pub task: String,
    /// Replies since that message: 0 at first.
    pub turn: usize,
    /// The provider's id of the model.
    pub model: String,
    /// The header with the key: `Authorization`, or what the provider has in its place.
    pub authorization: String,
    /// As which provider the stub was asked.
    pub face: Face,
    /// The body, in the words of Chat Completions.
    pub body: Value,
    /// The body as it was sent.
    pub sent: Value,
}

impl Asked {
    pub(super) fn read(number: usize, face: Face, authorization: String, sent: Value) -> Self {
        let body = face.as_chat(&sent);
        let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is = |role: &'static str| move |message: &&Value| message["role"] == role;
        let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
        let system = messages.iter().find(is("system")).map(text).unwrap_or_default();
        let newest = messages.iter().rposition(|message| message["role"] == "user");
        let since = newest.map_or(messages, |at| &messages[at..]);
        let (task, turn) = (
            newest.map(|at| text(&messages[at])).unwrap_or_default(),
            since.iter().filter(is("assistant")).count(),
        );
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        Self { number, seat: seat(&system), task, turn, model, authorization, face, body, sent }
    }

    /// Whether the lead asks.
    pub fn is_lead(&self) -> bool {
        self.seat == Seat::Lead
    }

    /// Whether the task holds this text.
    pub fn is_about(&self, marker: &str) -> bool {
        self.task.contains(marker)
    }

    /// The messages.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// The system message.
    pub fn system(&self) -> &str {
        let first = self.messages().first().filter(|message| message["role"] == "system");
        first.and_then(|message| message["content"].as_str()).unwrap_or_default()
    }

    /// Call ids and texts of the tool results since the last reply.
    pub fn results(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let newest = self.messages().iter().rev().take_while(|message| message["role"] == "tool");
        let mut results: Vec<_> =
            newest.map(|message| (text(&message["tool_call_id"]), text(&message["content"]))).collect();
        results.reverse();
        results
    }

    /// The names of the tools that were offered.
    pub fn tools(&self) -> Vec<&str> {
        let offered = self.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        offered.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect()
    }
}

fn seat(system: &str) -> Seat {
    if system.contains("You are the lead agent") {
        Seat::Lead
    } else if system.contains("You are a subagent for shell commands") {
        Seat::Bash
    } else if system.contains("You are a subagent.") {
        Seat::GeneralPurpose
    } else if system.contains("You sum up the earlier part") {
        Seat::Summary
    } else {
        Seat::Other
    }
}
