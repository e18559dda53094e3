//! A crash at any moment: fold the log and go on (field report 59, and DESIGN, promise 6).

use std::sync::Arc;

use domain::{
    event::{
        EndStatus, Event, Logged, ModelEvent, RunEvent, RunStatus, RunStopReason, SubagentEvent, ToolEvent,
    },
    ledger::LedgerEntry,
    message::AssistantMessage,
    tool_spec::SideEffect,
};
use eventlog::{
    EventLog, Options, Position,
    store::{LogStore, SegmentStore},
};
use serde_json::json;

use super::start::copy;
use crate::{
    Runtime,
    config::Recovery,
    models::ModelErrorKind,
    testing::{
        Script, Setup, Turn, calling, delegating, facts_of, saying,
        tools::{Behaviour, Counting},
        world::{check_ended_once, ledger_of, results_of},
    },
};

/// Three delegations: one that changes something, one that reads, one that fails; and a lead that
/// changes something itself.
fn script() -> Script {
    let mut first = delegating(&[("1", "task-a"), ("2", "task-b"), ("3", "task-c")]);
    first.tool_calls.extend(calling(&[("4", "mark", json!({}))]).tool_calls);
    let look = |id: &str, tool: &str| -> AssistantMessage { calling(&[(id, tool, json!({"path": "."}))]) };
    Script::new()
        .lead("go", [first, saying("all done")])
        .sub("task-a", [look("x", "mark"), saying("a is done")])
        .sub("task-b", [look("x", "ls"), saying("b is done")])
        .sub("task-c", [Turn::Fail(ModelErrorKind::Generic)])
}

fn setup(script: &Script, tool: &Counting, log: EventLog) -> Setup {
    Setup::new(script.clone())
        .tool(tool.clone())
        .log(log)
        .config(|config| config.subagent_runtime.max_running = 3)
}

fn marking() -> Counting {
    Counting::new("mark", SideEffect::Effectful, Behaviour::Return)
}

fn replies(facts: &[Logged]) -> usize {
    let is_reply = |fact: &&Logged| match &fact.event {
        Event::Model(ModelEvent::AiResponse(_)) => true,
        Event::Subagent(SubagentEvent::Message(captured)) => captured.message.as_assistant().is_some(),
        _ => false,
    };
    facts.iter().filter(is_reply).count()
}

fn started(facts: &[Logged]) -> usize {
    facts.iter().filter(|fact| matches!(&fact.event, Event::Tool(ToolEvent::Started(_)))).count()
}

/// Task id, status, result, error, and whether it was delivered.
type Essence = (String, &'static str, Option<String>, Option<String>, bool);

/// What the ledger says, without ids, places and times.
fn essence(entries: &[LedgerEntry]) -> Vec<Essence> {
    let of = |entry: &LedgerEntry| {
        (
            entry.task_id.to_string(),
            entry.status.as_str(),
            entry.result_brief.clone(),
            entry.error.clone(),
            entry.delivered,
        )
    };
    let mut all: Vec<_> = entries.iter().map(of).collect();
    all.sort();
    all
}

/// A whole run, and the positions at which a crash can leave the log.
async fn recorded_run() -> (EventLog, Vec<usize>, domain::ids::ThreadId, domain::ids::RunId) {
    let store: Arc<dyn LogStore> = Arc::new(SegmentStore::in_memory());
    let log = EventLog::with_store(store.clone(), Options::default()).unwrap();
    let world = setup(&script(), &marking(), log.clone()).build().await;
    let run = world.start("go").await;
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    let facts = world.facts();
    // What subagents recorded in one commit could as well have come one after the other.
    let is_between = |at: usize| match (facts[at - 1].scope.delegation_id, facts.get(at)) {
        (Some(last), Some(next)) => next.scope.delegation_id.is_some_and(|next| next != last),
        _ => false,
    };
    let ends: Vec<usize> = (1..=facts.len())
        .filter(|at| store.commit_at(Position::new(*at as u64)).unwrap().is_some() || is_between(*at))
        .collect();
    assert!(ends.len() > 25, "{ends:?}");
    (log, ends, world.thread.clone(), run)
}

async fn recovered(runtime: &Runtime, facts: &[Logged], recovery: Recovery) {
    let resumed = runtime.recover(recovery).await.unwrap();
    let is_open = facts.iter().any(|fact| matches!(fact.event, Event::Run(RunEvent::Started(_))))
        && !facts.iter().any(|fact| is_terminal(&fact.event));
    assert_eq!(resumed.len(), usize::from(is_open && recovery == Recovery::Resume));
    for (thread, run) in resumed {
        let patience = std::time::Duration::from_secs(30);
        let status = tokio::time::timeout(patience, runtime.wait(&thread, &run)).await.unwrap().unwrap();
        assert_eq!(status, RunStatus::Success);
    }
}

fn is_terminal(event: &Event) -> bool {
    matches!(event, Event::Run(RunEvent::StatusChanged(changed)) if changed.status.is_terminal())
}

#[tokio::test]
async fn a_crash_at_any_moment_costs_at_most_the_calls_in_flight() {
    let (whole, ends, ..) = recorded_run().await;
    let expected = facts_of(&whole);
    let all_replies = replies(&expected);
    for end in ends.into_iter().skip(1) {
        let log = copy(end, &whole, Arc::new(SegmentStore::in_memory())).await;
        let before = facts_of(&log);
        let (script, tool, data) = (script(), marking(), tempfile::tempdir().unwrap());
        let runtime = setup(&script, &tool, log.clone()).runtime(&data);
        recovered(&runtime, &before, Recovery::Resume).await;
        let after = facts_of(&log);
        check_ended_once(&after);
        assert_eq!(essence(&ledger_of(&after)), essence(&ledger_of(&expected)), "cut after {end}");
        assert_eq!(results_of(&after).len(), 4, "cut after {end}");
        assert_eq!(script.calls(), all_replies - replies(&before), "cut after {end}");
        // A tool that was started before is not started again, whatever it did.
        assert_eq!(tool.runs() as usize, 2 - started(&before), "cut after {end}");
        assert_eq!(
            (after.iter().filter(|fact| is_terminal(&fact.event)).count(), replies(&after)),
            (1, all_replies)
        );
        assert_eq!(runtime.capacity().running, 0);
    }
}

#[tokio::test]
async fn a_server_that_is_told_to_fail_runs_ends_them_all() {
    let (whole, ends, thread, run) = recorded_run().await;
    for end in ends.into_iter().skip(1) {
        let log = copy(end, &whole, Arc::new(SegmentStore::in_memory())).await;
        let before = facts_of(&log);
        let (script, tool, data) = (script(), marking(), tempfile::tempdir().unwrap());
        let runtime = setup(&script, &tool, log.clone()).runtime(&data);
        recovered(&runtime, &before, Recovery::Fail).await;
        let after = facts_of(&log);
        check_ended_once(&after);
        assert_eq!((script.calls(), tool.runs()), (0, 0));
        let status = runtime.wait(&thread, &run).await.unwrap();
        if before.iter().any(|fact| is_terminal(&fact.event)) {
            assert_eq!((status, after.len()), (RunStatus::Success, before.len()));
        } else {
            let reason = after.iter().find_map(|fact| match &fact.event {
                Event::Run(RunEvent::StatusChanged(changed)) if changed.status.is_terminal() => {
                    changed.stop_reason
                }
                _ => None,
            });
            assert_eq!((status, reason), (RunStatus::Error, Some(RunStopReason::OrphanRecovered)));
            check_interrupted(&after[before.len()..]);
        }
    }
}

/// What was open was cancelled by nobody: it failed, and says that it was interrupted.
fn check_interrupted(closing: &[Logged]) {
    for fact in closing {
        if let Event::Subagent(SubagentEvent::Ended(end)) = &fact.event {
            let error = end.error.as_deref().unwrap_or_default();
            assert_eq!((end.status, end.cancel_reason), (EndStatus::Failed, None));
            assert!(error.starts_with("interrupted: "), "{error}");
        }
    }
}

// Field report 60: the receipt of what was started before the crash says that nobody knows.
#[tokio::test]
async fn a_started_tool_is_told_to_be_unknown() {
    let (whole, ends, ..) = recorded_run().await;
    let facts = facts_of(&whole);
    let is_sub = |fact: &Logged| fact.scope.delegation_id.is_some();
    let at =
        facts.iter().position(|fact| is_sub(fact) && started(std::slice::from_ref(fact)) == 1).unwrap() + 1;
    let end = ends.into_iter().find(|end| *end >= at).unwrap();
    let log = copy(end, &whole, Arc::new(SegmentStore::in_memory())).await;
    let (script, tool, data) = (script(), marking(), tempfile::tempdir().unwrap());
    let runtime = setup(&script, &tool, log.clone()).runtime(&data);
    recovered(&runtime, &facts_of(&log), Recovery::Resume).await;
    let unknown = facts_of(&log).into_iter().find_map(|fact| match fact.event {
        Event::Subagent(SubagentEvent::Message(captured))
            if captured.message.content().contains("is unknown") =>
        {
            Some(captured.message.content().to_owned())
        }
        _ => None,
    });
    assert!(unknown.unwrap().contains("It was not run again"));
}

// Crash after crash, each a little further on.
#[tokio::test]
async fn a_run_survives_one_crash_after_another() {
    let (whole, ends, thread, run) = recorded_run().await;
    let mut store: Arc<dyn LogStore> = Arc::new(SegmentStore::in_memory());
    let mut log = copy(ends[1], &whole, store.clone()).await;
    let mut crashes = 0;
    loop {
        let (script, tool, data) = (script(), marking(), tempfile::tempdir().unwrap());
        let runtime = setup(&script, &tool, log.clone()).runtime(&data);
        let before = facts_of(&log).len();
        if runtime.recover(Recovery::Resume).await.unwrap().is_empty() {
            assert_eq!(runtime.wait(&thread, &run).await.unwrap(), RunStatus::Success);
            break;
        }
        let status =
            tokio::time::timeout(std::time::Duration::from_secs(30), runtime.wait(&thread, &run)).await;
        assert_eq!(status.unwrap().unwrap(), RunStatus::Success);
        crashes += 1;
        assert!(crashes < 100, "the run does not get on");
        // The first commit of at least six events more survives: three say that a delegation goes on.
        let is_end = |at: &usize| store.commit_at(Position::new(*at as u64)).unwrap().is_some();
        let after = facts_of(&log).len();
        let survives = (before + 6..=after).find(is_end).unwrap_or(after);
        let next: Arc<dyn LogStore> = Arc::new(SegmentStore::in_memory());
        log = copy(survives, &log, next.clone()).await;
        store = next;
    }
    assert!(crashes > 6, "{crashes}");
    let facts = facts_of(&log);
    check_ended_once(&facts);
    assert_eq!(essence(&ledger_of(&facts)), essence(&ledger_of(&facts_of(&whole))));
}

// A run obeys what it was started with, whatever was configured since.
#[tokio::test]
async fn a_resumed_run_keeps_its_limits() {
    let (whole, ends, ..) = recorded_run().await;
    let facts = facts_of(&whole);
    let at = facts.iter().position(|fact| fact.event.event_type() == "delegation.requested").unwrap();
    let end = ends.into_iter().rfind(|end| *end <= at).unwrap();
    let log = copy(end, &whole, Arc::new(SegmentStore::in_memory())).await;
    let (script, tool, data) = (script(), marking(), tempfile::tempdir().unwrap());
    let setup = setup(&script, &tool, log.clone()).config(|config| config.subagents.max_turns = Some(7));
    recovered(&setup.runtime(&data), &facts_of(&log), Recovery::Resume).await;
    let limits: Vec<u32> = facts_of(&log)
        .iter()
        .filter_map(|fact| match &fact.event {
            Event::Delegation(domain::event::DelegationEvent::Requested(request)) => Some(request.max_turns),
            _ => None,
        })
        .collect();
    assert_eq!(limits, [150, 150, 150]);
}

/// Two runs on a thread, each of which may delegate twice; the second uses ids of the first again, and asks
/// for one more than it may.
fn two_runs() -> Script {
    Script::new()
        .lead("first", [delegating(&[("1", "task-a"), ("2", "task-b")]), saying("done")])
        .lead(
            "second",
            [delegating(&[("1", "task-c")]), delegating(&[("2", "task-d"), ("3", "task-e")]), saying("done")],
        )
        .sub("task-a", [saying("a")])
        .sub("task-b", [saying("b")])
        .sub("task-c", [saying("c")])
        .sub("task-d", [saying("d")])
}

/// Of each delegation its run, its call, and what became of it.
fn by_run(log: &EventLog) -> Vec<(domain::ids::RunId, String, &'static str)> {
    let ledger = ledger_of(&facts_of(log));
    ledger.iter().map(|one| (one.run_id.clone(), one.task_id.to_string(), one.status.as_str())).collect()
}

// Chain facts §1.1 and (f) 32: what an earlier run delegated is that run's, before and after a crash.
#[tokio::test]
async fn a_resumed_run_counts_its_own_delegations_alone() {
    let store: Arc<dyn LogStore> = Arc::new(SegmentStore::in_memory());
    let log = EventLog::with_store(store.clone(), Options::default()).unwrap();
    let setup = |log: EventLog| {
        Setup::new(two_runs()).log(log).config(|config| config.subagents.max_total_per_run = 2)
    };
    let world = setup(log).build().await;
    assert_eq!(world.run("first").await, RunStatus::Success);
    let between = world.facts().len();
    let run = world.start("second").await;
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    let whole = by_run(&world.log);
    let of_second: Vec<_> =
        whole.iter().filter(|(of, ..)| *of == run).map(|(_, _, status)| *status).collect();
    assert_eq!((whole.len(), of_second), (5, vec!["completed", "refused", "completed"]));
    let last = world.facts().len();
    let is_end = |at: &usize| store.commit_at(Position::new(*at as u64)).unwrap().is_some();
    let ends: Vec<usize> = (between + 1..last).filter(is_end).collect();
    assert!(ends.len() > 15, "{ends:?}");
    for end in ends {
        let log = copy(end, &world.log, Arc::new(SegmentStore::in_memory())).await;
        let data = tempfile::tempdir().unwrap();
        let runtime = setup(log.clone()).runtime(&data);
        runtime.recover(Recovery::Resume).await.unwrap();
        let status = world.done(runtime.wait(&world.thread, &run)).await.unwrap();
        assert_eq!((status, by_run(&log)), (RunStatus::Success, whole.clone()), "cut after {end}");
    }
}
