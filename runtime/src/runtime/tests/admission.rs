//! The gate for subagents, as runs meet it.

use std::time::Duration;

use domain::event::{EndStatus, RunStatus};
use serde_json::json;

use super::executor::named;
use crate::testing::{
    Script, Setup, Turn, asking, calling, delegating, saying, time::ManualTime, world::request,
};

/// One slot, held by the first of two tasks.
fn two_for_one_slot() -> Setup {
    let script = Script::new()
        .lead("go", [delegating(&[("1", "first")]), saying("done")])
        .lead("more", [delegating(&[("2", "second")]), saying("done")])
        .sub("first", [Turn::Held("first", saying("one"))])
        .sub("second", [saying("two")]);
    Setup::new(script).config(|config| config.subagent_runtime.max_running = 1)
}

#[tokio::test]
async fn who_finds_no_slot_waits_for_one() {
    let world = two_for_one_slot().build().await;
    let other = world.runtime.create_thread(Default::default()).await.unwrap();
    let run = world.start("go").await;
    world.until("one at work", |world| world.script.at_work().0 == 1).await;
    let waiting = world.runtime.start_run(&other, request("more")).await.unwrap();
    world.until_recorded("delegation.queued", 1).await;
    assert_eq!((world.runtime.capacity().running, world.runtime.capacity().queued), (1, 1));
    assert_eq!(world.script.calls_for("second"), 0);
    world.script.open("first");
    world.wait(&run).await;
    assert_eq!(world.done(world.runtime.wait(&other, &waiting)).await.unwrap(), RunStatus::Success);
    assert!(world.ends().iter().all(|end| end.status == EndStatus::Completed));
    world.check_ended_once();
    world.until_idle().await;
}

// Facts §12 line 41: cancelled before it began, so no model was asked.
#[tokio::test]
async fn a_task_in_the_queue_can_be_cancelled() {
    let world = two_for_one_slot().build().await;
    let other = world.runtime.create_thread(Default::default()).await.unwrap();
    let run = world.start("go").await;
    world.until("one at work", |world| world.script.at_work().0 == 1).await;
    let waiting = world.runtime.start_run(&other, request("more")).await.unwrap();
    world.until_recorded("delegation.queued", 1).await;
    world.runtime.cancel_delegation(&other, &waiting, &named("2")).await.unwrap();
    assert_eq!(world.done(world.runtime.wait(&other, &waiting)).await.unwrap(), RunStatus::Success);
    let end = &world.ends()[0];
    assert_eq!((end.status, end.turns, world.script.calls_for("second")), (EndStatus::Cancelled, 0, 0));
    assert_eq!(world.runtime.capacity().queued, 0);
    world.script.open("first");
    world.wait(&run).await;
    world.check_ended_once();
}

// DESIGN, "Admission queue": no slot in time is a refusal of its own, before any model call.
#[tokio::test]
async fn a_wait_that_is_too_long_is_refused() {
    let time = ManualTime::start();
    let unhurried = two_for_one_slot().config(|config| config.subagents.timeout_seconds = 1_000_000_000);
    let world = unhurried.build().await;
    let other = world.runtime.create_thread(Default::default()).await.unwrap();
    let run = world.start("go").await;
    world.until("one at work", |world| world.script.at_work().0 == 1).await;
    let waiting = world.runtime.start_run(&other, request("more")).await.unwrap();
    world.until_recorded("delegation.queued", 1).await;
    // The wait itself may begin a little later than the record says.
    while world.count("delegation.refused") == 0 {
        time.advance(Duration::from_secs(100)).await;
    }
    assert_eq!(world.done(world.runtime.wait(&other, &waiting)).await.unwrap(), RunStatus::Success);
    let ledger = world.ledger();
    assert_eq!((ledger[1].status.as_str(), world.script.calls_for("second")), ("refused", 0));
    assert!(world.results()[0].content.contains("no subagent slot became free within 300 seconds"));
    world.script.open("first");
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    world.check_ended_once();
    world.until_idle().await;
}

#[tokio::test]
async fn a_full_queue_is_refused_at_once() {
    let script = Script::new()
        .lead("go", [delegating(&[("1", "first"), ("2", "second")]), saying("done")])
        .lead("more", [delegating(&[("3", "third"), ("4", "fourth")]), saying("done")])
        .sub("first", [Turn::Held("all", saying("one"))])
        .sub("second", [Turn::Held("all", saying("two"))])
        .sub("third", [saying("three")]);
    let setup = Setup::new(script).config(|config| {
        config.subagent_runtime.max_running = 2;
        config.subagent_runtime.queue_capacity = 1;
    });
    let world = setup.build().await;
    let other = world.runtime.create_thread(Default::default()).await.unwrap();
    let run = world.start("go").await;
    world.until("two at work", |world| world.script.at_work().0 == 2).await;
    let second = world.runtime.start_run(&other, request("more")).await.unwrap();
    world.until_recorded("delegation.refused", 1).await;
    assert!(world.results()[0].content.contains("the queue is full"), "{:?}", world.results());
    world.script.open("all");
    world.wait(&run).await;
    world.done(world.runtime.wait(&other, &second)).await.unwrap();
    let mut statuses: Vec<_> =
        world.ledger().iter().map(|entry| (entry.task_id.to_string(), entry.status.as_str())).collect();
    statuses.sort();
    let statuses: Vec<_> = statuses.iter().map(|(_, status)| *status).collect();
    assert_eq!(statuses, ["completed", "completed", "completed", "refused"]);
    world.check_ended_once();
    world.until_idle().await;
}

// The reference's poller counts the queue as work, and gives up on what never had a turn. Ours
// does not: the lead's patience begins with the work.
#[tokio::test]
async fn the_wait_for_a_slot_is_not_the_subagent_s_time() {
    let time = ManualTime::start();
    let quick = json!({"quick": {"description": "quick", "system_prompt": "be quick", "timeout_seconds": 1}});
    let script = Script::new()
        .lead("go", [delegating(&[("1", "first")]), saying("done")])
        .lead("more", [calling(&[("2", "task", asking("quick", "second"))]), saying("done")])
        .sub("first", [Turn::Held("first", saying("one"))])
        .sub("second", [saying("two")]);
    let setup = Setup::new(script).config(|config| {
        config.subagent_runtime.max_running = 1;
        config.subagents.custom_agents = serde_json::from_value(quick).unwrap();
    });
    let world = setup.build().await;
    let other = world.runtime.create_thread(Default::default()).await.unwrap();
    let run = world.start("go").await;
    world.until("one at work", |world| world.script.at_work().0 == 1).await;
    let waiting = world.runtime.start_run(&other, request("more")).await.unwrap();
    world.until_recorded("delegation.queued", 1).await;
    // Beyond its limit and the lead's grace, and within the time of the queue.
    time.advance(Duration::from_secs(200)).await;
    world.script.open("first");
    world.wait(&run).await;
    assert_eq!(world.done(world.runtime.wait(&other, &waiting)).await.unwrap(), RunStatus::Success);
    assert!(world.ends().iter().all(|end| end.status == EndStatus::Completed), "{:?}", world.ends());
}
