//! Time limits (facts §12 lines 43, 44, 67, 70 and 71; field reports 14 and 24).

use std::time::Duration;

use domain::{
    event::{EndStatus, RunStatus},
    ledger::LedgerStatus,
};
use serde_json::json;

use super::executor::named;
use crate::testing::{Script, Setup, Turn, calling, delegating, gate::Gate, saying, time::ManualTime};

// Field report 24, and facts §12 line 67: the results of the others are not lost.
#[tokio::test]
async fn who_takes_too_long_is_timed_out_and_the_lead_goes_on() {
    let time = ManualTime::start();
    let five = [("1", "good-a"), ("2", "good-b"), ("3", "slow-a"), ("4", "slow-b"), ("5", "slow-c")];
    let script = Script::new()
        .lead("go", [delegating(&five), saying("done")])
        .sub("good", [saying("a result")])
        .sub("slow", [Turn::Hang]);
    let world = Setup::new(script).config(|config| config.subagent_runtime.max_running = 5).build().await;
    let run = world.start("go").await;
    world
        .until("three at work", |world| world.script.at_work().0 == 3 && world.count("subagent.end") == 2)
        .await;
    time.advance(Duration::from_secs(1_799)).await;
    world.until("time to pass", |world| world.count("subagent.end") == 2).await;
    time.advance(Duration::from_secs(2)).await;
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    let statuses: Vec<_> = world.ledger().iter().map(|entry| (entry.status, entry.delivered)).collect();
    let (good, late) = ((LedgerStatus::Completed, true), (LedgerStatus::TimedOut, true));
    assert_eq!(statuses, [good, good, late, late, late]);
    let results = world.results();
    assert!(results[0].content.starts_with("Task Succeeded. Result: a result"));
    assert!(results[4].content.starts_with("Task timed out. Error: Execution timed out after 1800 seconds"));
    world.check_ended_once();
    world.until_idle().await;
}

/// Whether any process has this in its command line.
fn runs_somewhere(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap();
    let mut lines = processes.flatten().filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(mark))
}

// Field report 14, in real time: the shell and what it started are gone, and no step comes later.
#[tokio::test]
async fn a_time_limit_stops_the_tool_in_flight() {
    let seconds = format!("60.{}", std::process::id());
    let line = json!({"command": format!("sleep {seconds}")});
    let script = Script::new()
        .lead("go", [delegating(&[("1", "sleepy")]), saying("done")])
        .sub("sleepy", [calling(&[("x", "bash", line)])]);
    let setup = Setup::new(script).config(|config| {
        config.sandbox.allow_host_bash = true;
        let limit = json!({"general-purpose": {"timeout_seconds": 1}});
        config.subagents.agents = serde_json::from_value(limit).unwrap();
    });
    let world = setup.build().await;
    let run = world.start("go").await;
    world.until("the sleep", |_| runs_somewhere(&seconds)).await;
    let since = std::time::Instant::now();
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    assert!(since.elapsed() < Duration::from_secs(10));
    let end = &world.ends()[0];
    assert_eq!(
        (end.status, end.error.as_deref()),
        (EndStatus::TimedOut, Some("Execution timed out after 1 seconds"))
    );
    // The call that was stopped has its receipt, too: nobody knows what it did.
    assert_eq!((end.steps, end.receipts), (2, 1));
    world.until("the end of the sleep", |_| !runs_somewhere(&seconds)).await;
    world.check_ended_once();
    world.until_idle().await;
}

// Facts §12 lines 70 and 71: the subagent cannot end, because the log stands still, and the
// lead's own wait runs out.
#[tokio::test]
async fn a_lead_whose_wait_runs_out_says_so() {
    let time = ManualTime::start();
    let (gate, log) = Gate::log();
    let script =
        Script::new().lead("go", [delegating(&[("1", "slow")]), saying("done")]).sub("slow", [Turn::Hang]);
    let setup = Setup::new(script).log(log).config(|config| {
        let limit = json!({"general-purpose": {"timeout_seconds": 1}});
        config.subagents.agents = serde_json::from_value(limit).unwrap();
    });
    let world = setup.build().await;
    let run = world.start("go").await;
    world.until("one at work", |world| world.script.at_work().0 == 1).await;
    gate.shut_after(0);
    time.advance(Duration::from_secs(2)).await;
    world.until("the end of the work", |world| world.script.at_work().0 == 0).await;
    time.advance(Duration::from_secs(62)).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    gate.open();
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    let result = &world.results()[0];
    assert!(result.content.starts_with("Task polling timed out after 0 minutes"), "{}", result.content);
    assert_eq!(result.additional_kwargs["subagent_status"], "polling_timed_out");
    assert_eq!(world.ends()[0].status, EndStatus::TimedOut);
    assert_eq!(world.ledger()[0].status, LedgerStatus::PollingTimedOut);
    world.check_ended_once();
    world.until_idle().await;
}

// Facts §12 lines 43 and 44: the first ending stands.
#[tokio::test]
async fn a_cancel_before_the_time_limit_stands() {
    let time = ManualTime::start();
    let script = Script::new()
        .lead("go", [delegating(&[("1", "slow")]), saying("done")])
        .sub("slow", [Turn::Held("slow", saying("too late"))]);
    let world = Setup::new(script).build().await;
    let run = world.start("go").await;
    world.until("one at work", |world| world.script.at_work().0 == 1).await;
    world.runtime.cancel_delegation(&world.thread, &run, &named("1")).await.unwrap();
    time.advance(Duration::from_secs(2_000)).await;
    world.script.open("slow");
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    let ends = world.ends();
    assert_eq!((ends.len(), ends[0].status, ends[0].result.as_deref()), (1, EndStatus::Cancelled, None));
    world.check_ended_once();
}
