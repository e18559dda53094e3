//! One limit for all the model calls of a run that are tried again: its lead's and its subagents'.

use domain::{
    event::{Cap, CapAction, CapAxis, EndStatus, Event, Logged, ModelEvent, RunEvent, RunStatus},
    message::AssistantMessage,
};
use serde_json::json;

use super::start::cut_everywhere;
use crate::{
    config::{Config, Recovery},
    models::ModelErrorKind,
    testing::{Script, Setup, Turn, calling, delegating, facts_of, saying, world::check_ended_once},
};

fn flaky(reply: AssistantMessage) -> Turn {
    Turn::Flaky(ModelErrorKind::Transient, 1, reply)
}

fn ls(at: usize) -> AssistantMessage {
    calling(&[("x", "ls", json!({"path": format!("folder-{at}")}))])
}

/// Every call of the lead and of its subagent fails once: seven retries, if they may.
fn script() -> Script {
    let lead = [flaky(delegating(&[("1", "task")])), flaky(ls(0)), flaky(saying("done"))];
    let sub = [flaky(ls(1)), flaky(ls(2)), flaky(ls(3)), flaky(saying("found"))];
    Script::new().lead("go", lead).sub("task", sub)
}

fn at_most(retries: u32) -> impl Fn(&mut Config) {
    move |config| config.llm_call.retry_max_per_run = retries
}

/// How many calls were tried again, and what is recorded of there being no more.
fn retries(facts: &[Logged]) -> (usize, Vec<Cap>) {
    let is_retry = |fact: &&Logged| matches!(fact.event, Event::Model(ModelEvent::Retried(_)));
    let cap = |fact: &Logged| match &fact.event {
        Event::Run(RunEvent::Capped(cap)) if fact.scope.delegation_id.is_none() => Some(cap.clone()),
        _ => None,
    };
    (facts.iter().filter(is_retry).count(), facts.iter().filter_map(cap).collect())
}

fn errors(facts: &[Logged]) -> Vec<(String, u32)> {
    let failed = |fact: &Logged| match &fact.event {
        Event::Model(ModelEvent::Failed(failed)) => Some((failed.error.clone(), failed.attempts)),
        _ => None,
    };
    facts.iter().filter_map(failed).collect()
}

fn cap(budget: u64) -> Cap {
    Cap { axis: CapAxis::Retries, action: CapAction::Stop, used: budget, budget }
}

#[tokio::test]
async fn below_the_limit_everything_is_tried_again() {
    let world = Setup::new(script()).config(at_most(7)).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    assert_eq!(retries(&world.facts()), (7, Vec::new()));
    // Each run has its own.
    let world =
        Setup::new(Script::new().lead("go", [flaky(saying("done"))])).config(at_most(0)).build().await;
    assert_eq!(world.run("go").await, RunStatus::Error);
    assert_eq!(retries(&world.facts()), (0, vec![cap(0)]));
}

// The lead used one and its subagent the other two; what fails then is a clear failure, told once.
#[tokio::test]
async fn lead_and_subagents_share_the_limit_and_its_end_is_a_clear_failure() {
    let world = Setup::new(script()).config(at_most(3)).build().await;
    assert_eq!(world.run("go").await, RunStatus::Error);
    let facts = world.facts();
    assert_eq!(retries(&facts), (3, vec![cap(3)]));
    let ends = world.ends();
    assert_eq!((ends.len(), ends[0].status), (1, EndStatus::Failed));
    let failed = errors(&facts);
    assert_eq!(failed.len(), 2, "the subagent's call and the lead's: {failed:?}");
    for (error, attempts) in &failed {
        assert!(error.contains("no retries of model calls left (llm_call.retry_max_per_run)"), "{error}");
        assert_eq!(*attempts, 1);
    }
    let error = world.last_status().error.unwrap();
    assert!(error.contains("no retries of model calls left"), "{error}");
    world.check_ended_once();
}

#[tokio::test]
async fn a_resumed_run_has_the_same_count() {
    let (expected, cuts) = cut_everywhere(Setup::new(script()).config(at_most(3))).await;
    assert!(cuts.len() > 3, "{}", cuts.len());
    for log in cuts {
        let before = facts_of(&log);
        let data = tempfile::tempdir().unwrap();
        // What was frozen when the run started counts.
        let runtime = Setup::new(script()).log(log.clone()).config(at_most(1_000)).runtime(&data);
        for (thread, run) in runtime.recover(Recovery::Resume).await.unwrap() {
            runtime.wait(&thread, &run).await.unwrap();
        }
        let after = facts_of(&log);
        check_ended_once(&after);
        // A call in flight is asked again from its first attempt, so that where it ends may differ;
        // that there are three retries in all may not.
        assert_eq!(retries(&after), retries(&expected), "cut after {}", before.len());
    }
}
