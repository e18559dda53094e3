//! From a reply to the bytes of its body: one item per server-sent event.

use serde_json::{Map, Value, json};

use super::answer::{Call, Finish, IdSent, IndexSent, NameSent, Reply, UsageSent};

/// Stands for a piece of arguments in JSON that is made before the piece is put in: pieces that end
/// inside a character are not text.
pub(super) const PIECE: &str = "<the piece>";

/// The events of a streamed reply.
pub(super) fn stream(reply: &Reply, number: usize) -> Vec<Vec<u8>> {
    let mut events = vec![event(&chunk(reply, number, json!({"role": "assistant", "content": ""})))];
    if let Some(reasoning) = &reply.reasoning {
        events.push(event(&chunk(reply, number, json!({"reasoning_content": reasoning}))));
    }
    // Text comes in words, as from a real model.
    for word in reply.text.as_deref().unwrap_or_default().split_inclusive(' ') {
        events.push(event(&chunk(reply, number, json!({"content": word}))));
    }
    for (place, call) in reply.calls.iter().enumerate() {
        events.extend(fragments(reply, number, place, call));
    }
    events.push(event(&last_chunk(reply, number)));
    if let UsageSent::LastChunk(input, output) = reply.usage {
        let mut last = chunk(reply, number, json!({}));
        last["choices"] = json!([]);
        last["usage"] = usage(input, output);
        events.push(event(&last));
    }
    if reply.has_done {
        events.push(b"data: [DONE]\n\n".to_vec());
    }
    events
}

fn event(chunk: &Value) -> Vec<u8> {
    format!("data: {chunk}\n\n").into_bytes()
}

fn chunk(reply: &Reply, number: usize, delta: Value) -> Value {
    let mut choice = json!({"index": 0, "delta": delta});
    if reply.finish != Finish::Absent {
        choice["finish_reason"] = Value::Null;
    }
    let mut chunk = json!({
        "id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk", "created": 1_767_225_600,
        "model": "stub-model", "choices": [choice],
    });
    if reply.usage == UsageSent::Null {
        chunk["usage"] = Value::Null;
    }
    chunk
}

fn last_chunk(reply: &Reply, number: usize) -> Value {
    let mut last = chunk(reply, number, json!({}));
    if let Some(reason) = finish_reason(reply) {
        last["choices"][0]["finish_reason"] = reason.into();
    }
    if let UsageSent::WithFinish(input, output) = reply.usage {
        last["usage"] = usage(input, output);
    }
    last
}

fn finish_reason(reply: &Reply) -> Option<&'static str> {
    match reply.finish {
        Finish::Proper if reply.calls.is_empty() => Some("stop"),
        Finish::Proper => Some("tool_calls"),
        Finish::Said(reason) => Some(reason),
        Finish::Null | Finish::Absent => None,
    }
}

fn usage(input: u64, output: u64) -> Value {
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}

/// One call as a list of events.
fn fragments(reply: &Reply, number: usize, place: usize, call: &Call) -> Vec<Vec<u8>> {
    let how = reply.fragments;
    let pieces = pieces(&call.arguments, how.piece_bytes, how.inside_characters);
    let made = pieces.into_iter().enumerate().map(|(at, piece)| {
        let is_first = at == 0;
        let mut fragment = Map::new();
        match how.index {
            IndexSent::Place => drop(fragment.insert("index".into(), place.into())),
            IndexSent::Zero => drop(fragment.insert("index".into(), 0.into())),
            IndexSent::Missing => {}
        }
        if how.id == IdSent::Every || (how.id == IdSent::First && is_first) {
            fragment.insert("id".into(), id(call, number, place).into());
        }
        let mut function = Map::new();
        match how.name {
            NameSent::Every => drop(function.insert("name".into(), call.name.clone().into())),
            NameSent::First | NameSent::ThenEmpty if is_first => {
                fragment.insert("type".into(), "function".into());
                function.insert("name".into(), call.name.clone().into());
            }
            NameSent::ThenEmpty => drop(function.insert("name".into(), "".into())),
            NameSent::First => {}
        }
        function.insert("arguments".into(), PIECE.into());
        fragment.insert("function".into(), function.into());
        let event = event(&chunk(reply, number, json!({"tool_calls": [fragment]})));
        put_in(&event, &piece)
    });
    made.collect()
}

/// The id of a call, in which the number of the request is.
pub(super) fn id(call: &Call, number: usize, place: usize) -> String {
    call.id.clone().unwrap_or_else(|| format!("call_{number}_{}", place + 1))
}

/// Puts a piece of arguments in its place.
pub(super) fn put_in(event: &[u8], piece: &[u8]) -> Vec<u8> {
    let at = event.windows(PIECE.len()).position(|window| window == PIECE.as_bytes()).unwrap();
    [&event[..at], piece, &event[at + PIECE.len()..]].concat()
}

/// The arguments as the inside of a JSON string, in pieces. An escape is never cut.
pub(super) fn pieces(arguments: &str, piece_bytes: usize, inside_characters: bool) -> Vec<Vec<u8>> {
    let quoted = Value::from(arguments).to_string();
    let inside = &quoted.as_bytes()[1..quoted.len() - 1];
    if piece_bytes == 0 || inside.is_empty() {
        return vec![inside.to_vec()];
    }
    let (mut pieces, mut piece, mut rest) = (Vec::new(), Vec::new(), inside);
    while !rest.is_empty() {
        let unit = match rest[0] {
            b'\\' if rest[1] == b'u' => 6,
            b'\\' => 2,
            _ if inside_characters => 1,
            first => character_bytes(first),
        };
        piece.extend_from_slice(&rest[..unit]);
        rest = &rest[unit..];
        if piece.len() >= piece_bytes {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

const fn character_bytes(first: u8) -> usize {
    match first.leading_ones() {
        0 => 1,
        ones => ones as usize,
    }
}

/// A reply as one JSON object.
pub(super) fn whole(reply: &Reply, number: usize) -> Value {
    let calls = reply.calls.iter().enumerate().map(|(place, call)| {
        let function = json!({"name": call.name, "arguments": call.arguments});
        json!({"id": id(call, number, place), "type": "function", "function": function})
    });
    let mut message = json!({"role": "assistant", "content": reply.text});
    if !reply.calls.is_empty() {
        message["tool_calls"] = calls.collect();
    }
    if let Some(reasoning) = &reply.reasoning {
        message["reasoning_content"] = reasoning.clone().into();
    }
    let mut whole = json!({
        "id": format!("chatcmpl-{number}"), "object": "chat.completion", "model": "stub-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(reply)}],
    });
    match reply.usage {
        UsageSent::LastChunk(input, output) | UsageSent::WithFinish(input, output) => {
            whole["usage"] = usage(input, output);
        }
        UsageSent::Null => whole["usage"] = Value::Null,
        UsageSent::Absent => {}
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &str, piece_bytes: usize, inside_characters: bool, lengths: &[usize]) {
        let pieces = pieces(arguments, piece_bytes, inside_characters);
        let found: Vec<_> = pieces.iter().map(Vec::len).collect();
        assert_eq!(found, lengths);
        let joined = format!("\"{}\"", String::from_utf8(pieces.concat()).unwrap());
        assert_eq!(serde_json::from_str::<String>(&joined).unwrap(), arguments);
    }

    #[test]
    fn pieces_make_the_whole_again() {
        check("", 3, false, &[0]);
        check("abcdefg", 0, false, &[7]);
        check("abcdefg", 3, false, &[3, 3, 1]);
        check("a\u{1F600}b", 2, false, &[5, 1]);
        check("a\u{1F600}b", 2, true, &[2, 2, 2]);
        check("\"\n\u{1}", 1, true, &[2, 2, 6]);
    }

    #[test]
    fn a_stream_ends_with_done_after_its_usage() {
        let text = String::from_utf8(stream(&Reply::says("two words"), 1).concat()).unwrap();
        let events: Vec<_> = text.split("\n\n").filter(|event| !event.is_empty()).collect();
        assert_eq!(events.len(), 6);
        assert!(events[3].contains("\"finish_reason\":\"stop\""), "{}", events[3]);
        assert!(events[4].contains("\"choices\":[],\"usage\":{\"prompt_tokens\":100"), "{}", events[4]);
        assert_eq!(events[5], "data: [DONE]");
    }
}
