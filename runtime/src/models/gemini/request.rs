//! The body of a request, as strictly as Generate Content asks: roles take turns, parts are not empty,
//! and the responses to a reply's calls come together, right behind it and in their order.

use domain::{
    message::{AssistantMessage, Image, ToolArgs},
    tool_spec::ToolSpec,
};
use serde_json::{Map, Value, json};

use super::schema;
use crate::models::{
    ModelRequest,
    conversation::{CallResult, Conversation, Turn},
    dialect::{GO_ON, Wire, function_name},
    layout::{Block, blocks},
};

#[cfg(test)]
mod tests;

/// What is signed, and on which part the signature goes back.
pub(super) const SIGNATURE_KEY: &str = "thoughtSignature";
/// The provider's id of a call, where it gave one.
pub(super) const CALL_ID_KEY: &str = "id";

/// The body of a streaming request.
pub(super) fn body(wire: &Wire, request: &ModelRequest) -> Value {
    let Conversation { system, turns } = Conversation::of(&request.messages, wire.supports_vision);
    let mut body = Map::new();
    if !system.is_empty() {
        body.insert("systemInstruction".into(), json!({"parts": [{"text": system}]}));
    }
    body.insert("contents".into(), contents(&wire.name, &turns));
    if !request.tools.is_empty() {
        let declarations: Vec<Value> = request.tools.iter().map(declaration).collect();
        body.insert("tools".into(), json!([{"functionDeclarations": declarations}]));
    }
    let mut generation = Map::new();
    if let Some(max_tokens) = wire.max_tokens {
        generation.insert("maxOutputTokens".into(), max_tokens.into());
    }
    if let Some(temperature) = wire.temperature {
        generation.insert("temperature".into(), temperature.into());
    }
    if !generation.is_empty() {
        body.insert("generationConfig".into(), generation.into());
    }
    body.into()
}

fn declaration(spec: &ToolSpec) -> Value {
    let name = name(&spec.name);
    match schema::parameters(&spec.parameters) {
        Some(parameters) => {
            json!({"name": name, "description": spec.description, "parameters": parameters})
        }
        None => json!({"name": name, "description": spec.description}),
    }
}

/// A function's name, which begins with a letter or an underscore here.
fn name(name: &str) -> String {
    let name = function_name(name);
    let is_good = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if is_good { name } else { format!("_{}", name.get(1..).unwrap_or_default()) }
}

fn contents(model: &str, turns: &[Turn<'_>]) -> Value {
    let mut sent: Vec<(&'static str, Vec<Value>)> = Vec::new();
    let mut add = |role: &'static str, mut parts: Vec<Value>| match sent.last_mut() {
        _ if parts.is_empty() => {}
        Some((newest, sent)) if *newest == role => sent.append(&mut parts),
        Some(_) | None => sent.push((role, parts)),
    };
    for turn in turns {
        match turn {
            Turn::Said(text, images) => {
                add("user", images.iter().map(image_part).chain(text_part(text, None)).collect());
            }
            Turn::Replied(reply, results) => {
                let (said, responses) = turn_parts(model, reply, results);
                add("model", said);
                add("user", responses);
            }
        }
    }
    if sent.last().is_none_or(|(role, _)| *role != "user") {
        sent.push(("user", vec![json!({"text": GO_ON})]));
    }
    sent.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect()
}

/// A reply's parts, and the responses to its calls.
fn turn_parts(model: &str, reply: &AssistantMessage, results: &[CallResult<'_>]) -> (Vec<Value>, Vec<Value>) {
    let (mut said, mut responses) = (Vec::new(), Vec::new());
    for block in blocks(reply, model) {
        match block {
            Block::Opaque(part) => said.push(part.clone()),
            Block::Text(text, extra) => said.extend(text_part(text, extra)),
            Block::Call(position, call, extra) => {
                let args = match &call.args {
                    ToolArgs::Object(args) => args.clone(),
                    ToolArgs::Invalid(_) => Map::new(),
                };
                let id = extra.and_then(|extra| extra.get(CALL_ID_KEY));
                let function = with_id(json!({"name": name(&call.name), "args": args}), id);
                said.push(signed(Map::from_iter([("functionCall".to_owned(), function)]), extra));
                responses.extend(results.get(position).map(|result| response(result, id)));
            }
        }
    }
    // Thoughts alone, of a reply that a guard emptied, say nothing.
    if said.iter().all(|part| part.get("thought").is_some()) {
        said.clear();
    }
    (said, responses)
}

/// A text, unless there is nothing in it, which the provider refuses without a signature.
fn text_part(text: &str, extra: Option<&Value>) -> Option<Value> {
    let is_sent = extra.is_some() || !text.trim().is_empty();
    is_sent.then(|| signed(Map::from_iter([("text".to_owned(), text.into())]), extra))
}

fn image_part(image: &Image) -> Value {
    json!({"inlineData": {"mimeType": image.media_type, "data": image.data}})
}

fn signed(mut part: Map<String, Value>, extra: Option<&Value>) -> Value {
    if let Some(signature) = extra.and_then(|extra| extra.get(SIGNATURE_KEY)) {
        part.insert(SIGNATURE_KEY.into(), signature.clone());
    }
    part.into()
}

fn response(result: &CallResult<'_>, id: Option<&Value>) -> Value {
    let key = if result.is_error { "error" } else { "output" };
    let response = json!({"name": name(&result.call.name), "response": {key: result.content}});
    json!({"functionResponse": with_id(response, id)})
}

fn with_id(mut function: Value, id: Option<&Value>) -> Value {
    if let (Some(id), Some(fields)) = (id, function.as_object_mut()) {
        fields.insert(CALL_ID_KEY.into(), id.clone());
    }
    function
}
