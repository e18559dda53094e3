use super::*;
use crate::{decider::replay, ids::RunId, message::AssistantMessage};

fn settings() -> RunSettings {
    RunSettings {
        run_id: RunId::new("r1").unwrap(),
        assistant_id: "lead".into(),
        model_name: "offline".into(),
        subagent_enabled: true,
        max_concurrent_subagents: 3,
        max_total_subagents: 6,
        allowed_subagents: None,
        max_turns: 100,
        tools: vec!["ls".into()],
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
        metadata: serde_json::Map::new(),
    }
}

fn start() -> RunCommand {
    RunCommand::Start { settings: Box::new(settings()), input: vec![Message::human("hi")] }
}

fn end(ending: RunEnding) -> RunCommand {
    RunCommand::End(ending)
}

fn failed(error: &str) -> RunEnding {
    RunEnding::Failed { error: error.into(), stop_reason: None }
}

fn returned(result: &str) -> RunEnding {
    RunEnding::Returned { result: result.into(), stop_reason: None }
}

fn reply(usage: Option<Usage>) -> Event {
    Event::Model(ModelEvent::AiResponse(Message::Assistant(AssistantMessage {
        usage,
        ..AssistantMessage::default()
    })))
}

#[track_caller]
fn check(given: &[RunCommand], when: RunCommand, then: Result<&[&str], RunRejection>) {
    let mut run = Run::default();
    for command in given {
        for event in run.decide(command.clone()).expect("the history holds") {
            run.evolve(&event);
        }
    }
    let decided = run.decide(when);
    let types = decided.as_ref().map(|events| events.iter().map(Event::event_type).collect::<Vec<_>>());
    assert_eq!(types.as_deref().map_err(|rejection| (*rejection).clone()), then);
}

#[test]
fn every_state_answers_every_command() {
    let begun = [start(), RunCommand::Begin];
    let over = [start(), RunCommand::Begin, end(returned("done"))];
    check(&[], start(), Ok(&["run.start", "run.status", "llm.human.input"]));
    check(&[], RunCommand::Begin, Err(RunRejection::NotStarted));
    check(&[], end(failed("x")), Err(RunRejection::NotStarted));
    check(&begun, start(), Err(RunRejection::AlreadyStarted));
    check(&begun[..1], RunCommand::Begin, Ok(&["run.status"]));
    check(&begun, RunCommand::Begin, Err(RunRejection::AlreadyBegun));
    check(&begun[..1], end(RunEnding::Interrupted), Ok(&["run.status"]));
    check(&begun, end(returned("done")), Ok(&["run.end", "run.status"]));
    check(&begun, end(failed("x")), Ok(&["run.error", "run.status"]));
    for late in [start(), RunCommand::Begin, end(failed("late")), end(RunEnding::Interrupted)] {
        check(&over, late, Err(RunRejection::AlreadyEnded(RunStatus::Success)));
    }
}

#[test]
fn the_end_tells_what_was_used() {
    let mut history = Run::default().decide(start()).unwrap();
    history.push(status(RunStatus::Running, None, None));
    history.push(reply(Some(Usage::new(100, 50))));
    history.push(reply(None));
    history.push(reply(Some(Usage::new(200, 80))));
    let run: Run = replay(&history);
    let events = run.decide(end(returned(&"x".repeat(STEP_TEXT_CHARS_MAX + 1)))).unwrap();
    let Some(Event::Run(RunEvent::Ended(ended))) = events.first() else { panic!("{events:?}") };
    assert_eq!((ended.turns, ended.usage), (3, Some(Usage::new(300, 130))));
    assert_eq!((ended.result.len(), ended.result_truncated), (STEP_TEXT_CHARS_MAX, true));
}

fn retry() -> RunCommand {
    RunCommand::Retry(ModelRetried {
        caller: "subagent:bash".into(),
        model_name: "m".into(),
        attempt: 1,
        max_attempts: 3,
        wait_ms: 1,
        reason: "transient".into(),
        message: "oh".into(),
    })
}

fn start_with_retries(max: Option<u32>) -> RunCommand {
    let settings = RunSettings { model_retries_max: max, ..settings() };
    RunCommand::Start { settings: Box::new(settings), input: Vec::new() }
}

#[test]
fn retries_are_counted_over_the_whole_run_and_their_end_is_told_once() {
    let two = start_with_retries(Some(2));
    check(&[], retry(), Err(RunRejection::NotStarted));
    check(&[two.clone(), retry()], retry(), Ok(&["llm.retry"]));
    check(&[two.clone(), retry(), retry()], retry(), Ok(&["run.cap"]));
    check(&[two, retry(), retry(), retry()], retry(), Err(RunRejection::NoRetriesLeft));
    check(&[start_with_retries(Some(0))], retry(), Ok(&["run.cap"]));
    check(&[start_with_retries(None), retry(), retry(), retry()], retry(), Ok(&["llm.retry"]));
    let over = [start(), end(returned("done"))];
    check(&over, retry(), Err(RunRejection::AlreadyEnded(RunStatus::Success)));
}
