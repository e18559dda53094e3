//! From a reply to the bytes of its body. Calls come whole, so that nothing cuts their arguments.

use serde_json::{Value, json};

use crate::stub_model::{
    answer::{Call, Finish, IdSent, Reply, UsageSent},
    face::signature,
    frames::id,
};

/// The events of a streamed reply.
pub(in crate::stub_model) fn stream(reply: &Reply, number: usize) -> Vec<Vec<u8>> {
    let mut chunks: Vec<Value> =
        parts(reply, number).into_iter().map(|part| chunk(number, &[part])).collect();
    let mut last = chunk(number, &[]);
    if let Some(reason) = finish_reason(reply) {
        last["candidates"][0]["finishReason"] = reason.into();
    }
    if let (UsageSent::WithFinish(..) | UsageSent::Null, Some(usage)) = (reply.usage, usage(reply)) {
        last["usageMetadata"] = usage;
    }
    if reply.finish != Finish::Absent {
        chunks.push(last);
    }
    if let (UsageSent::LastChunk(..), Some(usage)) = (reply.usage, usage(reply)) {
        chunks.push(json!({"usageMetadata": usage, "modelVersion": "stub-model"}));
    }
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n").into_bytes()).collect()
}

fn chunk(number: usize, parts: &[Value]) -> Value {
    json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
        "modelVersion": "stub-model", "responseId": format!("resp-{number}"),
    })
}

fn parts(reply: &Reply, number: usize) -> Vec<Value> {
    let mut parts = Vec::new();
    parts.extend(reply.reasoning.as_ref().map(|thought| json!({"text": thought, "thought": true})));
    for word in reply.text.as_deref().unwrap_or_default().split_inclusive(' ') {
        parts.push(json!({"text": word}));
    }
    for (at, call) in reply.calls.iter().enumerate() {
        let mut part = json!({"functionCall": function(reply, call, id(call, number, at))});
        // Of parallel calls only the first is signed.
        if reply.reasoning.is_some() && at == 0 {
            part["thoughtSignature"] = signature(&call.name).into();
        }
        parts.push(part);
    }
    if reply.reasoning.is_some() && reply.calls.is_empty() {
        parts.push(json!({"text": "", "thoughtSignature": signature("")}));
    }
    parts
}

fn function(reply: &Reply, call: &Call, id: String) -> Value {
    // Arguments that are no JSON are sent as a text, which is no object either.
    let args: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into());
    match reply.fragments.id {
        IdSent::Missing => json!({"name": call.name, "args": args}),
        IdSent::First | IdSent::Every => json!({"id": id, "name": call.name, "args": args}),
    }
}

fn usage(reply: &Reply) -> Option<Value> {
    match reply.usage {
        UsageSent::LastChunk(input, output) | UsageSent::WithFinish(input, output) => Some(json!({
            "promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output,
        })),
        UsageSent::Null => Some(Value::Null),
        UsageSent::Absent => None,
    }
}

fn finish_reason(reply: &Reply) -> Option<&'static str> {
    match reply.finish {
        Finish::Proper => Some("STOP"),
        Finish::Said("stop" | "tool_calls") => Some("STOP"),
        Finish::Said("length") => Some("MAX_TOKENS"),
        Finish::Said("content_filter") => Some("SAFETY"),
        Finish::Said(reason) => Some(reason),
        Finish::Null | Finish::Absent => None,
    }
}

/// A reply as one JSON object.
pub(in crate::stub_model) fn whole(reply: &Reply, number: usize) -> Value {
    let mut whole = chunk(number, &parts(reply, number));
    if let Some(reason) = finish_reason(reply) {
        whole["candidates"][0]["finishReason"] = reason.into();
    }
    if let Some(usage) = usage(reply) {
        whole["usageMetadata"] = usage;
    }
    whole
}
