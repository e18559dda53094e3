//! What of the limits is used up when the server is started again, and who is next then.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use domain::{
    event::{DelegationEvent, EndStatus, Event, RunStatus},
    ids::ThreadId,
    tool_spec::TASK_TOOL,
};
use eventlog::{EventLog, Options};
use jiff::Timestamp;
use serde_json::json;

use crate::{
    config::Recovery,
    request::NewThread,
    testing::{
        Script, Setup, Turn, asking, calling, delegating, facts_of, saying,
        time::ManualTime,
        tools::Holding,
        world::{World, request},
    },
};

/// The log's time, which passes only when a test says so.
#[derive(Clone, Default)]
struct LogTime(Arc<AtomicI64>);

impl LogTime {
    fn log(&self) -> EventLog {
        let seconds = Arc::clone(&self.0);
        let now = move || Timestamp::from_second(seconds.load(Ordering::SeqCst)).unwrap();
        EventLog::in_memory(Options::new(Arc::new(now)))
    }

    fn is(&self, second: i64) {
        self.0.store(second, Ordering::SeqCst);
    }
}

/// The same world after a restart.
async fn restarted(setup: &Setup, world: World) -> World {
    world.done(world.runtime.shutdown()).await;
    let runtime = setup.runtime(&world.data);
    World { runtime, ..world }
}

fn spent(world: &World) -> Vec<u64> {
    let spent = |fact: domain::event::Logged| match fact.event {
        Event::Delegation(DelegationEvent::Resumed(resumed)) => Some(resumed.spent_ms),
        _ => None,
    };
    world.facts().into_iter().filter_map(spent).collect()
}

fn setup_with(script: Script, time: &LogTime) -> Setup {
    Setup::new(script).log(time.log()).config(|config| {
        let limit = json!({"general-purpose": {"timeout_seconds": 100}});
        config.subagents.agents = serde_json::from_value(limit).unwrap();
        config.subagent_runtime.max_running = 1;
    })
}

// The time in which the server was down is no work; the time before is.
#[tokio::test]
async fn the_time_limit_goes_on_where_it_was() {
    let (time, log_time) = (ManualTime::start(), LogTime::default());
    log_time.is(1_000);
    let look = calling(&[("x", "ls", json!({"path": "."}))]);
    let script = Script::new()
        .lead("go", [delegating(&[("1", "slow")]), saying("done")])
        .sub("slow", [Turn::Held("first", look), Turn::Hang]);
    let setup = setup_with(script, &log_time);
    let (script, log) = (setup.script.clone(), setup.log.clone());
    let world = setup_with(script, &log_time).log(log).build().await;
    let run = world.start("go").await;
    world.until("one at work", |world| world.script.at_work().0 == 1).await;
    log_time.is(1_040);
    world.script.open("first");
    world.until_recorded("subagent.receipt", 1).await;
    world.until("the second question", |world| world.script.calls_for("slow") == 2).await;

    log_time.is(9_000);
    let world = restarted(&setup, world).await;
    world.runtime.recover(Recovery::Resume).await.unwrap();
    world.until_recorded("delegation.resumed", 1).await;
    world.until("the second question again", |world| world.script.calls_for("slow") == 3).await;
    log_time.is(9_005);
    // A second restart after five seconds of which nothing tells.
    let world = restarted(&setup, world).await;
    world.runtime.recover(Recovery::Resume).await.unwrap();
    world.until_recorded("delegation.resumed", 2).await;
    world.until("the second question once more", |world| world.script.calls_for("slow") == 4).await;
    assert_eq!(spent(&world), [40_000, 40_000]);
    time.advance(Duration::from_secs(59)).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.count("subagent.end"), 0, "there is a second left");
    time.advance(Duration::from_secs(2)).await;
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    assert_eq!(world.ends()[0].status, EndStatus::TimedOut);
    assert!(world.results()[0].content.contains("Execution timed out after 100 seconds"));
    world.check_ended_once();
    world.until_idle().await;
}

// A limit that is used up asks no model any more.
#[tokio::test]
async fn a_time_limit_that_is_used_up_ends_the_work_at_once() {
    let (_time, log_time) = (ManualTime::start(), LogTime::default());
    let look = calling(&[("x", "ls", json!({"path": "."}))]);
    let script = Script::new()
        .lead("go", [delegating(&[("1", "slow")]), saying("done")])
        .sub("slow", [Turn::Held("first", look), Turn::Hang]);
    let setup = setup_with(script, &log_time);
    let (script, log) = (setup.script.clone(), setup.log.clone());
    let world = setup_with(script, &log_time).log(log).build().await;
    let run = world.start("go").await;
    world.until("one at work", |world| world.script.at_work().0 == 1).await;
    log_time.is(100);
    world.script.open("first");
    world.until("the second question", |world| world.script.calls_for("slow") == 2).await;
    let world = restarted(&setup, world).await;
    world.runtime.recover(Recovery::Resume).await.unwrap();
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    assert_eq!((world.ends()[0].status, world.script.calls_for("slow")), (EndStatus::TimedOut, 2));
    world.check_ended_once();
}

async fn thread(world: &World, name: &str) -> ThreadId {
    let named = NewThread { thread_id: Some(ThreadId::new(name).unwrap()), ..NewThread::default() };
    world.runtime.create_thread(named).await.unwrap()
}

/// The tasks that were admitted, in order.
fn admitted(log: &EventLog) -> Vec<String> {
    let facts = facts_of(log).into_iter();
    let admitted = facts.filter(|fact| fact.event.event_type() == "delegation.admitted");
    admitted.filter_map(|fact| Some(fact.scope.task_id?.to_string())).collect()
}

// Point 7: whoever was at work has its slot again, and those who waited are in the same order, whatever
// their threads are called; the wait is not counted anew either.
#[tokio::test]
async fn slots_and_places_are_taken_again_in_order() {
    let log_time = LogTime::default();
    let held = |task: &str| [Turn::Held("all", saying(&format!("{task} is done")))];
    let mut script = Script::new();
    for (asked, task) in [("one", "first"), ("two", "second"), ("three", "third"), ("four", "fourth")] {
        script = script.lead(asked, [delegating(&[(task, task)]), saying("done")]).sub(task, held(task));
    }
    let setup = setup_with(script, &log_time);
    let (script, log) = (setup.script.clone(), setup.log.clone());
    let world = setup_with(script, &log_time).log(log).build().await;
    let mut runs = Vec::new();
    for (count, (name, asked)) in
        [("d", "one"), ("b", "two"), ("c", "three"), ("a", "four")].into_iter().enumerate()
    {
        let thread = thread(&world, name).await;
        let run = world.runtime.start_run(&thread, request(asked)).await.unwrap();
        match count {
            0 => world.until("the first at work", |world| world.script.at_work().0 == 1).await,
            waiting => world.until_recorded("delegation.queued", waiting).await,
        }
        runs.push((thread, run));
    }
    let world = restarted(&setup, world).await;
    world.runtime.recover(Recovery::Resume).await.unwrap();
    world.until("the first at work again", |world| world.script.calls_for("first") == 2).await;
    let capacity = world.runtime.capacity();
    assert_eq!((capacity.running, capacity.queued), (1, 3));
    world.script.open("all");
    for (thread, run) in runs {
        assert_eq!(world.done(world.runtime.wait(&thread, &run)).await.unwrap(), RunStatus::Success);
    }
    assert_eq!(admitted(&world.log), ["first", "second", "third", "fourth"]);
    world.check_ended_once();
    world.until_idle().await;
}

// What was waited before the restart counts, and the time without a server does not.
#[tokio::test]
async fn the_wait_for_a_slot_goes_on_where_it_was() {
    let (time, log_time, tool) = (ManualTime::start(), LogTime::default(), Holding::default());
    let asks = [("second", TASK_TOOL, asking("general-purpose", "second")), ("h", Holding::NAME, json!({}))];
    let script = Script::new()
        .lead("one", [delegating(&[("first", "first")]), saying("done")])
        .lead("two", [calling(&asks), saying("done")])
        .sub("first", [Turn::Hang]);
    let unhurried = |script: Script| {
        let setup = setup_with(script, &log_time).tool(tool.clone());
        setup.config(|config| {
            let limit = json!({"general-purpose": {"timeout_seconds": 1_000_000}});
            config.subagents.agents = serde_json::from_value(limit).unwrap();
        })
    };
    let setup = unhurried(script);
    let world = unhurried(setup.script.clone()).log(setup.log.clone()).build().await;
    let (one, two) = (thread(&world, "one").await, thread(&world, "two").await);
    let first = world.runtime.start_run(&one, request("one")).await.unwrap();
    world.until("the first at work", |world| world.script.at_work().0 == 1).await;
    let second = world.runtime.start_run(&two, request("two")).await.unwrap();
    world.until("the lead's own call", |_| tool.has_begun()).await;
    assert_eq!(world.count("delegation.queued"), 1);
    // The last sign of life, two minutes after the wait began.
    log_time.is(120);
    tool.let_go();
    world.until("its result", |world| world.results().len() == 1).await;
    let world = restarted(&setup, world).await;
    log_time.is(50_000);
    world.runtime.recover(Recovery::Resume).await.unwrap();
    world.until("the first at work again", |world| world.script.calls_for("first") == 2).await;
    world.until_recorded("delegation.resumed", 2).await;
    assert_eq!(spent(&world).iter().sum::<u64>(), 120_000);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    time.advance(Duration::from_secs(179)).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.count("delegation.refused"), 0, "there is a second left");
    time.advance(Duration::from_secs(2)).await;
    assert_eq!(world.done(world.runtime.wait(&two, &second)).await.unwrap(), RunStatus::Success);
    assert!(world.results()[1].content.contains("no subagent slot became free within 300 seconds"));
    world.runtime.cancel_run(&one, &first).await.unwrap();
    world.done(world.runtime.wait(&one, &first)).await.unwrap();
    world.check_ended_once();
    world.until_idle().await;
}
