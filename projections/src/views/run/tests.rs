use domain::{
    event::{RunEnded, RunFailed, RunStatusChanged, Scope, SubagentMessage},
    ids::{ToolCallId, UserId},
    limits::STEP_TEXT_CHARS_MAX,
    message::{AssistantMessage, Message},
};

use super::*;
use domain::event::{ModelEvent, SubagentEvent};

fn run_id() -> RunId {
    RunId::new("r1").unwrap()
}

fn at(seq: u64) -> Timestamp {
    Timestamp::from_second(i64::try_from(seq).unwrap()).unwrap()
}

fn logged(seq: u64, event: Event) -> Logged {
    Logged {
        position: seq,
        seq,
        thread_id: ThreadId::new("t").unwrap(),
        owner: UserId::unowned(),
        scope: Scope { run_id: Some(run_id()), task_id: None, delegation_id: None },
        recorded_at: at(seq),
        labels: None,
        event,
    }
}

fn start() -> Event {
    Event::Run(RunEvent::Started(RunSettings {
        run_id: run_id(),
        assistant_id: "lead".into(),
        model_name: "offline".into(),
        subagent_enabled: true,
        max_concurrent_subagents: 3,
        max_total_subagents: 6,
        allowed_subagents: None,
        max_turns: 100,
        tools: Vec::new(),
        system_prompt: "a long text".into(),
        subagents: None,
        managed_subagents: None,
        summarization_enabled: false,
        token_budget: None,
        loop_detection: None,
        tool_progress: None,
        model_retries_max: None,
        checks_last_words: true,
        summarization: None,
        metadata: Map::new(),
    }))
}

fn status(status: RunStatus, error: Option<&str>) -> Event {
    let stop_reason = status.is_terminal().then_some(RunStopReason::LoopCapped);
    Event::Run(RunEvent::StatusChanged(RunStatusChanged {
        status,
        stop_reason,
        error: error.map(Into::into),
    }))
}

fn failed(error: &str) -> Event {
    Event::Run(RunEvent::Failed(RunFailed { error: error.into() }))
}

fn ended(result: &str) -> Event {
    Event::Run(RunEvent::Ended(RunEnded {
        result: result.into(),
        result_truncated: false,
        usage: None,
        turns: 0,
        delegations: 0,
    }))
}

fn reply(usage: Option<Usage>) -> Message {
    Message::Assistant(AssistantMessage { usage, ..AssistantMessage::default() })
}

fn lead(usage: Option<Usage>) -> Event {
    Event::Model(ModelEvent::AiResponse(reply(usage)))
}

fn subagent(usage: Option<Usage>) -> Event {
    let task_id = ToolCallId::new("call_1").unwrap();
    Event::Subagent(SubagentEvent::Message(SubagentMessage { task_id, message: reply(usage) }))
}

fn fold(events: &[Event]) -> Option<RunRow> {
    (1..).zip(events).fold(None, |row, (seq, event)| RunRow::fold(row, &logged(seq, event.clone())))
}

/// Status, error, result, and the seconds at which it began and ended.
#[track_caller]
fn check(
    events: &[Event],
    expected: (RunStatus, Option<&str>, Option<&str>, Option<u64>, Option<u64>),
) -> RunRow {
    let row = fold(events).expect("there is a run");
    let (status, error, result, began, finished) = expected;
    assert_eq!((row.status, row.error.as_deref(), row.result.as_deref()), (status, error, result));
    assert_eq!((row.started_at, row.ended_at), (began.map(at), finished.map(at)));
    assert_eq!((row.first_seq, row.last_seq), (1, events.len() as u64));
    assert_eq!((row.created_at, row.updated_at), (at(1), at(events.len() as u64)));
    row
}

use RunStatus as S;

#[test]
fn a_run_follows_its_status() {
    let pending = status(S::Pending, None);
    let running = status(S::Running, None);
    check(&[start()], (S::Pending, None, None, None, None));
    check(&[start(), pending.clone(), running.clone()], (S::Running, None, None, Some(3), None));
    check(
        &[start(), pending.clone(), running.clone(), ended("done"), status(S::Success, None)],
        (S::Success, None, Some("done"), Some(3), Some(5)),
    );
    check(
        &[start(), running.clone(), failed("gone"), status(S::Error, Some("gone"))],
        (S::Error, Some("gone"), None, Some(2), Some(4)),
    );
    check(&[start(), status(S::Interrupted, None)], (S::Interrupted, None, None, None, Some(2)));
    check(&[start(), running.clone(), pending, running], (S::Running, None, None, Some(2), None));
}

#[test]
fn the_first_ending_stands() {
    for first in [S::Success, S::Error, S::Interrupted, S::Timeout] {
        for late in [S::Pending, S::Running, S::Success, S::Error, S::Interrupted, S::Timeout] {
            let events =
                [start(), status(first, None), ended("late"), failed("late"), status(late, Some("late"))];
            let row = check(&events, (first, None, None, None, Some(2)));
            assert_eq!(row.stop_reason, Some(RunStopReason::LoopCapped));
        }
    }
}

#[test]
fn usage_is_counted_by_who_spent_it_and_stays_unknown_without_a_report() {
    let events = [start(), lead(None), subagent(None)];
    let row = fold(&events).unwrap();
    assert_eq!((row.usage, row.turns), (RunUsage::default(), 1));
    let some = |input, output| Some(Usage::new(input, output));
    let late = [
        start(),
        lead(some(1, 2)),
        subagent(some(10, 20)),
        status(S::Interrupted, None),
        subagent(some(100, 200)),
    ];
    let row = fold(&late).unwrap();
    let usage = RunUsage { total: some(111, 222), lead: some(1, 2), subagents: some(110, 220) };
    assert_eq!((row.usage, row.turns), (usage, 1));
}

#[test]
fn texts_are_bounded() {
    let long = "é".repeat(STEP_TEXT_CHARS_MAX + 1);
    let row = fold(&[start(), ended(&long), failed(&long), status(S::Error, Some(&long))]).unwrap();
    for text in [row.result.unwrap(), row.error.unwrap()] {
        assert_eq!(text.chars().count(), STEP_TEXT_CHARS_MAX);
    }
    assert!(row.result_truncated);
}

#[test]
fn only_its_own_start_makes_a_run() {
    assert_eq!(fold(&[status(S::Running, None), lead(None), ended("x")]), None);
    let mut foreign = logged(1, start());
    foreign.scope.run_id = RunId::new("r2").ok();
    assert_eq!(RunRow::fold(None, &foreign), None);
    assert!(RunRow::check(&foreign).is_err() && RunRow::check(&logged(1, start())).is_ok());
    assert_eq!((started_run(&foreign), started_run(&logged(1, start()))), (None, Some(&run_id())));
    let again = fold(&[start(), status(S::Running, None), start()]).unwrap();
    assert_eq!((again.status, again.first_seq, again.last_seq), (S::Running, 1, 3));
}
