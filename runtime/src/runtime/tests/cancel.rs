//! Cancelling, interrupting and shutting down (field reports, group B).

use domain::{
    event::{CancelReason, EndStatus, RunStatus},
    usage::Usage,
};

use super::executor::named;
use crate::{
    config::Recovery,
    models::ModelErrorKind,
    request::{CancelError, StartRunError},
    testing::{
        Script, Setup, Turn, delegating, gate::Gate, pauses::TestPauses, saying, script::Using,
        world::request,
    },
};

pub(super) fn three_tasks() -> Script {
    Script::new()
        .lead("go", [delegating(&[("1", "task-a"), ("2", "task-b"), ("3", "task-c")]), saying("done")])
}

// Field reports 8 and 23, and facts §12 lines 73 and 74: every subagent of a cancelled run has an
// end that says why, and what was done for nobody shows as not delivered, with its tokens.
#[tokio::test]
async fn a_cancelled_run_ends_its_subagents() {
    let script = three_tasks()
        .sub("task-a", [Turn::Hang])
        .sub("task-b", [Turn::Hang])
        .sub("task-c", [saying("in time").using(5, 5)]);
    let world = Setup::new(script).build().await;
    let run = world.start("go").await;
    world
        .until("one end, two at work", |world| {
            world.count("subagent.end") == 1 && world.script.at_work().0 == 2
        })
        .await;
    world.runtime.cancel_run(&world.thread, &run).await.unwrap();
    assert_eq!(world.wait(&run).await, RunStatus::Interrupted);
    let mut ends = world.ends();
    ends.sort_by_key(|end| end.task_id.clone());
    let seen: Vec<_> = ends.iter().map(|end| (end.status, end.cancel_reason)).collect();
    let interrupted = (EndStatus::Cancelled, Some(CancelReason::ParentInterrupted));
    assert_eq!(seen, [interrupted, interrupted, (EndStatus::Completed, None)]);
    let ledger = world.ledger();
    assert!(ledger.iter().all(|entry| entry.status.is_terminal() && !entry.delivered));
    assert_eq!(ledger[2].usage, Some(Usage::new(5, 5)));
    let again = world.runtime.cancel_run(&world.thread, &run).await;
    assert!(matches!(again, Err(CancelError::AlreadyEnded(RunStatus::Interrupted))));
    world.check_ended_once();
    world.until_idle().await;
}

// Field report 16: what the provider says after the cancel changes nothing.
#[tokio::test]
async fn a_reply_that_comes_after_the_cancel_is_not_recorded() {
    let script = Script::new()
        .lead("go", [delegating(&[("1", "late")]).using(1, 1), saying("done")])
        .sub("late", [Turn::Held("late", saying("too late").using(100, 100))]);
    let world = Setup::new(script).build().await;
    let run = world.start("go").await;
    world.until("one at work", |world| world.script.at_work().0 == 1).await;
    world.runtime.cancel_run(&world.thread, &run).await.unwrap();
    assert_eq!(world.wait(&run).await, RunStatus::Interrupted);
    let before = world.types();
    world.script.open("late");
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.types(), before);
    assert_eq!((world.ends()[0].status, world.ends()[0].usage), (EndStatus::Cancelled, None));
    world.check_ended_once();
}

// Field report 22: one subagent waits for its next attempt, another for a slot.
#[tokio::test]
async fn a_cancel_reaches_who_waits() {
    let script = three_tasks()
        .sub("task-a", [Turn::Fail(ModelErrorKind::Busy)])
        .sub("task-b", [Turn::Fail(ModelErrorKind::Busy)])
        .sub("task-c", [Turn::Fail(ModelErrorKind::Busy)]);
    let setup = Setup::new(script)
        .pauses(TestPauses::Endless)
        .config(|config| config.subagent_runtime.max_running = 2);
    let world = setup.build().await;
    let mut asked = request("go");
    asked.max_concurrent_subagents = Some(2);
    let other = world.runtime.create_thread(Default::default()).await.unwrap();
    let run = world.start("go").await;
    world.until_recorded("llm.retry", 2).await;
    let waiting = world.runtime.start_run(&other, asked).await.unwrap();
    world.until_recorded("delegation.queued", 2).await;
    let calls = world.script.calls();
    world.runtime.cancel_run(&other, &waiting).await.unwrap();
    world.runtime.cancel_run(&world.thread, &run).await.unwrap();
    assert_eq!(world.wait(&run).await, RunStatus::Interrupted);
    assert_eq!(world.done(world.runtime.wait(&other, &waiting)).await.unwrap(), RunStatus::Interrupted);
    assert_eq!(world.script.calls(), calls);
    assert_eq!(world.ends().iter().filter(|end| end.status == EndStatus::Cancelled).count(), 4);
    world.check_ended_once();
    world.until_idle().await;
}

// Between the slot and the subagent: the request is on its way into the log when the run is
// cancelled.
#[tokio::test]
async fn a_cancel_while_delegations_are_opened_leaks_nothing() {
    let (gate, log) = Gate::log();
    let script =
        Script::new().lead("go", [Turn::Held("lead", delegating(&[("1", "task-a"), ("2", "task-b")]))]);
    let world = Setup::new(script).log(log).build().await;
    let run = world.start("go").await;
    world.until("the lead's call", |world| world.script.calls() == 1).await;
    let settle = async || {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    };
    // Only the reply gets through; the first request stands before the gate.
    gate.shut_after(1);
    world.script.open("lead");
    world.until_recorded("llm.ai.response", 1).await;
    settle().await;
    world.runtime.cancel_run(&world.thread, &run).await.unwrap();
    settle().await;
    gate.open();
    assert_eq!(world.wait(&run).await, RunStatus::Interrupted);
    let reasons: Vec<_> = world.ends().iter().map(|end| end.cancel_reason).collect();
    assert_eq!(reasons, [Some(CancelReason::ParentInterrupted)]);
    assert_eq!((world.count("delegation.requested"), world.script.calls()), (1, 1));
    world.check_ended_once();
    world.until_idle().await;
}

// Whoever saw the request in the log can cancel it, even before the subagent is there.
#[tokio::test]
async fn a_delegation_can_be_cancelled_as_soon_as_it_is_recorded() {
    let (gate, log) = Gate::log();
    let script = Script::new()
        .lead(
            "go",
            [Turn::Held("lead", delegating(&[("1", "task-a"), ("2", "task-b")])), saying("done").into()],
        )
        .sub("task-b", [saying("b")]);
    let world = Setup::new(script).log(log).build().await;
    let run = world.start("go").await;
    world.until("the lead's call", |world| world.script.calls() == 1).await;
    // The reply and the first request get through; the lead waits with the second.
    gate.shut_after(2);
    world.script.open("lead");
    world.until_recorded("delegation.requested", 1).await;
    world.runtime.cancel_delegation(&world.thread, &run, &named("1")).await.unwrap();
    gate.open();
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    let statuses: Vec<_> = world.ledger().iter().map(|entry| entry.status.as_str()).collect();
    assert_eq!(statuses, ["cancelled", "completed"]);
    world.check_ended_once();
}

// A shutdown is nobody's cancel: nothing ends, and all of it goes on at the next start.
#[tokio::test]
async fn a_shutdown_ends_nothing() {
    let script = || {
        three_tasks()
            .sub("task-a", [Turn::Held("all", saying("a"))])
            .sub("task-b", [Turn::Held("all", saying("b"))])
            .sub("task-c", [Turn::Held("all", saying("c"))])
    };
    let setup = Setup::new(script()).config(|config| config.subagent_runtime.max_running = 2);
    let world = setup.build().await;
    let other = world.runtime.create_thread(Default::default()).await.unwrap();
    let run = world.start("go").await;
    let second = world.runtime.start_run(&other, request("go")).await.unwrap();
    world.until_recorded("delegation.queued", 2).await;
    world.done(world.runtime.shutdown()).await;
    assert_eq!((world.ends().len(), world.last_status().status), (0, RunStatus::Running));
    assert_eq!((world.runtime.capacity().running, world.runtime.capacity().queued), (0, 0));
    assert!(matches!(world.runtime.start_run(&other, request("go")).await, Err(StartRunError::ShuttingDown)));
    assert!(matches!(world.runtime.wait(&world.thread, &run).await, Err(CancelError::NotLive(_))));

    let script = script();
    script.open("all");
    let data = tempfile::tempdir().unwrap();
    let next =
        Setup::new(script).log(world.log.clone()).config(|config| config.subagent_runtime.max_running = 2);
    let runtime = next.runtime(&data);
    let mut resumed = runtime.recover(Recovery::Resume).await.unwrap();
    resumed.sort();
    let mut expected = vec![(world.thread.clone(), run.clone()), (other.clone(), second.clone())];
    expected.sort();
    assert_eq!(resumed, expected);
    assert_eq!(world.done(runtime.wait(&world.thread, &run)).await.unwrap(), RunStatus::Success);
    assert_eq!(world.done(runtime.wait(&other, &second)).await.unwrap(), RunStatus::Success);
    assert!(world.ends().iter().all(|end| end.status == EndStatus::Completed));
    world.check_ended_once();
}
