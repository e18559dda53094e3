//! What a lead gets back from the `task` tool, and what the log says of it.

use runtime::config::Config;
use serde_json::{Value, json};
use tests::{
    invariants::assert_whole,
    record::{of_type, only, text, types},
    server::{Setup, TestServer},
    stub_model::{Answer, Asked, Call, Gate, Reply, StubModel},
};

/// A lead that delegates once to this type and repeats what it got.
fn delegating(
    subagent_type: &'static str,
    child: impl Fn(&Asked) -> Answer + Send + Sync,
) -> impl Fn(&Asked) -> Answer + Send + Sync {
    move |asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls([Call::task(subagent_type, "p").id("call_1")]).into(),
        (true, _) => Reply::says(asked.results()[0].1.clone()).into(),
        (false, _) => child(asked),
    }
}

/// The lead's result and all events.
async fn delegated(
    subagent_type: &'static str,
    change: impl FnOnce(&mut Config),
    child: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> (String, Vec<Value>) {
    let stub = StubModel::start(delegating(subagent_type, child)).await;
    let server = TestServer::start(Setup::with_stub(&stub).configured(change)).await;
    let (thread_id, run) = server.client.run_to_end("delegate").await;
    assert_eq!(text(&run, "status"), "success", "{run}");
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    stub.assert_strict();
    (text(&run, "result").to_owned(), events)
}

fn settings(text: &str) -> domain::definition::SubagentsSettings {
    serde_json::from_str(text).unwrap()
}

// Facts §12 lines 8 and 60, field report 10: no event of a subagent, no slot, and the allowed names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_type_is_refused_before_anything_starts() {
    let (result, events) = delegated(" Researcher ", |_| {}, |_| Reply::says("never").into()).await;
    assert!(result.starts_with("Task failed. Error: Unknown subagent type"), "{result}");
    assert!(result.contains("general-purpose"), "{result}");
    assert_eq!(only(&events, "delegation.refused")["content"]["reason"], "unknown_type");
    assert!(
        !types(&events).iter().any(|event_type| event_type.starts_with("subagent.")),
        "{:?}",
        types(&events)
    );
    let returned = &only(&events, "llm.tool.result")["content"];
    assert_eq!(returned["additional_kwargs"]["subagent_status"], "failed");
}

// Facts §12 lines 61, 62 and 65: start, steps and end in order, all under the provider's id, while
// everything of ours goes by the delegation's id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_leaves_its_events_in_order() {
    let child = |asked: &Asked| match asked.turn {
        0 => Reply::calls([Call::new("ls", json!({}))]).into(),
        _ => Reply::says("two turns").into(),
    };
    let (result, events) = delegated("general-purpose", |_| {}, child).await;
    assert!(result.starts_with("Task Succeeded. Result: two turns"), "{result}");
    let of_child: Vec<Value> =
        events.iter().filter(|event| event["category"] == "subagent").cloned().collect();
    assert_eq!(
        types(&of_child),
        [
            "subagent.start",
            "subagent.message",
            "subagent.message",
            "subagent.message",
            "subagent.step",
            "subagent.message",
            "subagent.step",
            "subagent.receipt",
            "subagent.message",
            "subagent.step",
            "subagent.end",
        ]
    );
    let delegation_id = &of_child[0]["delegation_id"];
    for event in &of_child {
        assert_eq!(
            (&event["task_id"], &event["delegation_id"]),
            (&json!("call_1"), delegation_id),
            "{event}"
        );
        assert_eq!(event["content"]["task_id"], "call_1");
    }
    assert_eq!(only(&events, "subagent.start")["content"]["model_name"], "stub");
}

// Facts §12 lines 36 and 69, field report 26: the cap is in every view of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_cap_is_told_everywhere() {
    let busy = |_: &Asked| Reply::calls([Call::new("ls", json!({}))]).and_says("still looking").into();
    let limit = |config: &mut Config| config.subagents = settings(r#"{"max_turns": 2}"#);
    let (result, events) = delegated("general-purpose", limit, busy).await;
    assert!(result.starts_with("Task Succeeded (capped: "), "{result}");
    let end = &only(&events, "subagent.end")["content"];
    assert_eq!(
        (text(end, "status"), text(end, "stop_reason"), &end["turns"]),
        ("completed", "turn_capped", &json!(2))
    );
    let cap = &only(&events, "subagent.cap")["content"];
    assert_eq!(
        (text(cap, "axis"), text(cap, "action"), &cap["used"], &cap["budget"]),
        ("turns", "stop", &json!(2), &json!(2))
    );
}

// Facts §12 line 37.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_cap_without_a_word_is_a_failure() {
    let silent = |_: &Asked| Reply::calls([Call::new("ls", json!({}))]).into();
    let limit = |config: &mut Config| config.subagents = settings(r#"{"max_turns": 2}"#);
    let (result, events) = delegated("general-purpose", limit, silent).await;
    assert!(result.starts_with("Task failed"), "{result}");
    let end = &only(&events, "subagent.end")["content"];
    assert_eq!((text(end, "status"), text(end, "stop_reason")), ("failed", "turn_capped"), "{end}");
    assert!(text(end, "error").contains('2'), "{end}");
}

// Facts §12 line 67, field reports 14 and 24: out of time is out of time, and the slot is free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_limit_ends_the_work() {
    let gate = Gate::closed();
    let held = gate.clone();
    let limit = |config: &mut Config| config.subagents = settings(r#"{"timeout_seconds": 1}"#);
    let never = move |_: &Asked| Reply::says("too late").held_by(&held);
    let (result, events) = delegated("general-purpose", limit, never).await;
    gate.open();
    assert!(result.starts_with("Task timed out. Error: Execution timed out after 1 seconds"), "{result}");
    let end = &only(&events, "subagent.end")["content"];
    assert_eq!((text(end, "status"), &end["result"]), ("timed_out", &Value::Null), "{end}");
    assert_eq!(text(&only(&events, "delegation.delivered")["content"], "status"), "timed_out");
}

// Facts §12 lines 29 and 30, as decided here: an end without an answer is a failure with the
// sentinel as its error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_without_text_is_a_failure() {
    let (result, events) = delegated("general-purpose", |_| {}, |_| Reply::says("").into()).await;
    assert!(result.starts_with("Task failed. Error: No response"), "{result}");
    assert_eq!(only(&events, "subagent.end")["content"]["status"], "failed");
}

// Facts §12 lines 76 and 94: the lead gets the whole text; events and metadata have bounds and say
// so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_result_is_whole_for_the_lead_and_bounded_in_events() {
    let long = "0123456789".repeat(1_000);
    let expected = format!("Task Succeeded. Result: {long}");
    let child = move |_: &Asked| Reply::says(long.clone()).into();
    let (result, events) = delegated("general-purpose", |_| {}, child).await;
    assert!(expected.starts_with(&result) && result.len() == 8_192, "{} characters", result.len());
    let returned = &only(&events, "llm.tool.result")["content"];
    assert!(text(returned, "content").starts_with(&expected), "the lead has all of it");
    let end = &only(&events, "subagent.end")["content"];
    assert_eq!((text(end, "result").len(), &end["result_truncated"]), (8_192, &json!(true)));
    let delivered = &only(&events, "delegation.delivered")["content"];
    assert!(text(delivered, "result_brief").chars().count() <= 2_000);
    assert_eq!(text(delivered, "result_sha256"), text(end, "result_sha256"));
    assert_eq!(text(end, "result_sha256").len(), 64);
}

// Facts §12 lines 86 and 87: what a step shows is cut at its bound and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_step_is_bounded() {
    let child = |asked: &Asked| match asked.turn {
        0 => Reply::calls([Call::new("ls", json!({"path": "x".repeat(9_000)}))])
            .and_says("y".repeat(8_692))
            .into(),
        _ => Reply::says("report").into(),
    };
    let (_, events) = delegated("general-purpose", |_| {}, child).await;
    let first = &of_type(&events, "subagent.step")[0]["content"];
    assert_eq!((text(first, "text").len(), &first["truncated"]), (8_192, &json!(true)));
    let call = &first["tool_calls"][0];
    assert_eq!((call["args"].as_str().map(str::len), &call["args_truncated"]), (Some(8_192), &json!(true)));
}

// Field report 9: a child that calls what it was never given gets an error and goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_was_not_given_is_survived() {
    let custom = r#"{"custom_agents": {"reader": {"description": "reads", "system_prompt": "You read.", "tools": ["read_file"]}}}"#;
    let child = |asked: &Asked| match asked.turn {
        0 => Reply::calls([Call::new(
            "write_file",
            json!({"path": "/mnt/user-data/workspace/x", "content": "x"}),
        )])
        .into(),
        _ => Reply::says("I can only read").into(),
    };
    let configure = |config: &mut Config| config.subagents = settings(custom);
    let (result, events) = delegated("reader", configure, child).await;
    assert!(result.starts_with("Task Succeeded"), "{result}");
    let receipt = &only(&events, "subagent.receipt")["content"];
    assert_eq!((text(receipt, "tool_name"), text(receipt, "outcome")), ("write_file", "denied"));
    assert!(of_type(&events, "tool.started").is_empty());
}
