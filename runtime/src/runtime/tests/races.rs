//! Endings that race (field report 15): whoever comes first wins, and there is one end each.

use std::{collections::BTreeMap, sync::Arc};

use domain::{
    delegation::{DelegationCommand, DelegationEnding},
    event::{CancelReason, DelegationRequested, RunSettings, RunStatus, Scope},
    ids::{DelegationId, RunId, SubagentType, ThreadId, ToolCallId, UserId},
    limits::EVENT_BODY_BYTES_MAX,
    run::{RunCommand, RunEnding},
};
use eventlog::{EventLog, Options};

use super::{cancel::three_tasks, executor::named};
use crate::{
    SystemClock, SystemIds,
    journal::Journal,
    run_owner::{self, Decision, OwnerHandle, Record, RecordError, RunState},
    testing::{
        Setup, facts_of, saying,
        world::{check_ended_once, request},
    },
};

fn owner(log: &EventLog) -> OwnerHandle {
    let run_id = RunId::new("race").unwrap();
    let journal = Journal {
        log: log.clone(),
        thread_id: ThreadId::new("race").unwrap(),
        owner: UserId::unowned(),
        correlation_id: None,
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds),
    };
    run_owner::spawn(RunState::default(), journal, Scope { run_id: Some(run_id), ..Scope::default() })
}

fn start() -> Decision {
    let settings = RunSettings {
        run_id: RunId::new("race").unwrap(),
        assistant_id: "lead".into(),
        model_name: "m".into(),
        subagent_enabled: true,
        max_concurrent_subagents: 3,
        max_total_subagents: 6,
        allowed_subagents: None,
        max_turns: 9,
        tools: Vec::new(),
        system_prompt: "lead".into(),
        subagents: None,
        managed_subagents: None,
        summarization_enabled: false,
        token_budget: None,
        loop_detection: None,
        tool_progress: None,
        model_retries_max: None,
        checks_last_words: true,
        summarization: None,
        metadata: Default::default(),
    };
    Decision::Run(RunCommand::Start { settings: Box::new(settings), input: Vec::new() })
}

fn requested(task_id: &ToolCallId) -> DelegationCommand {
    DelegationCommand::Request(Box::new(DelegationRequested {
        task_id: task_id.clone(),
        description: "d".into(),
        prompt: "p".into(),
        subagent_type: SubagentType::new("bash").unwrap(),
        model_name: "m".into(),
        max_turns: 9,
        timeout_seconds: 1,
        tools: Vec::new(),
        receipts_enabled: false,
        acceptance_criteria: Vec::new(),
        token_budget: None,
    }))
}

/// A delegation of the run of its own.
fn another(task_id: &ToolCallId) -> Scope {
    Scope {
        run_id: Some(RunId::new("race").unwrap()),
        task_id: Some(task_id.clone()),
        delegation_id: Some(DelegationId::from_uuid(uuid::Uuid::now_v7())),
    }
}

async fn decide(owner: &OwnerHandle, decision: Decision) -> Result<(), RecordError> {
    owner.record(Record { decision, facts: Vec::new() }).await.map(drop)
}

// Field report 15, and facts §12 lines 43 and 44: three endings race, a thousand times; one wins,
// the others are refused, and the owner goes on answering.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_races_have_one_winner_each() {
    let log = EventLog::in_memory(Options::default());
    let owner = owner(&log);
    decide(&owner, start()).await.unwrap();
    let mut winners: BTreeMap<usize, usize> = BTreeMap::new();
    for round in 0..1_000 {
        let task_id = ToolCallId::new("call_1").unwrap();
        let scope = another(&task_id);
        let of = |command| Decision::Delegation(scope.clone(), Box::new(command));
        decide(&owner, of(requested(&task_id))).await.unwrap();
        decide(&owner, of(DelegationCommand::Admit { waited_ms: 0 })).await.unwrap();
        let mut endings = vec![
            (0, DelegationEnding::Cancelled(CancelReason::CancelledByUser)),
            (1, DelegationEnding::TimedOut { error: "late".into() }),
            (2, DelegationEnding::Completed { result: "r".into(), stop_reason: None }),
        ];
        endings.rotate_left(round % 3);
        let race = endings.into_iter().map(|(who, ending)| {
            let (owner, decision) = (owner.clone(), of(DelegationCommand::End(ending)));
            tokio::spawn(async move { (who, decide(&owner, decision).await) })
        });
        for racer in race.collect::<Vec<_>>() {
            match racer.await.unwrap() {
                (who, Ok(())) => *winners.entry(who).or_default() += 1,
                (_, Err(error)) => assert!(matches!(error, RecordError::Delegation(_)), "{error}"),
            }
        }
    }
    assert_eq!(winners.values().sum::<usize>(), 1_000);
    decide(&owner, Decision::Run(RunCommand::End(RunEnding::Interrupted))).await.unwrap();
    assert!(matches!(decide(&owner, start()).await, Err(RecordError::Run(_))));
    check_ended_once(&facts_of(&log));
}

// What waits together is recorded together, and what the log does not take refuses nobody else.
#[tokio::test]
async fn one_that_cannot_be_recorded_refuses_none_of_those_that_ask_beside_it() {
    let log = EventLog::in_memory(Options::default());
    let owner = owner(&log);
    decide(&owner, start()).await.unwrap();
    let task_id = ToolCallId::new("call_1").unwrap();
    let scopes = [another(&task_id), another(&task_id), another(&task_id)];
    let of = |scope: &Scope, command| Decision::Delegation(scope.clone(), Box::new(command));
    let request = |place: usize| {
        let DelegationCommand::Request(mut requested) = requested(&task_id) else { unreachable!() };
        if place == 1 {
            requested.prompt = "x".repeat(EVENT_BODY_BYTES_MAX + 1);
        }
        decide(&owner, of(&scopes[place], DelegationCommand::Request(requested)))
    };
    // All three are in the inbox before the owner looks into it.
    let (first, large, last) = tokio::join!(request(0), request(1), request(2));
    first.unwrap();
    assert!(matches!(large, Err(RecordError::Journal(_))), "{large:?}");
    last.unwrap();
    let admit = |place: usize| decide(&owner, of(&scopes[place], DelegationCommand::Admit { waited_ms: 0 }));
    let (first, large, last) = tokio::join!(admit(0), admit(1), admit(2));
    first.unwrap();
    assert!(matches!(large, Err(RecordError::Delegation(_))), "{large:?}");
    last.unwrap();
    let places: Vec<_> = facts_of(&log).iter().filter_map(|fact| fact.scope.delegation_id).collect();
    let known = [0, 2, 0, 0, 2, 2].map(|place: usize| scopes[place].delegation_id.unwrap());
    assert_eq!(places, known, "each has its own, in the order in which it was asked for");
}

// Field report 15, with whole runs: a cancel at any moment leaves one end each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_any_moment_leaves_one_end_each() {
    let script =
        three_tasks().sub("task-a", [saying("a")]).sub("task-b", [saying("b")]).sub("task-c", [saying("c")]);
    let world = Setup::new(script).build().await;
    for round in 0..60 {
        let thread = world.runtime.create_thread(Default::default()).await.unwrap();
        let before = world.log.head();
        let run = world.runtime.start_run(&thread, request("go")).await.unwrap();
        // A whole run records more than thirty events.
        let moment = before.get() + round % 30;
        world.until("the moment", |world| world.log.head().get() >= moment).await;
        match round % 2 {
            0 => drop(world.runtime.cancel_run(&thread, &run).await),
            _ => drop(world.runtime.cancel_delegation(&thread, &run, &named("2")).await),
        }
        let status = world.done(world.runtime.wait(&thread, &run)).await.unwrap();
        assert!(matches!(status, RunStatus::Interrupted | RunStatus::Success), "{status:?}");
    }
    world.check_ended_once();
    assert!(world.ledger().iter().all(|entry| entry.status.is_terminal()));
    world.until_idle().await;
}
