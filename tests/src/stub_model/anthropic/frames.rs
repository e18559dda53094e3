//! From a reply to the bytes of its body.

use serde_json::{Map, Value, json};

use crate::stub_model::{
    answer::{Call, Finish, IdSent, IndexSent, Reply, UsageSent},
    face::signature,
    frames::{PIECE, id, pieces, put_in},
};

/// The events of a streamed reply.
pub(in crate::stub_model) fn stream(reply: &Reply, number: usize) -> Vec<Vec<u8>> {
    let mut events = vec![event(&start(reply, number)), event(&json!({"type": "ping"}))];
    let mut place = 0;
    if let Some(reasoning) = &reply.reasoning {
        let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
        events.push(event(&begin(reply, place, thinking)));
        events.push(event(&delta(reply, place, json!({"type": "thinking_delta", "thinking": reasoning}))));
        let signed = json!({"type": "signature_delta", "signature": signature(reasoning)});
        events.push(event(&delta(reply, place, signed)));
        events.push(event(&end(reply, place)));
        let redacted = json!({"type": "redacted_thinking", "data": signature("redacted")});
        events.push(event(&begin(reply, place + 1, redacted)));
        events.push(event(&end(reply, place + 1)));
        place += 2;
    }
    if let Some(text) = &reply.text {
        events.push(event(&begin(reply, place, json!({"type": "text", "text": ""}))));
        for word in text.split_inclusive(' ') {
            events.push(event(&delta(reply, place, json!({"type": "text_delta", "text": word}))));
        }
        events.push(event(&end(reply, place)));
        place += 1;
    }
    for (at, call) in reply.calls.iter().enumerate() {
        events.extend(block_of(reply, number, (at, place + at), call));
    }
    if reply.finish != Finish::Absent {
        events.push(event(&ending(reply)));
    }
    if reply.has_done {
        events.push(event(&json!({"type": "message_stop"})));
    }
    events
}

fn event(data: &Value) -> Vec<u8> {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap()).into_bytes()
}

fn start(reply: &Reply, number: usize) -> Value {
    let usage = match reply.usage {
        UsageSent::LastChunk(input, _) => json!({"input_tokens": input, "output_tokens": 1}),
        UsageSent::WithFinish(..) | UsageSent::Null | UsageSent::Absent => Value::Null,
    };
    json!({"type": "message_start", "message": {
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "stub-model",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
    }})
}

/// The index of a block, as careless as the script wants it.
fn placed(reply: &Reply, place: usize, mut event: Value) -> Value {
    match reply.fragments.index {
        IndexSent::Place => event["index"] = place.into(),
        IndexSent::Zero => event["index"] = 0.into(),
        IndexSent::Missing => {}
    }
    event
}

fn begin(reply: &Reply, place: usize, block: Value) -> Value {
    placed(reply, place, json!({"type": "content_block_start", "content_block": block}))
}

fn delta(reply: &Reply, place: usize, delta: Value) -> Value {
    placed(reply, place, json!({"type": "content_block_delta", "delta": delta}))
}

fn end(reply: &Reply, place: usize) -> Value {
    placed(reply, place, json!({"type": "content_block_stop"}))
}

fn block_of(reply: &Reply, number: usize, (at, place): (usize, usize), call: &Call) -> Vec<Vec<u8>> {
    let mut block = json!({"type": "tool_use", "name": call.name, "input": {}});
    if reply.fragments.id != IdSent::Missing {
        block["id"] = id(call, number, at).into();
    }
    let mut events = vec![event(&begin(reply, place, block))];
    let how = reply.fragments;
    for piece in pieces(&call.arguments, how.piece_bytes, how.inside_characters) {
        let fragment = delta(reply, place, json!({"type": "input_json_delta", "partial_json": PIECE}));
        events.push(put_in(&event(&fragment), &piece));
    }
    events.push(event(&end(reply, place)));
    events
}

fn ending(reply: &Reply) -> Value {
    let mut ending = json!({"type": "message_delta", "delta": {"stop_reason": stop_reason(reply)}});
    if let Some(usage) = usage(reply) {
        ending["usage"] = usage;
    }
    ending
}

fn usage(reply: &Reply) -> Option<Value> {
    match reply.usage {
        UsageSent::LastChunk(input, output) | UsageSent::WithFinish(input, output) => {
            Some(json!({"input_tokens": input, "output_tokens": output}))
        }
        UsageSent::Null => Some(Value::Null),
        UsageSent::Absent => None,
    }
}

fn stop_reason(reply: &Reply) -> Option<&'static str> {
    match reply.finish {
        Finish::Proper if reply.calls.is_empty() => Some("end_turn"),
        Finish::Proper => Some("tool_use"),
        Finish::Said("stop") => Some("end_turn"),
        Finish::Said("tool_calls") => Some("tool_use"),
        Finish::Said("length") => Some("max_tokens"),
        Finish::Said("content_filter") => Some("refusal"),
        Finish::Said(reason) => Some(reason),
        Finish::Null | Finish::Absent => None,
    }
}

/// A reply as one JSON object.
pub(in crate::stub_model) fn whole(reply: &Reply, number: usize) -> Value {
    let mut content = Vec::new();
    if let Some(reasoning) = &reply.reasoning {
        let signature = signature(reasoning);
        content.push(json!({"type": "thinking", "thinking": reasoning, "signature": signature}));
    }
    content.extend(reply.text.as_ref().map(|text| json!({"type": "text", "text": text})));
    content.extend(reply.calls.iter().enumerate().map(|(at, call)| {
        let input: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
        json!({"type": "tool_use", "id": id(call, number, at), "name": call.name, "input": input})
    }));
    json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "stub-model",
        "content": content, "stop_reason": stop_reason(reply), "usage": usage(reply),
    })
}
