use std::sync::Mutex;

use domain::{
    limits::MODEL_REPLY_BYTES_MAX,
    message::{AssistantMessage, ToolArgs, ToolCall},
    usage::Usage,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::models::{Delta, ModelErrorKind, answer::Answer, fault::Fault, no_deltas};

fn read(pieces: &[&[u8]]) -> Result<AssistantMessage, Fault> {
    let mut reply = Answer::new(&OpenAi);
    for piece in pieces {
        reply.feed(piece, &no_deltas)?;
    }
    reply.finish("local", &no_deltas)
}

/// A stream of these chunks, with `[DONE]` at the end.
fn stream(chunks: &[Value]) -> String {
    let events = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    events.chain(["data: [DONE]\n\n".to_owned()]).collect()
}

fn delta(delta: Value) -> Value {
    json!({"id": "r1", "model": "qwen", "choices": [{"index": 0, "delta": delta}]})
}

fn finish(reason: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// A chunk that holds fragments of calls.
fn calls(fragments: Value) -> Value {
    delta(json!({"tool_calls": fragments}))
}

fn call(id: &str, name: &str, args: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), args: ToolArgs::parse(args) }
}

#[track_caller]
fn check_calls(chunks: &[Value], expected: &[ToolCall]) {
    let reply = read(&[stream(chunks).as_bytes()]).unwrap();
    assert_eq!(reply.tool_calls, expected);
}

#[test]
fn text_usage_and_headings_are_put_together() {
    let chunks = [
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": "Hel"})),
        delta(json!({"content": [{"type": "text", "text": "lo"}]})),
        finish(json!("stop")),
        json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 3}}}),
    ];
    let seen = Mutex::new(Vec::new());
    let mut reply = Answer::new(&OpenAi);
    let deltas = |delta| seen.lock().unwrap().push(delta);
    reply.feed(stream(&chunks).as_bytes(), &deltas).unwrap();
    assert!(reply.is_complete() && reply.is_ended());
    let reply = reply.finish("local", &deltas).unwrap();
    assert_eq!(
        reply,
        AssistantMessage {
            content: "Hello".into(),
            id: Some("r1".into()),
            response_metadata: domain::message::ResponseMetadata {
                finish_reason: Some("stop".into()),
                model_name: Some("qwen".into()),
            },
            usage: Some(Usage { cache_read_tokens: Some(3), ..Usage::new(5, 2) }),
            ..AssistantMessage::default()
        }
    );
    assert_eq!(*seen.lock().unwrap(), [Delta::Text("Hel".into()), Delta::Text("lo".into())]);
}

// Field report 79: calls rule, not the finish reason.
#[test]
fn calls_survive_any_finish_reason() {
    for reason in [json!("tool_calls"), json!("stop"), json!("other"), json!("length"), json!(null), json!(3)]
    {
        let fragment = json!([{"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{\"p\":1}"}}]);
        check_calls(&[calls(fragment), finish(reason)], &[call("a", "ls", "{\"p\":1}")]);
    }
}

// Nothing tells it from a call without arguments, and so it does not run.
#[test]
fn a_call_that_the_length_cut_before_its_arguments_is_invalid() {
    for args in [json!(""), json!(null)] {
        let fragment = json!([
            {"index": 0, "id": "a", "function": {"name": "ls", "arguments": ""}},
            {"index": 1, "id": "b", "function": {"name": "ls", "arguments": args}},
        ]);
        let cut = ToolCall { args: ToolArgs::Invalid(String::new()), ..call("b", "ls", "") };
        check_calls(&[calls(fragment), finish(json!("length"))], &[call("a", "ls", ""), cut]);
    }
}

#[test]
fn a_call_that_the_length_cut_keeps_its_text_and_is_invalid() {
    let fragment =
        json!([{"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{\"path\": \"/mn"}}]);
    let reply = read(&[stream(&[calls(fragment), finish(json!("length"))]).as_bytes()]).unwrap();
    assert_eq!(reply.tool_calls[0].args, ToolArgs::Invalid("{\"path\": \"/mn".into()));
    assert_eq!(reply.response_metadata.finish_reason.as_deref(), Some("length"));
}

#[test]
fn several_fragments_in_one_chunk() {
    check_calls(
        &[
            calls(json!([
                {"index": 0, "id": "a", "function": {"name": "ls", "arguments": ""}},
                {"index": 1, "id": "b", "function": {"name": "grep", "arguments": "{\"x\""}},
            ])),
            calls(json!([
                {"index": 1, "function": {"arguments": ":1}"}},
                {"index": 0, "function": {"arguments": "{\"y\":2}"}},
            ])),
        ],
        &[call("a", "ls", "{\"y\":2}"), call("b", "grep", "{\"x\":1}")],
    );
}

// Field report 81.
#[test]
fn calls_with_the_same_index_and_different_ids_are_two() {
    check_calls(
        &[
            calls(json!([{"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{\"p\":"}}])),
            calls(json!([{"index": 0, "function": {"arguments": "1}"}}])),
            calls(json!([{"index": 0, "id": "b", "function": {"name": "ls", "arguments": "{\"p\":"}}])),
            calls(json!([{"index": 0, "function": {"arguments": "2}"}}])),
        ],
        &[call("a", "ls", "{\"p\":1}"), call("b", "ls", "{\"p\":2}")],
    );
    check_calls(
        &[calls(json!([
            {"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{}"}},
            {"index": 0, "id": "b", "function": {"name": "ls", "arguments": "{}"}},
        ]))],
        &[call("a", "ls", "{}"), call("b", "ls", "{}")],
    );
}

#[test]
fn calls_without_an_index_are_told_apart_by_id_or_name() {
    check_calls(
        &[
            calls(json!([{"id": "a", "function": {"name": "ls", "arguments": "{\"p\":"}}])),
            calls(json!([{"function": {"arguments": "1}"}}])),
            calls(json!([{"id": "b", "function": {"name": "ls", "arguments": "{\"p\":"}}])),
            calls(json!([{"function": {"arguments": "2}"}}])),
        ],
        &[call("a", "ls", "{\"p\":1}"), call("b", "ls", "{\"p\":2}")],
    );
    check_calls(
        &[
            calls(json!([{"function": {"name": "ls", "arguments": "{}"}},
                {"function": {"name": "ls", "arguments": "{\"p\":"}}])),
            calls(json!([{"function": {"arguments": "2}"}}])),
            calls(json!([{"function": {"name": "grep", "arguments": "{}"}}])),
        ],
        &[call("call_1", "ls", "{}"), call("call_2", "ls", "{\"p\":2}"), call("call_3", "grep", "{}")],
    );
}

#[test]
fn calls_with_the_same_index_and_no_ids_are_told_apart_by_whole_arguments() {
    check_calls(
        &[
            calls(json!([{"index": 0, "function": {"name": "ls", "arguments": "{\"p\":1}"}}])),
            calls(json!([{"index": 0, "function": {"name": "ls", "arguments": "{\"p\":2}"}}])),
        ],
        &[call("call_1", "ls", "{\"p\":1}"), call("call_2", "ls", "{\"p\":2}")],
    );
}

// Field report 83.
#[test]
fn an_id_and_name_that_come_once_or_every_time_make_one_call() {
    for (id, name) in [(json!(null), json!(null)), (json!(""), json!("")), (json!("a"), json!("ls"))] {
        check_calls(
            &[
                calls(json!([{"index": 0, "id": "a", "function": {"name": "ls", "arguments": ""}}])),
                calls(json!([{"index": 0, "id": id, "function": {"name": name, "arguments": "{\"p\":"}}])),
                calls(json!([{"index": 0, "id": id, "function": {"name": name, "arguments": "\"é\"}"}}])),
            ],
            &[call("a", "ls", "{\"p\":\"é\"}")],
        );
    }
    // The id comes late, or is another one in every chunk.
    check_calls(
        &[
            calls(json!([{"index": 0, "function": {"name": "ls", "arguments": "{"}}])),
            calls(json!([{"index": 0, "id": "a", "function": {"arguments": ""}}])),
            calls(json!([{"index": 0, "id": "z", "function": {"arguments": "}"}}])),
        ],
        &[call("a", "ls", "{}")],
    );
    // The name grows.
    check_calls(
        &[
            calls(json!([{"index": 0, "id": "a", "function": {"name": "read_"}}])),
            calls(json!([{"index": 0, "function": {"name": "file", "arguments": "{}"}}])),
        ],
        &[call("a", "read_file", "{}")],
    );
}

#[test]
fn arguments_may_be_whole_objects_or_nothing() {
    check_calls(
        &[calls(json!([
            {"index": 0, "id": "a", "function": {"name": "ls", "arguments": {"p": 1}}},
            {"index": 1, "id": "b", "function": {"name": "ls", "arguments": null}},
            {"index": 2, "id": "c", "function": {"name": "ls"}},
            {"index": 3, "id": "d", "name": "ls", "arguments": "{\"p\":4}"},
        ]))],
        &[
            call("a", "ls", "{\"p\":1}"),
            call("b", "ls", ""),
            call("c", "ls", ""),
            call("d", "ls", "{\"p\":4}"),
        ],
    );
}

// Field report 85: the nameless call is kept, so that it gets its error result.
#[test]
fn a_nameless_call_is_kept_beside_the_good_one() {
    check_calls(
        &[calls(json!([
            {"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{}"}},
            {"index": 1, "id": "b", "function": {"name": "", "arguments": "{}"}},
        ]))],
        &[call("a", "ls", "{}"), call("b", "", "{}")],
    );
}

#[test]
fn ids_are_unique_within_a_reply() {
    check_calls(
        &[calls(json!([
            {"index": 0, "id": "call_2", "function": {"name": "ls", "arguments": "{}"}},
            {"index": 1, "function": {"name": "ls", "arguments": "{}"}},
            {"index": 2, "id": "call_2", "function": {"name": "ls", "arguments": "{}"}},
        ]))],
        &[call("call_2", "ls", "{}"), call("call_2_", "ls", "{}"), call("call_3", "ls", "{}")],
    );
}

#[test]
fn arguments_cut_inside_a_character_are_whole_again() {
    let head = br#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"w","arguments":"{\"t\":"#;
    let next = br#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":""#;
    let end = b"\"}}]}}]}\n\n";
    for (first, second) in
        [(b"\\\"x\xF0\x9F".as_slice(), b"\x98\x80\\\"}".as_slice()), (b"\\\"x\\ud83d", b"\\ude00\\\"}")]
    {
        let pieces: &[&[u8]] = &[head, first, end, next, second, end, b"data: [DONE]\n\n"];
        let reply = read(pieces).unwrap();
        assert_eq!(reply.tool_calls, [call("a", "w", "{\"t\":\"x\u{1F600}\"}")]);
    }
}

// Field report 87: what was not counted stays unknown.
#[test]
fn usage_that_is_absent_null_or_zero_stays_absent() {
    for usage in [json!(null), json!({}), json!({"prompt_tokens": 0, "completion_tokens": 0}), json!("none")]
    {
        let mut last = finish(json!("stop"));
        last["usage"] = usage;
        let reply = read(&[stream(&[delta(json!({"content": "a"})), last]).as_bytes()]).unwrap();
        assert_eq!(reply.usage, None);
    }
}

#[test]
fn reasoning_and_signatures_are_kept_beside_the_text() {
    let chunks = [
        delta(json!({"reasoning_content": "let me ", "content": "So"})),
        delta(json!({"reasoning_content": "think", "content": null})),
        calls(json!([{"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": "sig"}}}])),
        finish(json!("tool_calls")),
    ];
    let reply = read(&[stream(&chunks).as_bytes()]).unwrap();
    assert_eq!(reply.content, "So");
    assert_eq!(
        Value::from(reply.additional_kwargs),
        json!({
            "reasoning_content": "let me think",
            "opaque_call_extras": {"a": {"google": {"thought_signature": "sig"}}},
            "opaque_source": "local",
        })
    );
}

#[test]
fn a_refusal_is_shown_and_marked() {
    let chunks = [
        delta(json!({"refusal": "I can"})),
        delta(json!({"refusal": "not"})),
        finish(json!("content_filter")),
    ];
    let reply = read(&[stream(&chunks).as_bytes()]).unwrap();
    assert_eq!(
        (reply.content.as_str(), &reply.additional_kwargs["refusal"]),
        ("I cannot", &json!("I cannot"))
    );
    assert_eq!(reply.response_metadata.finish_reason.as_deref(), Some("content_filter"));
}

#[test]
fn heartbeats_and_unknown_events_are_passed_over() {
    let body = format!(
        ": OPENROUTER PROCESSING\n\ndata:\n\nevent: ping\n\n{}",
        stream(&[json!({"choices": []}), delta(json!({"content": "a"})), finish(json!("stop"))])
    );
    assert_eq!(read(&[body.as_bytes()]).unwrap().content, "a");
}

#[track_caller]
fn check_fault(body: &str, kind: ModelErrorKind, shown: &str) {
    let fault = read(&[body.as_bytes()]).unwrap_err();
    assert_eq!((fault.kind(), fault.to_string().as_str()), (kind, shown), "{body}");
}

#[test]
fn an_error_in_a_stream_that_began_well_is_an_error() {
    let body = |error: Value| stream(&[delta(json!({"content": "a"})), error, finish(json!("stop"))]);
    check_fault(
        &body(json!({"error": {"message": "CUDA is sad", "code": 500}})),
        ModelErrorKind::Transient,
        "the provider answered 500: CUDA is sad (code 500)",
    );
    check_fault(
        &body(json!({"error": "quota"})),
        ModelErrorKind::Quota,
        "the provider reported an error: quota",
    );
    check_fault(
        "event: error\ndata: {\"message\": \"overloaded\"}\n\n",
        ModelErrorKind::Busy,
        "the provider reported an error: overloaded",
    );
    let harmless = read(&[body(json!({"error": null, "choices": []})).as_bytes()]).unwrap();
    assert_eq!(harmless.content, "a");
}

#[test]
fn an_answer_that_is_no_stream_is_read_too() {
    let message = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
        {"type": "function", "function": {"name": "ls", "arguments": {"p": 1}}},
        {"type": "function", "function": {"name": "", "arguments": "{}"}},
    ]});
    let answer = json!({"id": "r", "model": "m", "choices": [{"index": 0, "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    let reply = read(&[b"\n ", answer.to_string().as_bytes()]).unwrap();
    assert_eq!(
        reply.tool_calls,
        [call("a", "ls", "{}"), call("call_2", "ls", "{\"p\":1}"), call("call_3", "", "{}")]
    );
    assert_eq!(reply.usage, Some(Usage::new(1, 2)));
}

#[test]
fn what_is_no_reply_says_so() {
    check_fault(
        "<html>\n <h1>Welcome</h1>",
        ModelErrorKind::InvalidReply,
        "the answer is not a chat completion; check base_url: \"<html> <h1>Welcome</h1>\"",
    );
    check_fault(
        "{\"hello\": 1}",
        ModelErrorKind::InvalidReply,
        "the answer is not a chat completion; check base_url: \"{\\\"hello\\\": 1}\"",
    );
    check_fault(
        "[{\"error\": {\"message\": \"no\"}}]",
        ModelErrorKind::Generic,
        "the provider reported an error: no",
    );
    check_fault("{\"choices\": [{\"mess", ModelErrorKind::Transient, "the stream ended before the reply did");
    check_fault("", ModelErrorKind::Transient, "the stream ended before the reply did");
    check_fault("data: nonsense\n\n", ModelErrorKind::Transient, "an event of the stream is not JSON");
    // Chain facts §2.8 and (f) line 85: an index error passes.
    check_fault("{\"choices\": []}", ModelErrorKind::Transient, "the answer holds no choice");
    check_fault("data: [DONE]\n\n", ModelErrorKind::Transient, "the answer holds no choice");
}

#[test]
fn a_reply_that_is_too_large_is_refused() {
    let piece = "x".repeat(MODEL_REPLY_BYTES_MAX / 4);
    let chunks = vec![delta(json!({"content": piece})); 5];
    check_fault(&stream(&chunks), ModelErrorKind::InvalidReply, "the reply is larger than 4194304 bytes");
    let fits = read(&[stream(&chunks[..4]).as_bytes()]).unwrap();
    assert_eq!(fits.content.len(), MODEL_REPLY_BYTES_MAX);
}

/// A stream that ends properly in every way that servers know.
fn good_stream() -> Vec<u8> {
    let chunks = [
        delta(json!({"content": "Fünf"})),
        calls(
            json!([{"index": 0, "id": "a", "function": {"name": "write_file", "arguments": "{\"t\": \"漢"}}]),
        ),
        calls(json!([{"index": 0, "function": {"arguments": "字\"}"}}])),
        finish(json!("tool_calls")),
        json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
    ];
    stream(&chunks).into_bytes()
}

// A reply with unfinished calls is never believed when its stream was cut.
#[test]
fn a_stream_cut_at_any_byte_is_an_error_or_the_whole_reply() {
    let bytes = good_stream();
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
    assert!(outcomes[0] > 10 && outcomes[1] > 300, "{outcomes:?}");
}

proptest! {
    #[test]
    fn however_an_answer_is_cut_into_pieces_the_reply_is_the_same(cuts in prop::collection::vec(0_usize..900, 0..9)) {
        let bytes = good_stream();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(&pieces).unwrap(), read(&[&bytes]).unwrap());
    }

    #[test]
    fn any_answer_at_all_is_survived(body in "(data: |\\{|\"choices\":|\\[|\\{\"delta\":|\\\\u[dD]8|\"|:|\\}|\\]|\n|é|null|1|,){0,40}") {
        let _ = read(&[body.as_bytes()]);
    }
}
