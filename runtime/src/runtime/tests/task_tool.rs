//! From the `task` call to what the lead is told (facts §12, "Task tool"). The reference's frames
//! are our events: `task_started` is `subagent.start`, `task_running` is `subagent.step`, and the
//! four terminal ones are `subagent.end`.

use domain::{
    event::{EndStatus, Event, RunStatus, SubagentEvent},
    ids::ToolCallId,
    message::{AssistantMessage, ToolArgs, ToolStatus},
};
use serde_json::json;

use crate::testing::{Script, Setup, Turn, World, asking, calling, delegating, saying, script::Using, task};

// Facts §12 line 60, and field report 10: a name that is not exact is refused, and costs nothing.
#[tokio::test]
async fn an_unknown_type_is_refused_with_the_names_that_there_are() {
    let script = Script::new()
        .lead(
            "go",
            [
                calling(&[("c1", "task", asking("no-such-type", "one"))]),
                calling(&[("c2", "task", asking(" general-purpose ", "one"))]),
                calling(&[("c3", "task", task("one"))]),
                saying("done"),
            ],
        )
        .sub("one", [saying("it works")]);
    let world = Setup::new(script).config(|config| config.subagents.max_total_per_run = 1).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let results = world.results();
    let text = "Task failed. Error: Unknown subagent type 'no-such-type'. Available: general-purpose";
    assert!(results[0].content.starts_with(text), "{}", results[0].content);
    assert_eq!(
        (results[0].status, &results[0].additional_kwargs["subagent_status"]),
        (ToolStatus::Error, &json!("failed"))
    );
    assert!(results[1].content.contains("Unknown subagent type ' general-purpose '"));
    // The cap of one was not used up by the two refusals.
    assert!(results[2].content.starts_with("Task Succeeded. Result: it works"));
    let statuses: Vec<_> = world.ledger().iter().map(|entry| entry.status.as_str()).collect();
    assert_eq!(statuses, ["refused", "refused", "completed"]);
    assert_eq!((world.count("subagent.start"), world.count("subagent.end")), (1, 1));
    world.check_ended_once();
}

// Facts §4.1, and §12 line 60: nothing is recorded of a subagent that never was.
#[tokio::test]
async fn arguments_that_make_no_task_are_refused() {
    let mut broken = calling(&[("c1", "task", json!({}))]);
    broken.tool_calls[0].args = ToolArgs::Invalid("{\"prompt\": \"unfin".into());
    let script = Script::new()
        .lead("go", [broken, calling(&[("c2", "task", json!({"prompt": "x"}))]), saying("done")]);
    let world = Setup::new(script).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let results = world.results();
    assert!(results[0].content.contains("not a complete JSON object"), "{}", results[0].content);
    assert!(results[1].content.contains("missing field"), "{}", results[1].content);
    assert_eq!((world.count("delegation.refused"), world.count("subagent.start")), (2, 0));
}

fn subagent_types(world: &World) -> Vec<String> {
    world.types().into_iter().filter(|name| name.starts_with("subagent.")).collect()
}

// Facts §12 lines 61, 62 and 65.
#[tokio::test]
async fn a_task_starts_steps_and_ends_under_the_call_s_id() {
    let step = AssistantMessage {
        content: "m1".into(),
        ..calling(&[("x", "ls", json!({"path": "."}))]).using(100, 20)
    };
    let script = Script::new()
        .lead("go", [delegating(&[("call_7", "one")]), saying("done")])
        .sub("one", [step, saying("m2")]);
    let world = Setup::new(script).build().await;
    world.run("go").await;
    let expected = [
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
    ];
    assert_eq!(subagent_types(&world), expected);
    let scope = world.scope_of("call_7");
    let mut indices = Vec::new();
    for fact in world.facts().iter().filter(|fact| matches!(fact.event, Event::Subagent(_))) {
        assert_eq!(fact.scope, scope);
        let Event::Subagent(event) = &fact.event else { unreachable!() };
        assert_eq!(event.task_id(), &ToolCallId::new("call_7").unwrap());
        match event {
            SubagentEvent::Started(started) => assert_eq!(started.model_name, "scripted"),
            SubagentEvent::Step(step) => indices.push(step.message_index),
            SubagentEvent::Ended(end) => assert_eq!(end.usage.unwrap().total_tokens, 120),
            SubagentEvent::Message(_)
            | SubagentEvent::Receipt(_)
            | SubagentEvent::Capped(_)
            | SubagentEvent::Compacted(_) => {}
        }
    }
    assert_eq!(indices, [1, 2, 3]);
}

// Facts §12 line 66.
#[tokio::test]
async fn a_failure_is_told_in_text_and_metadata() {
    let script = Script::new()
        .lead("go", [delegating(&[("call_1", "one")]), saying("done")])
        .sub("one", [Turn::Fail(crate::models::ModelErrorKind::Auth)]);
    let world = Setup::new(script).build().await;
    world.run("go").await;
    let (end, result) = (&world.ends()[0], &world.results()[0]);
    let error = end.error.as_deref().unwrap();
    assert_eq!(end.status, EndStatus::Failed);
    assert!(result.content.starts_with(&format!("Task failed. Error: {error}")), "{}", result.content);
    assert_eq!(result.additional_kwargs["subagent_error"], error);
    assert_eq!(result.additional_kwargs["subagent_status"], "failed");
}

// Facts §12 line 76.
#[tokio::test]
async fn a_long_result_is_whole_in_the_text_and_brief_in_the_metadata() {
    let long = "x".repeat(10_000);
    let script = Script::new()
        .lead("go", [delegating(&[("call_1", "one")]), saying("done")])
        .sub("one", [saying(&long)]);
    let world = Setup::new(script).build().await;
    world.run("go").await;
    let result = &world.results()[0];
    assert!(result.content.contains(&long));
    let brief = result.additional_kwargs["subagent_result_brief"].as_str().unwrap();
    assert!(brief.chars().count() <= 2_000);
    assert_eq!(result.additional_kwargs["subagent_result_sha256"].as_str().unwrap().len(), 64);
    let end = &world.ends()[0];
    assert_eq!((end.result.as_ref().map(String::len), end.result_truncated), (Some(8_192), true));
}

// Field report 25: whoever failed can be looked up, with what it did until then.
#[tokio::test]
async fn a_failed_task_says_where_its_partial_work_is() {
    let look = |id| calling(&[(id, "ls", json!({"path": "."}))]);
    let script = Script::new()
        .lead("go", [delegating(&[("call_1", "one")]), saying("done")])
        .sub("one", [Turn::from(look("a")), Turn::Fail(crate::models::ModelErrorKind::Generic)]);
    let world = Setup::new(script).build().await;
    world.run("go").await;
    let id = world.scope_of("call_1").delegation_id.unwrap().to_string();
    let result = &world.results()[0];
    assert!(result.content.contains(&id) && result.content.contains("last receipt r1"), "{}", result.content);
    assert_eq!(result.additional_kwargs["delegation_id"], id);
    assert_eq!(result.additional_kwargs["subagent_steps"], 3);
    assert_eq!(result.additional_kwargs["subagent_last_receipt"], "r1");
}

// A provider that leaves ids out or repeats them: every call has its own result and delegation.
#[tokio::test]
async fn calls_without_ids_of_their_own_get_some() {
    let script = Script::new()
        .lead("go", [delegating(&[("", "one"), ("same", "two"), ("same", "three")]), saying("done")])
        .sub("one", [saying("r-one")])
        .sub("two", [saying("r-two")])
        .sub("three", [saying("r-three")]);
    let world = Setup::new(script).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let results = world.results();
    let mut ids: Vec<_> = results.iter().map(|result| result.tool_call_id.clone()).collect();
    for (result, text) in results.iter().zip(["r-one", "r-two", "r-three"]) {
        assert!(result.content.contains(text), "{}", result.content);
    }
    let tasks: Vec<_> = world.ledger().iter().map(|entry| entry.task_id.to_string()).collect();
    assert_eq!(tasks, ids);
    assert_eq!(ids[1..], ["same", "same-2"]);
    ids.dedup();
    assert_eq!(ids.len(), 3);
}
