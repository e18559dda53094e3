use serde_json::json;

use super::*;

fn read(body: Value) -> Answer<RunRequest> {
    from_wire(serde_json::from_value(body).unwrap())
}

#[track_caller]
fn check_refused(body: Value, code: ProblemCode, words: &str) {
    let Err(refusal) = read(body) else { panic!("taken, not refused with {words:?}") };
    let shown = format!("{refusal:?}");
    assert!(shown.contains(words) && shown.contains(&format!("code: {code:?}")), "{shown}");
}

#[test]
fn a_whole_request_is_read() {
    let request = read(json!({
        "assistant_id": "lead",
        "input": {"messages": [
            {"role": "user", "content": "one", "id": "m1"},
            {"type": "human", "content": ["two", {"type": "text", "text": "three"}]},
        ]},
        "config": {"configurable": {"model_name": "m", "max_total_subagents": 3, "__secret": 1, "user_id": "mallory",
            "is_subagent": true, "agent_id": "x", "thinking_enabled": true}},
        "context": {"subagent_enabled": false, "max_total_subagents": 3, "max_concurrent_subagents": -1},
        "metadata": {"k": 9_007_199_254_740_993_u64},
        "multitask_strategy": "reject",
        "stream_mode": ["values", "custom"],
    }))
    .unwrap_or_else(|refusal| panic!("{refusal:?}"));
    let human = |content: &str, id: Option<&str>| HumanMessage {
        content: content.into(),
        id: id.map(Into::into),
        images: Vec::new(),
    };
    assert_eq!(request.input, [human("one", Some("m1")), human("two\nthree", None)]);
    assert_eq!(request.model_name.as_deref(), Some("m"));
    assert!(!request.subagent_enabled);
    assert_eq!((request.max_concurrent_subagents, request.max_total_subagents), (Some(0), Some(3)));
    assert_eq!(Value::Object(request.metadata), json!({"k": 9_007_199_254_740_993_u64}));
}

#[test]
fn what_is_left_out_has_its_default() {
    let request = read(json!({})).unwrap_or_else(|refusal| panic!("{refusal:?}"));
    assert!(request.subagent_enabled && request.input.is_empty() && request.model_name.is_none());
    assert_eq!((request.max_concurrent_subagents, request.max_total_subagents), (None, None));
}

// Facts §8: run creation errors.
#[test]
fn what_cannot_be_obeyed_is_refused_by_name() {
    use ProblemCode::{BadRequest, Invalid};
    check_refused(json!({"assistant_id": "other"}), Invalid, "assistant_id");
    for strategy in ["interrupt", "rollback", "enqueue"] {
        check_refused(json!({"multitask_strategy": strategy}), Invalid, "multitask_strategy");
    }
    check_refused(json!({"stream_mode": "everything"}), Invalid, "stream_mode");
    check_refused(json!({"stream_mode": ["values", "x"]}), Invalid, "stream_mode");
    check_refused(json!({"metadata": {"auth_token": "s"}}), Invalid, "metadata.auth_token");
    check_refused(
        json!({"config": {"configurable": {"temprature": 1}}}),
        Invalid,
        "config.configurable.temprature",
    );
    check_refused(json!({"context": {"x": 1}}), Invalid, "context.x");
    let contradiction =
        json!({"config": {"configurable": {"model_name": "a"}}, "context": {"model_name": "b"}});
    check_refused(contradiction, Invalid, "model_name");
    for (message, field) in [
        (json!({"role": "system", "content": "obey"}), "input.messages[0].role"),
        (json!({"role": "assistant", "content": "x"}), "input.messages[0].role"),
        (json!({"role": "user", "content": 1}), "input.messages[0].content"),
        (json!({"role": "user", "content": {"text": "x"}}), "input.messages[0].content"),
        (
            json!({"role": "user", "content": [{"type": "image_url", "text": "x"}]}),
            "input.messages[0].content",
        ),
        (
            json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/a.png"}}]}),
            "input.messages[0].content.image_url",
        ),
    ] {
        check_refused(json!({"input": {"messages": [message]}}), BadRequest, field);
    }
}

#[test]
fn counts_are_clamped_to_what_a_limit_can_be() {
    for (given, expected) in [(i64::MIN, 0), (-1, 0), (0, 0), (64, 64), (i64::MAX, u32::MAX)] {
        assert_eq!(clamped(given), expected);
    }
}

#[test]
fn images_come_as_data_urls_beside_texts() {
    let url = "data:image/png;base64,iVBORw0=";
    let blocks = json!([
        {"type": "text", "text": "what is"},
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
        "this?",
        {"type": "image_url", "image_url": url},
    ]);
    let body = json!({"input": {"messages": [{"role": "user", "content": blocks}]}});
    let request = read(body).unwrap_or_else(|refusal| panic!("{refusal:?}"));
    let image = domain::message::Image::from_data_url(url).unwrap();
    assert_eq!(request.input[0].content, "what is\nthis?");
    assert_eq!(request.input[0].images, [image.clone(), image]);
}
