use std::sync::Mutex;

use domain::{
    limits::MODEL_REPLY_BYTES_MAX,
    message::{AssistantMessage, Message, ResponseMetadata, ToolArgs, ToolCall, ToolMessage},
    usage::Usage,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::models::{
    AgentTag, Delta, ModelErrorKind, Provider, answer::Answer, fault::Fault, no_deltas,
    settings::ModelSettings,
};

fn read(pieces: &[&[u8]]) -> Result<AssistantMessage, Fault> {
    let mut reply = Answer::new(&Anthropic);
    for piece in pieces {
        reply.feed(piece, &no_deltas)?;
    }
    reply.finish("claude", &no_deltas)
}

/// A stream of these events, each under its name as the provider sends it.
fn stream(events: &[Value]) -> String {
    let named = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(named).collect()
}

fn read_all(events: &[Value]) -> Result<AssistantMessage, Fault> {
    read(&[stream(events).as_bytes()])
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "claude-x", "content": [], "stop_reason": null,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20,
            "output_tokens": 1}}})
}

fn block(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn text(index: u64, text: &str) -> Value {
    delta(index, json!({"type": "text_delta", "text": text}))
}

fn args(index: u64, piece: &str) -> Value {
    delta(index, json!({"type": "input_json_delta", "partial_json": piece}))
}

fn end(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn stop(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": 15}})
}

fn done() -> Value {
    json!({"type": "message_stop"})
}

fn tool(index: u64, id: &str) -> Value {
    block(index, json!({"type": "tool_use", "id": id, "name": "ls", "input": {}}))
}

fn call(id: &str, args: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "ls".into(), args: ToolArgs::parse(args) }
}

/// Thinking, text, and two parallel calls.
fn good() -> Vec<Value> {
    vec![
        start(),
        json!({"type": "ping"}),
        block(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "let me "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "think"})),
        delta(0, json!({"type": "signature_delta", "signature": "EqQBCgIYAh+/="})),
        end(0),
        block(1, json!({"type": "redacted_thinking", "data": "EmwKAhgB"})),
        end(1),
        block(2, json!({"type": "text", "text": ""})),
        text(2, "Fünf "),
        text(2, "漢字"),
        end(2),
        tool(3, "toolu_1"),
        args(3, ""),
        args(3, "{\"t\": \"é"),
        args(3, "\"}"),
        end(3),
        tool(4, "toolu_2"),
        args(4, "{\"t\": 2}"),
        end(4),
        stop("tool_use"),
        done(),
    ]
}

#[test]
fn a_stream_becomes_a_reply() {
    let seen = Mutex::new(Vec::new());
    let deltas = |delta| seen.lock().unwrap().push(delta);
    let mut answer = Answer::new(&Anthropic);
    answer.feed(stream(&good()).as_bytes(), &deltas).unwrap();
    assert!(answer.is_complete() && answer.is_ended());
    let reply = answer.finish("claude", &deltas).unwrap();
    let kwargs = json!({
        "opaque_blocks": [
            {"opaque": {"type": "thinking", "thinking": "let me think", "signature": "EqQBCgIYAh+/="}},
            {"opaque": {"type": "redacted_thinking", "data": "EmwKAhgB"}},
            {"text_chars": 7}, {"call": "toolu_1"}, {"call": "toolu_2"},
        ],
        "opaque_source": "claude",
    });
    assert_eq!(
        reply,
        AssistantMessage {
            content: "Fünf 漢字".into(),
            id: Some("msg_1".into()),
            tool_calls: vec![call("toolu_1", "{\"t\":\"é\"}"), call("toolu_2", "{\"t\":2}")],
            response_metadata: ResponseMetadata {
                finish_reason: Some("tool_calls".into()),
                model_name: Some("claude-x".into()),
            },
            usage: Some(Usage { cache_read_tokens: Some(100), ..Usage::new(130, 15) }),
            additional_kwargs: kwargs.as_object().unwrap().clone(),
        }
    );
    let started = || Delta::ToolCallStarted("ls".into());
    assert_eq!(
        *seen.lock().unwrap(),
        [Delta::Text("Fünf ".into()), Delta::Text("漢字".into()), started(), started()]
    );
}

// Field report 90, and the list of adapters' tests: signed and redacted thinking across tool turns.
#[test]
fn thinking_goes_back_as_it_came_and_to_its_own_model_only() {
    let reply = read_all(&good()).unwrap();
    let result = |id: &str| {
        Message::Tool(ToolMessage { tool_call_id: id.into(), content: "ok".into(), ..ToolMessage::default() })
    };
    // What is in the log is what is read again.
    let stored = serde_json::to_value(Message::Assistant(reply)).unwrap();
    let request = ModelRequest {
        messages: vec![
            Message::human("hi"),
            serde_json::from_value(stored).unwrap(),
            result("toolu_1"),
            result("toolu_2"),
        ],
        tools: [].into(),
        agent: AgentTag::Lead,
    };
    let body = |name: &str| {
        let wire = Wire::of(&ModelSettings::new(name, Provider::Anthropic));
        Anthropic.body(&wire, &request)["messages"][1]["content"].clone()
    };
    let said = json!([
        {"type": "text", "text": "Fünf 漢字"},
        {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {"t": "é"}},
        {"type": "tool_use", "id": "toolu_2", "name": "ls", "input": {"t": 2}},
    ]);
    let mut whole = vec![
        json!({"type": "thinking", "thinking": "let me think", "signature": "EqQBCgIYAh+/="}),
        json!({"type": "redacted_thinking", "data": "EmwKAhgB"}),
    ];
    whole.extend(said.as_array().unwrap().clone());
    assert_eq!(body("claude"), Value::from(whole));
    assert_eq!(body("other"), said);
}

// A guard took the calls out, and thinking that nothing follows is refused.
#[test]
fn thinking_that_nothing_follows_is_not_sent() {
    let mut reply = read_all(&good()).unwrap();
    reply.tool_calls.clear();
    reply.content.clear();
    let request = ModelRequest {
        messages: vec![Message::human("hi"), Message::Assistant(reply)],
        tools: [].into(),
        agent: AgentTag::Lead,
    };
    let wire = Wire::of(&ModelSettings::new("claude", Provider::Anthropic));
    assert_eq!(Anthropic.body(&wire, &request)["messages"].as_array().unwrap().len(), 1);
}

// Field report 79: calls rule, not the stop reason.
#[test]
fn calls_survive_any_stop_reason() {
    for (reason, ours, native) in [
        ("tool_use", "tool_calls", None),
        ("end_turn", "stop", None),
        ("stop_sequence", "stop", Some("stop_sequence")),
        ("max_tokens", "length", None),
        ("model_context_window_exceeded", "length", Some("model_context_window_exceeded")),
        ("refusal", "refusal", None),
        ("something_new", "something_new", None),
    ] {
        let reply = read_all(&[start(), tool(0, "a"), args(0, "{\"p\":1}"), end(0), stop(reason), done()]);
        let reply = reply.unwrap();
        assert_eq!(reply.tool_calls, [call("a", "{\"p\":1}")], "{reason}");
        assert_eq!(reply.response_metadata.finish_reason.as_deref(), Some(ours));
        let kept = reply.additional_kwargs.get("native_finish_reason").and_then(Value::as_str);
        assert_eq!(kept, native);
    }
}

#[test]
fn a_call_that_the_length_cut_is_invalid() {
    for (pieces, text) in [(vec!["{\"p\": \"/mn"], "{\"p\": \"/mn"), (vec![""], ""), (vec![], "")] {
        let mut events = vec![start(), tool(0, "a"), args(0, "{}"), end(0), tool(1, "b")];
        events.extend(pieces.iter().map(|piece| args(1, piece)));
        events.extend([end(1), stop("max_tokens"), done()]);
        let reply = read_all(&events).unwrap();
        assert_eq!(reply.tool_calls[0], call("a", "{}"));
        assert_eq!(reply.tool_calls[1].args, ToolArgs::Invalid(text.into()));
    }
}

#[test]
fn a_paused_turn_says_what_to_do() {
    let fault = read_all(&[start(), stop("pause_turn"), done()]).unwrap_err();
    assert_eq!(fault.kind(), ModelErrorKind::InvalidReply);
    assert!(fault.to_string().contains("pause_turn, which only tools at the provider cause"), "{fault}");
}

#[test]
fn a_refusal_is_shown_and_marked() {
    let mut refused = stop("refusal");
    refused["delta"]["stop_details"] = json!({"type": "refusal", "explanation": "I cannot"});
    let reply = read_all(&[start(), refused.clone(), done()]).unwrap();
    assert_eq!(
        (reply.content.as_str(), &reply.additional_kwargs["refusal"]),
        ("I cannot", &json!("I cannot"))
    );
    assert_eq!(reply.response_metadata.finish_reason.as_deref(), Some("refusal"));
    let partial = [start(), block(0, json!({"type": "text", "text": ""})), text(0, "half"), refused, done()];
    assert_eq!(read_all(&partial).unwrap().content, "half");
}

// Of blocks some servers forget the beginning, the index, or to send arguments in pieces.
#[test]
fn blocks_are_read_however_they_come() {
    let whole = block(0, json!({"type": "tool_use", "id": "a", "name": "ls", "input": {"p": 1}}));
    assert_eq!(read_all(&[start(), whole, stop("tool_use")]).unwrap().tool_calls, [call("a", "{\"p\":1}")]);
    let reply = read_all(&[text(0, "no beginning"), stop("end_turn")]).unwrap();
    assert_eq!(reply.content, "no beginning");
    let no_index = |mut event: Value| {
        event.as_object_mut().unwrap().remove("index");
        event
    };
    let events = [
        start(),
        no_index(tool(0, "a")),
        no_index(args(0, "{\"p\":1}")),
        no_index(tool(1, "a")),
        no_index(args(1, "{\"p\":2}")),
        stop("tool_use"),
    ];
    let second = ToolCall { id: "call_2".into(), ..call("", "{\"p\":2}") };
    assert_eq!(read_all(&events).unwrap().tool_calls, [call("a", "{\"p\":1}"), second]);
    // Both at once, each in pieces of its own.
    let woven =
        [start(), tool(0, "a"), tool(1, "b"), args(1, "{\"p\""), args(0, "{\"p\":1}"), args(1, ":2}")];
    let reply = read_all(&[&woven[..], &[stop("tool_use")]].concat()).unwrap();
    assert_eq!(reply.tool_calls, [call("a", "{\"p\":1}"), call("b", "{\"p\":2}")]);
}

// Field report 85: the nameless call is kept, so that it gets its error result.
#[test]
fn a_nameless_call_is_kept() {
    let nameless = block(0, json!({"type": "tool_use", "id": "a", "name": "", "input": {}}));
    let reply = read_all(&[start(), nameless, args(0, "{}"), stop("tool_use")]).unwrap();
    assert_eq!(reply.tool_calls, [ToolCall { name: String::new(), ..call("a", "{}") }]);
}

#[test]
fn arguments_and_texts_cut_inside_a_character_are_whole_again() {
    let [head, tail] = ["event: content_block_delta\ndata: ", "\n\n"];
    let piece = |kind: &str, key: &str, bytes: &[u8]| {
        let open = format!(
            "{head}{{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"{kind}\",\"{key}\":\""
        );
        [open.as_bytes(), bytes, b"\"}}", tail.as_bytes()].concat()
    };
    for (first, second) in [(b"x\xF0\x9F".as_slice(), b"\x98\x80y".as_slice()), (b"x\\ud83d", b"\\ude00y")] {
        let bytes = [
            stream(&[start(), block(0, json!({"type": "text", "text": ""}))]).into_bytes(),
            piece("text_delta", "text", first),
            piece("text_delta", "text", second),
            stream(&[stop("end_turn"), done()]).into_bytes(),
        ];
        assert_eq!(read(&[&bytes.concat()]).unwrap().content, "x\u{1F600}y");
        let bytes = [
            stream(&[start(), tool(0, "a")]).into_bytes(),
            piece("input_json_delta", "partial_json", &[b"{\\\"t\\\":\\\"", first].concat()),
            piece("input_json_delta", "partial_json", &[second, b"\\\"}"].concat()),
            stream(&[stop("tool_use"), done()]).into_bytes(),
        ];
        assert_eq!(read(&[&bytes.concat()]).unwrap().tool_calls, [call("a", "{\"t\":\"x\u{1F600}y\"}")]);
    }
}

// Field report 87: what was not counted stays unknown. And counts may come after the stop reason.
#[test]
fn usage_is_the_latest_of_what_was_said() {
    let bare = |usage: Value| {
        let message = json!({"type": "message_start", "message": {"id": "m", "content": [], "usage": usage}});
        let ending = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}});
        [message, text(0, "a"), ending]
    };
    for usage in [json!(null), json!({}), json!({"input_tokens": 0, "output_tokens": 0}), json!("none")] {
        assert_eq!(read_all(&bare(usage)).unwrap().usage, None);
    }
    let late =
        json!({"type": "message_delta", "delta": {}, "usage": {"input_tokens": 7, "output_tokens": 9}});
    let events = [&bare(json!({"input_tokens": 3, "output_tokens": 1}))[..], &[late, done()]].concat();
    assert_eq!(read_all(&events).unwrap().usage, Some(Usage::new(7, 9)));
}

#[track_caller]
fn check_fault(body: &str, kind: ModelErrorKind, shown: &str) {
    let fault = read(&[body.as_bytes()]).unwrap_err();
    assert_eq!((fault.kind(), fault.to_string().as_str()), (kind, shown), "{body}");
}

#[test]
fn an_error_in_a_stream_that_began_well_is_an_error() {
    for (error, kind, shown) in [
        (
            "overloaded_error",
            ModelErrorKind::Busy,
            "the provider answered 529: Overloaded (code overloaded_error)",
        ),
        ("api_error", ModelErrorKind::Transient, "the provider answered 500: Internal (code api_error)"),
    ] {
        let message = if error == "api_error" { "Internal" } else { "Overloaded" };
        let error = json!({"type": "error", "error": {"type": error, "message": message}});
        check_fault(&stream(&[start(), text(0, "a"), error.clone(), stop("end_turn")]), kind, shown);
        // Without the event's name, and as the whole answer with status 200.
        check_fault(&format!("data: {error}\n\n"), kind, shown);
        check_fault(&error.to_string(), kind, shown);
    }
}

#[test]
fn an_answer_that_is_no_stream_is_read_too() {
    let answer = json!({"id": "m", "type": "message", "model": "c", "stop_reason": "tool_use", "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "So"},
        {"type": "tool_use", "id": "a", "name": "ls", "input": {"p": 1}},
    ], "usage": {"input_tokens": 1, "output_tokens": 2}});
    let reply = read(&[b"\n ", answer.to_string().as_bytes()]).unwrap();
    assert_eq!((reply.content.as_str(), &reply.tool_calls[..]), ("So", &[call("a", "{\"p\":1}")][..]));
    assert_eq!(reply.usage, Some(Usage::new(1, 2)));
    assert_eq!(reply.additional_kwargs["opaque_blocks"][0]["opaque"]["signature"], "s");
}

#[test]
fn what_is_no_reply_says_so() {
    check_fault(
        "<html>Welcome",
        ModelErrorKind::InvalidReply,
        "the answer is not a message; check base_url: \"<html>Welcome\"",
    );
    check_fault(
        "{\"hello\": 1}",
        ModelErrorKind::InvalidReply,
        "the answer is not a message; check base_url: \"{\\\"hello\\\": 1}\"",
    );
    check_fault("", ModelErrorKind::Transient, "the stream ended before the reply did");
    check_fault("data: nonsense\n\n", ModelErrorKind::Transient, "an event of the stream is not JSON");
    check_fault(&stream(&[done()]), ModelErrorKind::Transient, "the answer holds no choice");
    // What ends a stream elsewhere ends none here.
    let open = stream(&[start(), text(0, "half")]);
    check_fault(
        &format!("{open}data: [DONE]\n\n"),
        ModelErrorKind::Transient,
        "the stream ended before the reply did",
    );
}

#[test]
fn a_reply_that_is_too_large_is_refused() {
    let piece = "x".repeat(MODEL_REPLY_BYTES_MAX / 4);
    for delta in [text(0, &piece), args(0, &piece)] {
        let events = [&[start()][..], &vec![delta; 5][..], &[stop("end_turn")][..]].concat();
        check_fault(&stream(&events), ModelErrorKind::InvalidReply, "the reply is larger than 4194304 bytes");
    }
    let many = vec![tool(0, "a"); MODEL_REPLY_BYTES_MAX / 64];
    check_fault(&stream(&many), ModelErrorKind::InvalidReply, "the reply is larger than 4194304 bytes");
}

#[test]
fn heartbeats_and_unknown_events_are_passed_over() {
    let mut events = good();
    for at in (0..events.len()).rev() {
        events.insert(at, json!({"type": "ping"}));
        events.insert(at, json!({"type": "news", "index": 0, "delta": {"type": "text_delta", "text": "?"}}));
    }
    let body = format!(": heartbeat\n\n{}", stream(&events));
    assert_eq!(read(&[body.as_bytes()]).unwrap(), read_all(&good()).unwrap());
}

// A reply with unfinished calls is never believed when its stream was cut.
#[test]
fn a_stream_cut_at_any_byte_is_an_error_or_the_whole_reply() {
    let bytes = stream(&good()).into_bytes();
    let whole = read(&[&bytes]).unwrap();
    let mut outcomes = [0, 0];
    for end in 0..bytes.len() {
        match read(&[&bytes[..end]]) {
            Ok(reply) => {
                assert_eq!((&reply.content, &reply.tool_calls), (&whole.content, &whole.tool_calls), "{end}");
                outcomes[0] += 1;
            }
            Err(fault) => {
                assert!(matches!(fault, Fault::Cut | Fault::NotJson(_)), "{end} {fault}");
                assert_eq!(fault.kind(), ModelErrorKind::Transient);
                outcomes[1] += 1;
            }
        }
    }
    assert!(outcomes[0] > 10 && outcomes[1] > 1_000, "{outcomes:?}");
}

#[test]
fn addresses_may_end_with_the_version() {
    for (base, expected) in [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
        ("https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
        ("http://gateway/anthropic?team=a", "http://gateway/anthropic/v1/messages?team=a"),
    ] {
        let url = Anthropic.endpoint(base.parse().unwrap(), "claude").unwrap();
        assert_eq!(url.as_str(), expected);
    }
}

proptest! {
    #[test]
    fn however_an_answer_is_cut_into_pieces_the_reply_is_the_same(
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
    ) {
        let bytes = stream(&good()).into_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(&pieces).unwrap(), read(&[&bytes]).unwrap());
    }

    #[test]
    fn any_order_of_events_is_survived(order in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        let good = good();
        let events: Vec<Value> = order.iter().map(|at| at.get(&good).clone()).collect();
        let _ = read_all(&events);
    }
}
