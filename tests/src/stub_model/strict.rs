//! What the strictest providers refuse in a request.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// What to be strict about beyond what every strict provider asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strictness {
    /// Every reply of the past must come with its reasoning.
    pub needs_reasoning: bool,
}

/// Why the body is refused, if it is.
pub(super) fn fault(strictness: Strictness, body: &Value) -> Option<String> {
    let Some(messages) = body["messages"].as_array().filter(|messages| !messages.is_empty()) else {
        return Some("messages: must be a list that is not empty".to_owned());
    };
    order_fault(messages).or_else(|| calls_fault(messages)).or_else(|| tools_fault(body)).or_else(|| {
        let is_bare =
            |message: &Value| is(message, "assistant") && message["reasoning_content"].as_str().is_none();
        let at = messages.iter().position(is_bare).filter(|_| strictness.needs_reasoning)?;
        Some(format!("messages[{at}]: reasoning_content is missing"))
    })
}

fn is(message: &Value, role: &str) -> bool {
    message["role"] == role
}

fn order_fault(messages: &[Value]) -> Option<String> {
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if !["system", "user", "assistant", "tool"].contains(&role) {
            return Some(format!("messages[{at}]: there is no role {role:?}"));
        }
        if role == "system" && at > 0 {
            return Some(format!("messages[{at}]: a system message must be the only one, and first"));
        }
        let has_text = message["content"].as_str().is_some();
        let may_be_silent = role == "assistant" && message["tool_calls"].is_array();
        if !(has_text || may_be_silent && message["content"].is_null()) {
            return Some(format!("messages[{at}]: content must be text"));
        }
    }
    match messages.iter().find(|message| !is(message, "system")) {
        Some(first) if is(first, "user") => None,
        Some(_) | None => Some("messages: a conversation begins with a user message".to_owned()),
    }
}

/// Every call is answered once, right behind its message, and nothing else is answered.
fn calls_fault(messages: &[Value]) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if is(message, "tool") {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            match open.iter().position(|open| open == id) {
                Some(found) => drop(open.remove(found)),
                None => return Some(format!("messages[{at}]: answers the unknown call {id:?}")),
            }
            continue;
        }
        if let Some(id) = open.first() {
            return Some(format!("messages[{at}]: the call {id:?} before it was not answered"));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            if let Some(fault) = call_fault(call) {
                return Some(format!("messages[{at}]: {fault}"));
            }
            open.push(call["id"].as_str().unwrap_or_default().to_owned());
        }
    }
    open.first().map(|id| format!("messages: the call {id:?} was not answered"))
}

fn call_fault(call: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (id, name) = (text(&call["id"]), text(&call["function"]["name"]));
    let arguments = text(&call["function"]["arguments"]);
    if id.is_empty() {
        return Some("a call has no id".to_owned());
    }
    if !is_name(&name) {
        return Some(format!("call {id:?}: name {name:?} has other characters than a-z, A-Z, 0-9, _ and -"));
    }
    let parsed = serde_json::from_str::<Map<String, Value>>(&arguments);
    parsed.err().map(|error| format!("call {id:?}: the arguments are no JSON object: {error}"))
}

fn tools_fault(body: &Value) -> Option<String> {
    let mut seen = BTreeSet::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        let name = tool["function"]["name"].as_str().unwrap_or_default();
        if !is_name(name) || !seen.insert(name) {
            return Some(format!("tools: {name:?} is no name, or there twice"));
        }
        if !tool["function"]["parameters"].is_object() {
            return Some(format!("tools: {name} has no parameters"));
        }
    }
    None
}

/// Whether providers take it as a function's name.
pub(super) fn is_name(name: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    !name.is_empty() && name.len() <= 64 && name.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(messages: Value, expected: Option<&str>) {
        let fault = fault(Strictness::default(), &json!({"messages": messages}));
        match (&fault, expected) {
            (None, None) => {}
            (Some(fault), Some(part)) => assert!(fault.contains(part), "{fault}"),
            (Some(_), None) | (None, Some(_)) => panic!("{fault:?}, not {expected:?}"),
        }
    }

    fn asks(name: &str, arguments: &str) -> Value {
        let call = json!({"id": "a", "type": "function", "function": {"name": name, "arguments": arguments}});
        json!({"role": "assistant", "content": null, "tool_calls": [call]})
    }

    #[test]
    fn what_providers_refuse_is_refused() {
        let system = json!({"role": "system", "content": "s"});
        let user = json!({"role": "user", "content": "u"});
        let said = json!({"role": "assistant", "content": "t"});
        let result = json!({"role": "tool", "tool_call_id": "a", "content": "r"});
        let other = json!({"role": "tool", "tool_call_id": "b", "content": "r"});
        check(json!([system, user, asks("ls", "{}"), result, said]), None);
        check(json!([]), Some("not empty"));
        check(json!([system, system, user]), Some("must be the only one"));
        check(json!([user, system]), Some("must be the only one"));
        check(json!([said, user]), Some("begins with a user"));
        check(json!([user, asks("ls", "{}")]), Some("\"a\" was not answered"));
        check(json!([user, asks("ls", "{}"), user]), Some("\"a\" before it was not answered"));
        check(json!([user, asks("ls", "{}"), other]), Some("unknown call \"b\""));
        check(json!([user, result]), Some("unknown call \"a\""));
        check(json!([user, asks("l s", "{}"), result]), Some("has other characters"));
        check(json!([user, asks("", "{}"), result]), Some("has other characters"));
        check(json!([user, asks("ls", "{\"a"), result]), Some("no JSON object"));
        check(json!([user, {"role": "assistant", "content": null}]), Some("content must be text"));
        check(json!([user, {"role": "developer", "content": "d"}]), Some("no role"));
    }

    #[test]
    fn reasoning_is_asked_for_where_it_is_needed() {
        let body =
            json!({"messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "t"}]});
        let strictness = Strictness { needs_reasoning: true };
        assert_eq!(fault(strictness, &body).unwrap(), "messages[1]: reasoning_content is missing");
        assert_eq!(fault(Strictness::default(), &body), None);
    }
}
