//! What is said between people, models and tools.
//!
//! The serialised form is the message dump of the run event stream contract: `type` is `system`,
//! `human`, `ai` or `tool`. It is stored in events for ever, so a field never changes its meaning.

mod image;
mod read;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::image::{Image, ImageType, NoImage};
use crate::usage::Usage;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Message {
    /// What the framework tells the model; never user text.
    System(SystemMessage),
    /// What a person, or for a subagent its lead, asks.
    Human(HumanMessage),
    /// What a model replied.
    #[serde(rename = "ai")]
    Assistant(AssistantMessage),
    /// What one tool call returned.
    Tool(ToolMessage),
}

/// The framework's own words to a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SystemMessage {
    /// The text.
    pub content: String,
}

/// A request in somebody's words.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HumanMessage {
    /// The text.
    pub content: String,
    /// The message's own id, where the client gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Pictures that go with the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// One complete model reply.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The visible text; empty when the model only called tools.
    #[serde(default)]
    pub content: String,
    /// The provider's id of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Tool calls in the order in which the model made them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// What the provider said about the reply.
    #[serde(default)]
    pub response_metadata: ResponseMetadata,
    /// Token counts; absent when the provider gave none, never estimated.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "usage_metadata")]
    pub usage: Option<Usage>,
    /// Framework marks and opaque provider fields, such as `deerflow_error_fallback`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub additional_kwargs: Map<String, Value>,
}

/// What the provider said about a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ResponseMetadata {
    /// Why the model stopped: `stop`, `tool_calls`, `length`, `content_filter` or a provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// The model that answered, as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
}

/// One use of a tool that a model asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id; pairs the call with its result within one turn.
    pub id: String,
    /// The tool's name; empty when the provider sent none.
    pub name: String,
    /// The arguments.
    pub args: ToolArgs,
}

/// A tool call's arguments, or what arrived instead of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ToolArgs {
    /// A JSON object: the only form that a tool is ever run with.
    Object(Map<String, Value>),
    /// Text that is not a JSON object, kept as it came. It never runs; it gets an error result.
    Invalid(String),
}

impl ToolArgs {
    /// Reads the text that a provider streamed. No text at all means no arguments.
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Object(Map::new());
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Self::Object(map),
            Ok(_) | Err(_) => Self::Invalid(text.to_owned()),
        }
    }
}

impl ToolArgs {
    /// The text argument of this name; empty where there is none.
    pub fn text(&self, name: &str) -> &str {
        match self {
            Self::Object(map) => map.get(name).and_then(Value::as_str).unwrap_or_default(),
            Self::Invalid(_) => "",
        }
    }
}

/// Whether a tool call did what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    /// The tool returned a result.
    #[default]
    Success,
    /// The tool failed, was refused, or never ran.
    Error,
}

/// What one tool call returned to the model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolMessage {
    /// The text that the model sees.
    #[serde(default)]
    pub content: String,
    /// The call that this answers.
    pub tool_call_id: String,
    /// The tool's name.
    pub name: String,
    /// Whether it worked.
    #[serde(default)]
    pub status: ToolStatus,
    /// Structured metadata, such as the `subagent_*` keys of the status contract.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub additional_kwargs: Map<String, Value>,
}

/// Marks a reply that the framework made in place of a provider that failed for good.
pub const ERROR_FALLBACK_KEY: &str = "deerflow_error_fallback";
/// What sort of failure a marked fallback stands for.
pub const ERROR_REASON_KEY: &str = "error_reason";
/// The provider's own words in a marked fallback.
pub const ERROR_DETAIL_KEY: &str = "error_detail";

impl AssistantMessage {
    /// Whether the framework made this reply because the provider failed. Only the literal `true`
    /// counts; prose that looks like an error is an ordinary answer (facts §3.6).
    pub fn is_error_fallback(&self) -> bool {
        self.additional_kwargs.get(ERROR_FALLBACK_KEY) == Some(&Value::Bool(true))
    }
}

impl Message {
    /// A request in plain words.
    pub fn human(content: impl Into<String>) -> Self {
        Self::Human(HumanMessage { content: content.into(), ..HumanMessage::default() })
    }

    /// The framework's own words.
    pub fn system(content: impl Into<String>) -> Self {
        Self::System(SystemMessage { content: content.into() })
    }

    /// The text of any kind of message.
    pub fn content(&self) -> &str {
        match self {
            Self::System(message) => &message.content,
            Self::Human(message) => &message.content,
            Self::Assistant(message) => &message.content,
            Self::Tool(message) => &message.content,
        }
    }

    /// The reply, if this is one.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            Self::System(_) | Self::Human(_) | Self::Tool(_) => None,
        }
    }
}

/// The text of message content that a client or provider sent: a string as it is, or a list whose
/// strings and text blocks are joined with newlines, empty ones dropped (facts §3.6).
pub fn text_of(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(block_text).collect::<Vec<_>>().join("\n"),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => content.to_string(),
    }
}

fn block_text(block: &Value) -> Option<&str> {
    block.as_str().or_else(|| block.get("text")?.as_str()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_stored_form_is_the_message_dump() {
        let message = Message::Assistant(AssistantMessage {
            content: "looking".into(),
            tool_calls: vec![ToolCall {
                id: "c1".into(),
                name: "ls".into(),
                args: ToolArgs::parse("{\"path\":\".\"}"),
            }],
            usage: Some(Usage::new(3, 4)),
            ..AssistantMessage::default()
        });
        let stored = serde_json::to_value(&message).unwrap();
        assert_eq!(
            stored,
            json!({"type": "ai", "content": "looking", "tool_calls": [{"id": "c1", "name": "ls", "args": {"path": "."}}],
                "response_metadata": {}, "usage_metadata": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}})
        );
        assert_eq!(serde_json::from_value::<Message>(stored).unwrap(), message);
    }

    #[test]
    fn only_a_json_object_is_arguments() {
        assert_eq!(ToolArgs::parse(" "), ToolArgs::Object(Map::new()));
        for unfinished in ["{\"path\": \"/mnt", "[1]", "\"x\"", "null", "{}}"] {
            assert_eq!(ToolArgs::parse(unfinished), ToolArgs::Invalid(unfinished.into()));
        }
    }

    // Facts §12 line 31, and §3.6.
    #[test]
    fn list_content_becomes_joined_text() {
        assert_eq!(
            text_of(&json!([{"type": "text", "text": "Part 1"}, "Part 2", {"text": ""}])),
            "Part 1\nPart 2"
        );
        assert_eq!(text_of(&Value::Null), "");
        assert_eq!(text_of(&json!(12)), "12");
    }

    #[test]
    fn only_the_literal_mark_makes_a_fallback() {
        for (mark, expected) in
            [(json!(true), true), (json!("true"), false), (json!(1), false), (json!(false), false)]
        {
            let mut message = AssistantMessage::default();
            message.additional_kwargs.insert(ERROR_FALLBACK_KEY.into(), mark);
            assert_eq!(message.is_error_fallback(), expected);
        }
    }
}
