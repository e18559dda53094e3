//! Requests: in the words of Chat Completions for scripts, and what the provider refuses in them.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};

use crate::stub_model::{
    face::signature,
    strict::{self, Strictness},
};

/// What a schema of parameters may hold.
const KEYWORDS: &[&str] = &[
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "pattern",
    "anyOf",
];
const FIELDS: &[&str] =
    &["model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"];

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn texts(parts: &[Value]) -> String {
    let shown = parts.iter().filter(|part| part["thought"] != true);
    shown.filter_map(|part| part["text"].as_str()).collect()
}

/// A request in the words of Chat Completions. Calls without ids get some by their places.
pub(in crate::stub_model) fn as_chat(sent: &Value) -> Value {
    let mut messages = Vec::new();
    if sent["systemInstruction"].is_object() {
        messages.push(json!({"role": "system", "content": texts(list(&sent["systemInstruction"]["parts"]))}));
    }
    let mut open: VecDeque<String> = VecDeque::new();
    for (at, content) in list(&sent["contents"]).iter().enumerate() {
        let parts = list(&content["parts"]);
        if content["role"] == "model" {
            open = ids(at, parts);
            messages.push(said(parts, &open));
            continue;
        }
        for part in parts {
            messages.push(match part.get("functionResponse") {
                Some(response) => {
                    let text = response["response"]["output"].as_str();
                    let text = text.or(response["response"]["error"].as_str());
                    json!({"role": "tool", "tool_call_id": open.pop_front(), "content": text})
                }
                None => json!({"role": "user", "content": part["text"]}),
            });
        }
    }
    let declared = list(&sent["tools"]).iter().flat_map(|tool| list(&tool["functionDeclarations"]));
    let tools: Vec<Value> = declared
        .map(|tool| {
            let parameters = tool.get("parameters").cloned().unwrap_or_else(|| json!({"type": "object"}));
            json!({"function": {"name": tool["name"], "parameters": parameters}})
        })
        .collect();
    json!({"model": sent["model"], "messages": messages, "tools": tools})
}

fn ids(at: usize, parts: &[Value]) -> VecDeque<String> {
    let calls = parts.iter().filter_map(|part| part.get("functionCall")).enumerate();
    calls
        .map(|(place, call)| {
            call["id"].as_str().map_or_else(|| format!("at_{at}_{place}"), |id| format!("{id}-{at}"))
        })
        .collect()
}

fn said(parts: &[Value], ids: &VecDeque<String>) -> Value {
    let calls = parts.iter().filter_map(|part| part.get("functionCall"));
    let calls: Vec<Value> = calls
        .zip(ids)
        .map(|(call, id)| {
            let function = json!({"name": call["name"], "arguments": call["args"].to_string()});
            json!({"id": id, "type": "function", "function": function})
        })
        .collect();
    let text = texts(parts);
    let mut message =
        json!({"role": "assistant", "content": if text.is_empty() { None } else { Some(text) }});
    if let Some(thought) = parts.iter().find(|part| part["thought"] == true) {
        message["reasoning_content"] = thought["text"].clone();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

/// Why a request is refused, if it is.
pub(in crate::stub_model) fn fault(strictness: Strictness, sent: &Value) -> Option<String> {
    let fields = sent.as_object()?.keys();
    if let Some(unknown) = fields.into_iter().find(|field| !FIELDS.contains(&field.as_str())) {
        return Some(format!("Unknown name {unknown:?}: Cannot find field."));
    }
    let contents = list(&sent["contents"]);
    let mut calls: Vec<&Value> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let wanted = if at % 2 == 0 { "user" } else { "model" };
        let parts = list(&content["parts"]);
        let fault = if content["role"] == wanted {
            parts_fault(parts).or_else(|| calls_fault(strictness, &calls, parts, wanted))
        } else {
            Some("roles must take turns, beginning with the user".to_owned())
        };
        if let Some(fault) = fault {
            return Some(format!("contents[{at}]: {fault}"));
        }
        calls = parts.iter().filter_map(|part| part.get("functionCall")).collect();
    }
    if contents.len().is_multiple_of(2) {
        return Some("contents: the last one must be the user's".to_owned());
    }
    declarations_fault(sent).or_else(|| strict::fault(Strictness::default(), &as_chat(sent)))
}

fn parts_fault(parts: &[Value]) -> Option<String> {
    if parts.is_empty() {
        return Some("parts must not be empty".to_owned());
    }
    parts.iter().find_map(|part| {
        let signed = match part.get("functionCall") {
            Some(call) => call["name"].as_str(),
            None => part["text"].as_str(),
        };
        let is_wrong = part
            .get("thoughtSignature")
            .is_some_and(|given| signed.is_none_or(|signed| *given != signature(signed)));
        if is_wrong {
            return Some("Thought signature is not valid".to_owned());
        }
        let is_empty = part["text"] == "" && part.get("thoughtSignature").is_none();
        is_empty.then(|| "required oneof field 'data' must have one initialized field".to_owned())
    })
}

/// Every call is answered in the next content, by name, id and order; and the first of a step's calls
/// comes with its signature where that is asked for.
fn calls_fault(strictness: Strictness, calls: &[&Value], parts: &[Value], role: &str) -> Option<String> {
    if role == "model" {
        let first = parts.iter().find(|part| part.get("functionCall").is_some())?;
        let is_bare = strictness.needs_reasoning && first.get("thoughtSignature").is_none();
        return is_bare.then(|| "Function call is missing a thought_signature".to_owned());
    }
    let responses: Vec<&Value> = parts.iter().filter_map(|part| part.get("functionResponse")).collect();
    if responses.len() != calls.len() {
        return Some(format!("{} function responses to {} calls", responses.len(), calls.len()));
    }
    let differs = |(call, response): (&&Value, &&Value)| {
        call["name"] != response["name"] || call["id"] != response["id"] || !response["response"].is_object()
    };
    let is_wrong = calls.iter().zip(&responses).any(differs);
    is_wrong.then(|| "a function response is not that of its call".to_owned())
}

fn declarations_fault(sent: &Value) -> Option<String> {
    let declared = list(&sent["tools"]).iter().flat_map(|tool| list(&tool["functionDeclarations"]));
    let mut seen = BTreeSet::new();
    for declaration in declared {
        let name = declaration["name"].as_str().unwrap_or_default();
        if !strict::is_name(name)
            || name.starts_with(|first: char| first.is_ascii_digit())
            || !seen.insert(name)
        {
            return Some(format!("function_declarations: {name:?} is no name, or there twice"));
        }
        if let Some(fault) = declaration.get("parameters").and_then(schema_fault) {
            return Some(format!("function_declarations: {name}: {fault}"));
        }
    }
    None
}

fn schema_fault(schema: &Value) -> Option<String> {
    let Some(fields) = schema.as_object() else { return Some(format!("{schema} is no schema")) };
    if let Some(unknown) = fields.keys().find(|keyword| !KEYWORDS.contains(&keyword.as_str())) {
        return Some(format!("Unknown name {unknown:?}: Cannot find field."));
    }
    let choices = list(&schema["anyOf"]);
    if choices.is_empty() && !schema["type"].is_string() {
        return Some(format!("{schema} has no type"));
    }
    if schema["type"] == "array" && !schema["items"].is_object() {
        return Some("items: missing field".to_owned());
    }
    if schema["properties"].as_object().is_some_and(serde_json::Map::is_empty) {
        return Some("properties: should be non-empty for OBJECT type".to_owned());
    }
    if !schema["enum"].is_null() && schema["type"] != "string" {
        return Some("enum: only allowed for STRING type".to_owned());
    }
    let properties = schema["properties"].as_object().into_iter().flat_map(|properties| properties.values());
    let inner = properties.chain(choices).chain(schema.get("items"));
    inner.into_iter().find_map(schema_fault)
}
