//! Requests: in the words of Chat Completions for scripts, and what the provider refuses in them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::stub_model::{
    face::signature,
    strict::{self, Strictness},
};

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn texts(blocks: &[Value]) -> String {
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}

/// A request in the words of Chat Completions.
pub(in crate::stub_model) fn as_chat(sent: &Value) -> Value {
    let mut messages = Vec::new();
    if !list(&sent["system"]).is_empty() {
        messages.push(json!({"role": "system", "content": texts(list(&sent["system"]))}));
    }
    for message in list(&sent["messages"]) {
        let content = list(&message["content"]);
        if message["role"] == "assistant" {
            messages.push(said(content));
            continue;
        }
        for block in content {
            messages.push(match block["type"].as_str() {
                Some("tool_result") => {
                    json!({"role": "tool", "tool_call_id": block["tool_use_id"], "content": block["content"]})
                }
                _ => json!({"role": "user", "content": block["text"]}),
            });
        }
    }
    let tools: Vec<Value> = list(&sent["tools"])
        .iter()
        .map(|tool| json!({"function": {"name": tool["name"], "parameters": tool["input_schema"]}}))
        .collect();
    json!({"model": sent["model"], "messages": messages, "tools": tools})
}

fn said(content: &[Value]) -> Value {
    let calls: Vec<Value> = content
        .iter()
        .filter(|block| block["type"] == "tool_use")
        .map(|block| {
            let function = json!({"name": block["name"], "arguments": block["input"].to_string()});
            json!({"id": block["id"], "type": "function", "function": function})
        })
        .collect();
    let text = texts(content);
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    message.insert("content".into(), if text.is_empty() { Value::Null } else { text.into() });
    if let Some(thinking) = content.iter().find_map(|block| block["thinking"].as_str()) {
        message.insert("reasoning_content".into(), thinking.into());
    }
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    message.into()
}

/// Why a request is refused, if it is.
pub(in crate::stub_model) fn fault(strictness: Strictness, sent: &Value) -> Option<String> {
    if sent["max_tokens"].as_u64().is_none_or(|tokens| tokens == 0) {
        return Some("max_tokens: Field required".to_owned());
    }
    let messages = list(&sent["messages"]);
    let mut ids = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let wanted = if at % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != wanted {
            return Some(format!("messages.{at}: roles must alternate, beginning with user"));
        }
        let content = list(&message["content"]);
        let fault = content_fault(content, &mut ids).or_else(|| order_fault(strictness, wanted, content));
        if let Some(fault) = fault {
            return Some(format!("messages.{at}: {fault}"));
        }
    }
    if messages.len().is_multiple_of(2) {
        return Some("messages: the last one must be the user's".to_owned());
    }
    for tool in list(&sent["tools"]) {
        if tool["input_schema"]["type"] != "object" {
            return Some(format!("tools: {} must take an object", tool["name"]));
        }
    }
    // Calls and their results follow the same rules with everybody.
    strict::fault(Strictness::default(), &as_chat(sent))
}

fn content_fault(content: &[Value], ids: &mut BTreeSet<String>) -> Option<String> {
    if content.is_empty() {
        return Some("content must not be empty".to_owned());
    }
    content.iter().find_map(|block| match block["type"].as_str() {
        Some("text") => {
            let is_blank = block["text"].as_str().is_none_or(|text| text.trim().is_empty());
            is_blank.then(|| "text content blocks must be non-empty".to_owned())
        }
        Some("thinking") => {
            let is_signed = block["signature"] == signature(block["thinking"].as_str().unwrap_or_default());
            (!is_signed).then(|| "Invalid `signature` in `thinking` block".to_owned())
        }
        Some("redacted_thinking") => {
            let is_signed = block["data"] == signature("redacted");
            (!is_signed).then(|| "Invalid `data` in `redacted_thinking` block".to_owned())
        }
        Some("tool_use") => {
            let id = block["id"].as_str().unwrap_or_default();
            let is_good = strict::is_name(id) && block["input"].is_object();
            (!is_good || !ids.insert(id.to_owned()))
                .then(|| format!("tool_use: {id:?} is no id, or there twice"))
        }
        Some("tool_result") => {
            let is_empty = block["is_error"] == true && block["content"] == "";
            is_empty.then(|| "content cannot be empty if is_error is true".to_owned())
        }
        other => Some(format!("there is no block {other:?}")),
    })
}

fn order_fault(strictness: Strictness, role: &str, content: &[Value]) -> Option<String> {
    let is_kind = |kinds: &[&str]| {
        let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
        move |block: &Value| {
            block["type"].as_str().is_some_and(|kind| kinds.iter().any(|known| known == kind))
        }
    };
    let is_result = is_kind(&["tool_result"]);
    if role == "user" {
        let texts_at = content.iter().position(|block| !is_result(block)).unwrap_or(content.len());
        let is_late = content.iter().skip(texts_at).any(is_result);
        let is_foreign = content.iter().any(is_kind(&["tool_use", "thinking", "redacted_thinking"]));
        return (is_late || is_foreign).then(|| "results come first, and only results and texts".to_owned());
    }
    let is_thinking = is_kind(&["thinking", "redacted_thinking"]);
    if content.last().is_some_and(&is_thinking) {
        return Some("the final block in an assistant message cannot be `thinking`".to_owned());
    }
    let is_bare = content.iter().any(is_kind(&["tool_use"])) && !content.first().is_some_and(&is_thinking);
    (strictness.needs_reasoning && is_bare).then(|| "Expected `thinking`, but found `tool_use`".to_owned())
}
