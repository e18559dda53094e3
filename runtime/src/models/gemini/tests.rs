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
    let mut reply = Answer::new(&Gemini);
    for piece in pieces {
        reply.feed(piece, &no_deltas)?;
    }
    reply.finish("gemini", &no_deltas)
}

fn stream(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

fn read_all(chunks: &[Value]) -> Result<AssistantMessage, Fault> {
    read(&[stream(chunks).as_bytes()])
}

fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
        "modelVersion": "gemini-x", "responseId": "r1"})
}

fn finish(reason: &str) -> Value {
    json!({"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": reason}]})
}

fn usage(prompt: u64, candidates: u64, thoughts: u64, cached: u64) -> Value {
    json!({"usageMetadata": {"promptTokenCount": prompt, "candidatesTokenCount": candidates,
        "thoughtsTokenCount": thoughts, "cachedContentTokenCount": cached,
        "totalTokenCount": prompt + candidates + thoughts}})
}

fn call(id: &str, name: &str, args: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), args: ToolArgs::parse(args) }
}

/// A thought, text, two parallel calls of which one is signed and has an id, and a signed empty text.
fn good() -> Vec<Value> {
    vec![
        parts(json!([{"text": "let me ", "thought": true}])),
        parts(json!([{"text": "think", "thought": true}])),
        parts(json!([{"text": "Fünf "}])),
        parts(json!([{"text": "漢字"}])),
        parts(json!([
            {"functionCall": {"id": "fc1", "name": "ls", "args": {"t": "é"}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "grep", "args": {}}},
        ])),
        parts(json!([{"text": "", "thoughtSignature": "bGFzdA=="}])),
        finish("STOP"),
        usage(10, 3, 4, 6),
    ]
}

#[test]
fn a_stream_becomes_a_reply() {
    let seen = Mutex::new(Vec::new());
    let deltas = |delta| seen.lock().unwrap().push(delta);
    let mut answer = Answer::new(&Gemini);
    answer.feed(stream(&good()).as_bytes(), &deltas).unwrap();
    assert!(answer.is_complete() && !answer.is_ended());
    let reply = answer.finish("gemini", &deltas).unwrap();
    let kwargs = json!({
        "opaque_blocks": [
            {"opaque": {"text": "let me think", "thought": true}},
            {"text_chars": 7},
            {"call": "fc1", "extra": {"thoughtSignature": "c2ln", "id": "fc1"}},
            {"call": "call_2"},
            {"text_chars": 0, "extra": {"thoughtSignature": "bGFzdA=="}},
        ],
        "opaque_source": "gemini",
    });
    assert_eq!(
        reply,
        AssistantMessage {
            content: "Fünf 漢字".into(),
            id: Some("r1".into()),
            tool_calls: vec![call("fc1", "ls", "{\"t\":\"é\"}"), call("call_2", "grep", "{}")],
            response_metadata: ResponseMetadata {
                finish_reason: Some("tool_calls".into()),
                model_name: Some("gemini-x".into()),
            },
            usage: Some(Usage { cache_read_tokens: Some(6), ..Usage::new(10, 7) }),
            additional_kwargs: kwargs.as_object().unwrap().clone(),
        }
    );
    let started = |name: &str| Delta::ToolCallStarted(name.into());
    assert_eq!(
        *seen.lock().unwrap(),
        [Delta::Text("Fünf ".into()), Delta::Text("漢字".into()), started("ls"), started("grep")]
    );
}

// Field report 90, and the list of adapters' tests: signatures per part, with parallel calls.
#[test]
fn signatures_go_back_on_their_parts_and_to_their_own_model_only() {
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
            result("fc1"),
            result("call_2"),
        ],
        tools: [].into(),
        agent: AgentTag::Lead,
    };
    let sent = |name: &str| {
        let wire = Wire::of(&ModelSettings::new(name, Provider::Gemini));
        let contents = Gemini.body(&wire, &request)["contents"].clone();
        (contents[1]["parts"].clone(), contents[2]["parts"].clone())
    };
    assert_eq!(
        sent("gemini"),
        (
            json!([
                {"text": "let me think", "thought": true},
                {"text": "Fünf 漢字"},
                {"functionCall": {"id": "fc1", "name": "ls", "args": {"t": "é"}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"name": "grep", "args": {}}},
                {"text": "", "thoughtSignature": "bGFzdA=="},
            ]),
            json!([
                {"functionResponse": {"id": "fc1", "name": "ls", "response": {"output": "ok"}}},
                {"functionResponse": {"name": "grep", "response": {"output": "ok"}}},
            ])
        )
    );
    let (said, results) = sent("other");
    assert_eq!(
        said,
        json!([
            {"text": "Fünf 漢字"},
            {"functionCall": {"name": "ls", "args": {"t": "é"}}},
            {"functionCall": {"name": "grep", "args": {}}},
        ])
    );
    assert_eq!(results[0]["functionResponse"].get("id"), None);
}

#[test]
fn a_signed_text_stays_a_part_of_its_own() {
    let chunks = [
        parts(json!([{"text": "a"}])),
        parts(json!([{"text": "b", "thoughtSignature": "s"}])),
        parts(json!([{"text": "c"}])),
        finish("STOP"),
    ];
    let reply = read_all(&chunks).unwrap();
    assert_eq!(reply.content, "abc");
    assert_eq!(
        reply.additional_kwargs["opaque_blocks"],
        json!([{"text_chars": 1}, {"text_chars": 1, "extra": {"thoughtSignature": "s"}}, {"text_chars": 1}])
    );
}

// Thoughts that a guard left alone are not sent.
#[test]
fn thoughts_alone_are_not_sent() {
    let mut reply =
        read_all(&[parts(json!([{"text": "hm", "thought": true}, {"text": "x"}])), finish("STOP")]).unwrap();
    reply.content.clear();
    let request = ModelRequest {
        messages: vec![Message::human("hi"), Message::Assistant(reply)],
        tools: [].into(),
        agent: AgentTag::Lead,
    };
    let wire = Wire::of(&ModelSettings::new("gemini", Provider::Gemini));
    assert_eq!(Gemini.body(&wire, &request)["contents"].as_array().unwrap().len(), 1);
}

// Field report 79: calls rule, not the finish reason. And chain facts §2.11: what is a safety stop.
#[test]
fn finish_reasons_are_said_in_our_words() {
    let calls = parts(json!([{"functionCall": {"name": "ls", "args": {"p": 1}}}]));
    for (reason, with_text, with_calls) in [
        ("STOP", "stop", "tool_calls"),
        ("MAX_TOKENS", "length", "length"),
        ("SAFETY", "content_filter", "content_filter"),
        ("RECITATION", "content_filter", "content_filter"),
        ("BLOCKLIST", "content_filter", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter", "content_filter"),
        ("SPII", "content_filter", "content_filter"),
        ("IMAGE_SAFETY", "content_filter", "content_filter"),
        ("OTHER", "OTHER", "OTHER"),
    ] {
        let said = read_all(&[parts(json!([{"text": "half"}])), finish(reason)]).unwrap();
        assert_eq!(said.response_metadata.finish_reason.as_deref(), Some(with_text), "{reason}");
        assert_eq!(said.content, "half");
        let kept = said.additional_kwargs.get("native_finish_reason").and_then(Value::as_str);
        assert_eq!(kept, (!["STOP", "MAX_TOKENS"].contains(&reason)).then_some(reason));
        let called = read_all(&[calls.clone(), finish(reason)]).unwrap();
        assert_eq!(called.response_metadata.finish_reason.as_deref(), Some(with_calls), "{reason}");
        assert_eq!(called.tool_calls, [call("call_1", "ls", "{\"p\":1}")]);
    }
}

#[test]
fn a_spoilt_reply_is_asked_for_again() {
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"] {
        let mut ending = finish(reason);
        ending["candidates"][0]["finishMessage"] = "Malformed function call:\nprint(".into();
        let fault = read_all(&[parts(json!([{"text": "I will"}])), ending]).unwrap_err();
        assert_eq!(fault.kind(), ModelErrorKind::Transient);
        let shown = format!("the provider gave up on the reply: {reason}: Malformed function call: print(");
        assert_eq!(fault.to_string(), shown);
    }
    let fault = read_all(&[finish("MISSING_THOUGHT_SIGNATURE")]).unwrap_err();
    assert_eq!(fault.kind(), ModelErrorKind::InvalidReply);
}

#[test]
fn a_blocked_prompt_is_a_safety_stop() {
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 4, "totalTokenCount": 4}});
    let reply = read_all(&[blocked]).unwrap();
    assert_eq!(reply.content, "The provider blocked the prompt (PROHIBITED_CONTENT).");
    assert_eq!(reply.response_metadata.finish_reason.as_deref(), Some("content_filter"));
    assert_eq!(reply.additional_kwargs["native_finish_reason"], "PROHIBITED_CONTENT");
    assert_eq!(reply.usage, Some(Usage::new(4, 0)));
    let harmless = json!({"promptFeedback": {"safetyRatings": []}});
    let reply = read_all(&[harmless, parts(json!([{"text": "a"}])), finish("STOP")]).unwrap();
    assert_eq!((reply.content.as_str(), reply.additional_kwargs.len()), ("a", 0));
}

#[test]
fn ids_are_unique_within_a_reply() {
    let calls = parts(json!([
        {"functionCall": {"name": "ls", "args": null}},
        {"functionCall": {"id": "call_1", "name": "ls"}},
        {"functionCall": {"name": "", "args": [1]}},
    ]));
    let reply = read_all(&[calls, finish("STOP")]).unwrap();
    let ids: Vec<_> = reply.tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_1", "call_2", "call_3"]);
    assert_eq!(reply.tool_calls[2].args, ToolArgs::Invalid("[1]".into()));
}

// Field report 87: what was not counted stays unknown.
#[test]
fn usage_that_is_absent_null_or_zero_stays_absent() {
    for usage in [json!(null), json!({}), json!({"promptTokenCount": 0}), json!("none")] {
        let mut last = finish("STOP");
        last["usageMetadata"] = usage;
        assert_eq!(read_all(&[parts(json!([{"text": "a"}])), last]).unwrap().usage, None);
    }
}

#[test]
fn counts_are_the_latest_of_each() {
    let chunks = [
        usage(10, 1, 0, 6),
        parts(json!([{"text": "a"}])),
        finish("STOP"),
        json!({"usageMetadata": {"candidatesTokenCount": 5, "totalTokenCount": 15}}),
    ];
    let expected = Usage { cache_read_tokens: Some(6), ..Usage::new(10, 5) };
    assert_eq!(read_all(&chunks).unwrap().usage, Some(expected));
}

#[test]
fn texts_cut_inside_a_character_are_whole_again() {
    let piece = |bytes: &[u8]| {
        [b"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"".as_slice(), bytes, b"\"}]}}]}\n\n"]
            .concat()
    };
    for (first, second) in [(b"x\xF0\x9F".as_slice(), b"\x98\x80y".as_slice()), (b"x\\ud83d", b"\\ude00y")] {
        let bytes = [piece(first), piece(second), stream(&[finish("STOP")]).into_bytes()].concat();
        assert_eq!(read(&[&bytes]).unwrap().content, "x\u{1F600}y");
    }
}

#[track_caller]
fn check_fault(body: &str, kind: ModelErrorKind, shown: &str) {
    let fault = read(&[body.as_bytes()]).unwrap_err();
    assert_eq!((fault.kind(), fault.to_string().as_str()), (kind, shown), "{body}");
}

#[test]
fn an_error_in_a_stream_that_began_well_is_an_error() {
    let error =
        json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}});
    let shown = "the provider answered 503: The model is overloaded. (code UNAVAILABLE)";
    let body = stream(&[parts(json!([{"text": "a"}])), error.clone(), finish("STOP")]);
    check_fault(&body, ModelErrorKind::Transient, shown);
    check_fault(&error.to_string(), ModelErrorKind::Transient, shown);
    check_fault(&json!([error]).to_string(), ModelErrorKind::Transient, shown);
}

#[test]
fn an_answer_that_is_no_stream_is_read_too() {
    let mut whole = parts(json!([{"text": "a"}, {"functionCall": {"name": "ls", "args": {"p": 1}}}]));
    whole["candidates"][0]["finishReason"] = "STOP".into();
    whole["usageMetadata"] = usage(1, 2, 0, 0)["usageMetadata"].clone();
    let reply = read(&[whole.to_string().as_bytes()]).unwrap();
    assert_eq!((reply.content.as_str(), reply.tool_calls.len()), ("a", 1));
    assert_eq!(reply.usage, Some(Usage::new(1, 2)));
    // Without `alt=sse` the events come as one list.
    let list = Value::from(good()).to_string();
    assert_eq!(read(&[list.as_bytes()]).unwrap(), read_all(&good()).unwrap());
}

#[test]
fn what_is_no_reply_says_so() {
    let shown = |body: &str| format!("the answer is not generated content; check base_url: {body:?}");
    for body in ["<html>Welcome", "{\"hello\": 1}", "[]", "[1]"] {
        check_fault(body, ModelErrorKind::InvalidReply, &shown(body));
    }
    let cut = "the stream ended before the reply did";
    check_fault("", ModelErrorKind::Transient, cut);
    check_fault(&stream(&[parts(json!([{"text": "half"}]))]), ModelErrorKind::Transient, cut);
    // What ends a stream elsewhere ends none here.
    check_fault("data: {\"candidates\": []}\n\ndata: [DONE]\n\n", ModelErrorKind::Transient, cut);
    check_fault("data: nonsense\n\n", ModelErrorKind::Transient, "an event of the stream is not JSON");
    check_fault("{\"candidates\": []}", ModelErrorKind::Transient, "the answer holds no choice");
}

#[test]
fn a_reply_that_is_too_large_is_refused() {
    let piece = "x".repeat(MODEL_REPLY_BYTES_MAX / 4);
    for part in [
        json!({"text": piece}),
        json!({"functionCall": {"name": "ls", "args": {"p": piece}}}),
        json!({"text": piece, "thought": true}),
        json!({"text": "", "thoughtSignature": piece}),
    ] {
        let chunks = vec![parts(json!([part])); 5];
        check_fault(&stream(&chunks), ModelErrorKind::InvalidReply, "the reply is larger than 4194304 bytes");
    }
}

#[test]
fn heartbeats_and_unknown_parts_are_passed_over() {
    let mut chunks = good();
    chunks.insert(3, json!({"candidates": []}));
    chunks.insert(3, json!({"usageMetadata": null, "news": 1}));
    chunks.insert(3, parts(json!([{"executableCode": {"code": "1"}}, {"new": 1}, 7])));
    let body = format!(": heartbeat\n\n{}", stream(&chunks));
    assert_eq!(read(&[body.as_bytes()]).unwrap(), read_all(&good()).unwrap());
}

// A reply is never believed when its stream was cut before the provider said why the model stopped.
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
    assert!(outcomes[0] > 10 && outcomes[1] > 700, "{outcomes:?}");
}

#[test]
fn the_model_and_the_version_are_in_the_path() {
    for (base, model, expected) in [
        ("https://g.co", "gemini-x", "https://g.co/v1beta/models/gemini-x:streamGenerateContent?alt=sse"),
        ("https://g.co/v1/", "gemini-x", "https://g.co/v1/models/gemini-x:streamGenerateContent?alt=sse"),
        (
            "http://h/gw?team=a",
            "tunedModels/x",
            "http://h/gw/v1beta/tunedModels/x:streamGenerateContent?team=a&alt=sse",
        ),
        ("http://h/vertex", "a b", "http://h/vertex/v1beta/models/a%20b:streamGenerateContent?alt=sse"),
    ] {
        assert_eq!(Gemini.endpoint(base.parse().unwrap(), model).unwrap().as_str(), expected);
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
    fn any_order_of_chunks_is_survived(order in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
        let good = good();
        let chunks: Vec<Value> = order.iter().map(|at| at.get(&good).clone()).collect();
        let _ = read_all(&chunks);
    }
}
