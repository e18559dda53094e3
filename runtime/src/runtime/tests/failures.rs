//! What breaks, and what it costs.

use std::sync::Arc;

use domain::{
    event::{EndStatus, Event, Logged, RunStatus, SubagentEvent},
    message::ToolStatus,
    tool_meta::TOOL_META_KEY,
    tool_spec::SideEffect,
};
use eventlog::{
    EventLog, Options,
    store::{FaultyStore, LogStore, SegmentStore},
};
use serde_json::json;

use crate::{
    config::Recovery,
    models::ModelErrorKind,
    request::CancelError,
    testing::{
        Script, Setup, Turn, calling, delegating, facts_of, saying,
        tools::{Behaviour, Counting},
        world::{check_ended_once, ledger_of},
    },
};

fn three_tasks() -> Script {
    Script::new()
        .lead("go", [delegating(&[("1", "task-a"), ("2", "task-b"), ("3", "task-c")]), saying("done")])
        .sub("task-a", [saying("a")])
        .sub("task-c", [saying("c")])
}

async fn check_middle_fails(middle: Turn, error: &str) {
    let world = Setup::new(three_tasks().sub("task-b", [middle])).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let statuses: Vec<_> = world.ledger().iter().map(|entry| entry.status.as_str()).collect();
    assert_eq!(statuses, ["completed", "failed", "completed"]);
    let results = world.results();
    let ids: Vec<_> = results.iter().map(|result| result.tool_call_id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "3"]);
    assert!(results[1].content.contains(error), "{}", results[1].content);
    assert_eq!(results[1].status, ToolStatus::Error);
    world.check_ended_once();
    world.until_idle().await;
}

// Field report 13: one failure costs one task.
#[tokio::test]
async fn one_subagent_that_fails_leaves_the_others_alone() {
    check_middle_fails(Turn::Fail(ModelErrorKind::Generic), "HTTP 500").await;
    check_middle_fails(Turn::Panic, "a defect in Remit").await;
    // Quotes take two bytes each: within the model's bound, and beyond what an event holds.
    check_middle_fails(saying(&"\"".repeat(4 * 1024 * 1024)).into(), "bytes to store").await;
}

// A reply as long as it may be is recorded whole, and delivered within bounds (chain facts §2.3).
#[tokio::test]
async fn the_longest_reply_is_recorded_and_delivered() {
    let long = "x".repeat(domain::limits::MODEL_REPLY_BYTES_MAX);
    let world = Setup::new(three_tasks().sub("task-b", [saying(&long)])).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let told = world.results()[1].content.chars().count();
    assert!((11_000..=domain::limits::TOOL_OUTPUT_CHARS_MAX).contains(&told), "{told}");
    let is_whole = |fact: &Logged| match &fact.event {
        Event::Subagent(SubagentEvent::Message(recorded)) => recorded.message.content() == long,
        _ => false,
    };
    assert!(world.facts().iter().any(is_whole));
    assert_eq!(world.ends().iter().filter(|end| end.status == EndStatus::Completed).count(), 3);
}

#[tokio::test]
async fn a_lead_that_fails_keeps_an_error_that_can_be_stored() {
    let mut stopped = saying(&"x".repeat(4 * 1024 * 1024));
    stopped.response_metadata.finish_reason = Some("content_filter".into());
    let world = Setup::new(Script::new().lead("go", [stopped])).build().await;
    assert_eq!(world.run("go").await, RunStatus::Error);
    assert!(world.last_status().error.unwrap().chars().count() <= 8_192);
}

// A lead that panics in the middle of its work takes its run with it, and nothing else.
#[tokio::test]
async fn a_panicking_lead_ends_its_run() {
    let script = Script::new().lead("bad", [Turn::Panic]).lead("good", [saying("fine")]);
    let world = Setup::new(script).build().await;
    assert_eq!(world.run("bad").await, RunStatus::Error);
    assert!(world.last_status().error.unwrap().contains("a defect in Remit"));
    assert_eq!(world.run("good").await, RunStatus::Success);
    world.check_ended_once();
}

// Facts §12 line 79: a tool that breaks costs its call.
#[tokio::test]
async fn a_tool_that_panics_costs_its_call() {
    let script = Script::new().lead(
        "go",
        [calling(&[("x", "break", json!({})), ("y", "ls", json!({"path": "."}))]), saying("done")],
    );
    let tool = Counting::new("break", SideEffect::Effectful, Behaviour::Panic);
    let world = Setup::new(script).tool(tool.clone()).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let results = world.results();
    assert!(
        results[0].content.starts_with("Error: the tool \"break\" broke with Panic:"),
        "{}",
        results[0].content
    );
    // Nothing of a delegation's: what the result is worth, and no more.
    assert_eq!(results[0].additional_kwargs.keys().collect::<Vec<_>>(), [TOOL_META_KEY]);
    assert_eq!(
        (results[0].status, results[1].status, tool.runs()),
        (ToolStatus::Error, ToolStatus::Success, 1)
    );
}

// Field report 18: the log fails at every one of the run's commits in turn. Everybody who waits
// ends, no slot is lost, and after a restart every delegation has its end.
#[tokio::test]
async fn a_log_that_fails_leaves_nothing_running() {
    let mut is_past_the_end = false;
    for commits in 0..60 {
        let inner: Arc<dyn LogStore> = Arc::new(SegmentStore::in_memory());
        let store = Arc::new(FaultyStore::new(inner.clone()));
        let log = EventLog::with_store(store.clone(), Options::default()).unwrap();
        let world = Setup::new(three_tasks().sub("task-b", [saying("b")])).log(log).build().await;
        store.fail_after(commits);
        let Ok(run) = world.runtime.start_run(&world.thread, crate::testing::world::request("go")).await
        else {
            continue;
        };
        let waited = world.done(world.runtime.wait(&world.thread, &run)).await;
        world.until_idle().await;
        world.done(world.runtime.shutdown()).await;
        if let Ok(status) = waited {
            assert_eq!(status, RunStatus::Success);
            is_past_the_end = true;
            break;
        }
        assert!(matches!(waited, Err(CancelError::NotLive(_))), "{waited:?}");

        let log = EventLog::with_store(inner, Options::default()).unwrap();
        let next = Setup::new(Script::new()).log(log.clone());
        let runtime = next.runtime(&world.data);
        assert_eq!(runtime.recover(Recovery::Fail).await.unwrap(), []);
        let facts = facts_of(&log);
        check_ended_once(&facts);
        assert!(ledger_of(&facts).iter().all(|entry| entry.status.is_terminal()));
        assert_eq!(runtime.wait(&world.thread, &run).await.unwrap(), RunStatus::Error);
    }
    assert!(is_past_the_end, "no run got through");
}
