//! The body of a request: valid JSON arguments and valid names beside what every conversation has.

use domain::{
    message::{AssistantMessage, Image, Message, ToolArgs, ToolCall},
    tool_spec::ToolSpec,
};
use serde_json::{Map, Value, json};

use crate::models::{
    ModelRequest,
    conversation::{Conversation, Turn},
    dialect::{Wire, function_name, is_own},
};

#[cfg(test)]
mod tests;

/// Fields of a reply that only its provider understands, and that some insist on seeing again.
pub(super) const OPAQUE_FIELDS: &[&str] = &["reasoning_content", "reasoning", "reasoning_details"];
/// What a provider wants to see again with a call, such as a thought signature, by call id.
pub(super) const CALL_EXTRAS_KEY: &str = "opaque_call_extras";

/// The body of a streaming request.
pub(super) fn body(wire: &Wire, request: &ModelRequest) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), wire.model.clone().into());
    body.insert("messages".into(), messages(wire, &request.messages).into());
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

fn messages(wire: &Wire, conversation: &[Message]) -> Vec<Value> {
    let Conversation { system, turns } = Conversation::of(conversation, wire.supports_vision);
    let mut sent = Vec::new();
    if !system.is_empty() {
        sent.push(json!({"role": "system", "content": system}));
    }
    for turn in turns {
        match turn {
            Turn::Said(text, images) => sent.push(json!({"role": "user", "content": content(&text, images)})),
            Turn::Replied(reply, results) => {
                sent.push(assistant(&wire.name, reply));
                sent.extend(results.iter().enumerate().map(|(position, result)| {
                    let id = call_id(result.call, position);
                    json!({"role": "tool", "tool_call_id": id, "content": result.content})
                }));
            }
        }
    }
    sent
}

/// Many servers take nothing but a text where there is no image.
fn content(text: &str, images: &[Image]) -> Value {
    if images.is_empty() {
        return text.into();
    }
    let text = (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}));
    let image = |image: &Image| json!({"type": "image_url", "image_url": {"url": image.data_url()}});
    text.into_iter().chain(images.iter().map(image)).collect()
}

fn assistant(model: &str, reply: &AssistantMessage) -> Value {
    let mut sent = Map::new();
    sent.insert("role".into(), "assistant".into());
    let is_silent = reply.content.is_empty() && !reply.tool_calls.is_empty();
    let content = if is_silent { Value::Null } else { reply.content.clone().into() };
    sent.insert("content".into(), content);
    let kwargs = &reply.additional_kwargs;
    let is_own = is_own(reply, model);
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
