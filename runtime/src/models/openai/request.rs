//! The body of a request, in the strictest shape that servers ask for: one leading system message,
//! no assistant first, every call answered once and directly after its reply, valid JSON arguments
//! and valid names (field report 85).

use std::collections::VecDeque;

use domain::{
    message::{AssistantMessage, Message, ToolArgs, ToolCall, ToolMessage},
    tool_spec::ToolSpec,
};
use serde_json::{Map, Value, json};

use crate::models::ModelRequest;

#[cfg(test)]
mod tests;

/// Fields of a reply that only its provider understands. They are kept as they came and shown to
/// the same model again, which some insist on, and never to another (field report 90).
pub(super) const OPAQUE_FIELDS: &[&str] = &["reasoning_content", "reasoning", "reasoning_details"];
/// The configured model whose opaque fields a reply holds.
pub(super) const OPAQUE_SOURCE_KEY: &str = "opaque_source";
/// What a provider wants to see again with a call, such as a thought signature, by call id.
pub(super) const CALL_EXTRAS_KEY: &str = "opaque_call_extras";

/// Stands where a conversation lost its beginning: servers refuse one that an assistant begins.
const LOST_BEGINNING: &str = "(The beginning of this conversation was left out.)";
/// Answers a call that has no recorded result.
const NO_RESULT: &str = "Error: this call has no result; it was interrupted or never ran.";
/// Stands for a name that a model left out.
const NAMELESS: &str = "unknown_tool";
const FUNCTION_NAME_CHARS_MAX: usize = 64;

/// What does not change between the requests of one configured model.
#[derive(Debug)]
pub(super) struct Wire {
    /// The configured name.
    pub(super) name: String,
    /// The provider's id.
    pub(super) model: String,
    pub(super) max_tokens: Option<u32>,
    pub(super) temperature: Option<f64>,
}

/// The body of a streaming request.
pub(super) fn body(wire: &Wire, request: &ModelRequest) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), wire.model.clone().into());
    body.insert("messages".into(), messages(&wire.name, &request.messages).into());
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
    }
    if let Some(max_tokens) = wire.max_tokens {
        body.insert("max_tokens".into(), max_tokens.into());
    }
    if let Some(temperature) = wire.temperature {
        body.insert("temperature".into(), temperature.into());
    }
    body.insert("stream".into(), true.into());
    body.insert("stream_options".into(), json!({"include_usage": true}));
    body.into()
}

fn tool(spec: &ToolSpec) -> Value {
    json!({"type": "function", "function": {
        "name": spec.name, "description": spec.description, "parameters": spec.parameters,
    }})
}

fn messages(model: &str, conversation: &[Message]) -> Vec<Value> {
    let mut sent = Vec::new();
    let mut system: Vec<&str> = Vec::new();
    let mut rest = conversation.iter().peekable();
    while let Some(message) = rest.next() {
        match message {
            Message::System(message) => system.push(message.content.trim_end()),
            Message::Human(message) => sent.push(json!({"role": "user", "content": message.content})),
            Message::Assistant(reply) => {
                if sent.is_empty() {
                    sent.push(json!({"role": "user", "content": LOST_BEGINNING}));
                }
                let mut results = VecDeque::new();
                while let Some(result) =
                    rest.next_if(|next| matches!(next, Message::Tool(_) | Message::System(_)))
                {
                    match result {
                        Message::Tool(result) => results.push_back(result),
                        Message::System(message) => system.push(message.content.trim_end()),
                        Message::Human(_) | Message::Assistant(_) => {}
                    }
                }
                add_turn(&mut sent, model, reply, results);
            }
            // A result whose call is not in the conversation would be refused.
            Message::Tool(_) => {}
        }
    }
    system.retain(|text| !text.is_empty());
    if !system.is_empty() {
        sent.insert(0, json!({"role": "system", "content": system.join("\n\n")}));
    }
    sent
}

/// A reply, and one result for each of its calls in their order.
fn add_turn(
    sent: &mut Vec<Value>,
    model: &str,
    reply: &AssistantMessage,
    mut results: VecDeque<&ToolMessage>,
) {
    sent.push(assistant(model, reply));
    for (position, call) in reply.tool_calls.iter().enumerate() {
        let found = results.iter().position(|result| result.tool_call_id == call.id);
        let result = found.and_then(|at| results.remove(at));
        let content = result.map_or(NO_RESULT, |result| result.content.as_str());
        sent.push(json!({"role": "tool", "tool_call_id": call_id(call, position), "content": content}));
    }
}

fn assistant(model: &str, reply: &AssistantMessage) -> Value {
    let mut sent = Map::new();
    sent.insert("role".into(), "assistant".into());
    let is_silent = reply.content.is_empty() && !reply.tool_calls.is_empty();
    let content = if is_silent { Value::Null } else { reply.content.clone().into() };
    sent.insert("content".into(), content);
    let kwargs = &reply.additional_kwargs;
    let is_own = kwargs.get(OPAQUE_SOURCE_KEY).and_then(Value::as_str) == Some(model);
    if is_own {
        for &field in OPAQUE_FIELDS {
            if let Some(value) = kwargs.get(field) {
                sent.insert(field.into(), value.clone());
            }
        }
    }
    if !reply.tool_calls.is_empty() {
        let extras = kwargs.get(CALL_EXTRAS_KEY).filter(|_| is_own);
        let calls = reply.tool_calls.iter().enumerate();
        let calls = calls.map(|(position, call)| function_call(call, position, extras));
        sent.insert("tool_calls".into(), calls.collect());
    }
    sent.into()
}

fn function_call(call: &ToolCall, position: usize, extras: Option<&Value>) -> Value {
    let arguments = match &call.args {
        ToolArgs::Object(map) => Value::Object(map.clone()).to_string(),
        // Servers parse the arguments of the past, and refuse what is not an object.
        ToolArgs::Invalid(_) => "{}".to_owned(),
    };
    let mut sent = json!({
        "id": call_id(call, position),
        "type": "function",
        "function": {"name": function_name(&call.name), "arguments": arguments},
    });
    let extra = extras.and_then(|extras| extras.get(&call.id));
    if let (Some(extra), Some(sent)) = (extra, sent.as_object_mut()) {
        sent.insert("extra_content".into(), extra.clone());
    }
    sent
}

fn call_id(call: &ToolCall, position: usize) -> String {
    if call.id.is_empty() { format!("call_{}", position + 1) } else { call.id.clone() }
}

/// A name in the alphabet that servers accept.
fn function_name(name: &str) -> String {
    let is_allowed = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let fit = |letter: char| if is_allowed(&letter) { letter } else { '_' };
    let name: String = name.trim().chars().take(FUNCTION_NAME_CHARS_MAX).map(fit).collect();
    if name.is_empty() { NAMELESS.to_owned() } else { name }
}
