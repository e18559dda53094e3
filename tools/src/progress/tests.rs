use domain::{
    event::{RunStatusChanged, Scope, SubagentEvent, SubagentMessage},
    ids::{ThreadId, ToolCallId, UserId},
    message::{AssistantMessage, ToolArgs, ToolCall},
};

use serde_json::json;

use super::{lines, *};
use crate::screen::Screen;

fn run_id() -> RunId {
    RunId::new("r").unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn logged(seq: u64, delegation: Option<u128>, event: Event) -> Logged {
    let task = |number| ToolCallId::new(format!("call_{number}")).unwrap();
    let id = |number| format!("{number:032x}").parse::<DelegationId>().unwrap();
    Logged {
        position: seq,
        seq,
        thread_id: ThreadId::new("t").unwrap(),
        owner: UserId::unowned(),
        scope: Scope {
            run_id: Some(run_id()),
            task_id: delegation.map(task),
            delegation_id: delegation.map(id),
        },
        recorded_at: at(seq as i64),
        labels: None,
        event,
    }
}

pub(super) fn status(seq: u64, status: RunStatus) -> Logged {
    let changed = RunStatusChanged { status, stop_reason: None, error: None };
    logged(seq, None, Event::Run(RunEvent::StatusChanged(changed)))
}

fn requested(seq: u64, number: u128, description: &str) -> Logged {
    let content = json!({
        "task_id": format!("call_{number}"), "description": description, "prompt": "p",
        "subagent_type": "general-purpose", "model_name": "offline", "max_turns": 8, "timeout_seconds": 60,
        "tools": [], "receipts_enabled": true,
    });
    logged(seq, Some(number), Event::parse("delegation.requested", &content.to_string()).unwrap().unwrap())
}

fn admitted(seq: u64, number: u128) -> Logged {
    let content = json!({"task_id": format!("call_{number}"), "waited_ms": 0});
    logged(seq, Some(number), Event::parse("delegation.admitted", &content.to_string()).unwrap().unwrap())
}

fn reply(text: &str, tool: Option<&str>) -> Message {
    let call = |name: &str| ToolCall { id: "c".into(), name: name.into(), args: ToolArgs::parse("{}") };
    Message::Assistant(AssistantMessage {
        content: text.into(),
        tool_calls: tool.map(call).into_iter().collect(),
        usage: Some(Usage::new(9_000, 3_345)),
        ..AssistantMessage::default()
    })
}

fn said(seq: u64, number: u128, tool: Option<&str>) -> Logged {
    let task_id = ToolCallId::new(format!("call_{number}")).unwrap();
    let message = SubagentMessage { task_id, message: reply("", tool) };
    logged(seq, Some(number), Event::Subagent(SubagentEvent::Message(message)))
}

fn folded(events: &[Logged]) -> Progress {
    let mut progress = Progress::new(run_id());
    for event in events {
        progress.take(event);
    }
    progress
}

fn history() -> Vec<Logged> {
    vec![
        status(1, RunStatus::Running),
        logged(2, None, Event::Model(ModelEvent::AiResponse(reply("I delegate.", Some("task"))))),
        requested(3, 1, "Survey 漢字"),
        requested(4, 2, "Read"),
        admitted(5, 1),
        said(6, 1, Some("read_file")),
    ]
}

#[test]
fn every_delegation_has_a_line() {
    let lines = lines::aligned(Screen::plain(Some(100)), &folded(&history()), at(9));
    insta::assert_snapshot!(lines.join("\n"));
}

fn retried(seq: u64, delegation: Option<u128>) -> Logged {
    let content = json!({
        "caller": if delegation.is_some() { "subagent:general-purpose" } else { "lead_agent" },
        "model_name": "local", "attempt": 1, "max_attempts": 4, "wait_ms": 3_400, "reason": "rate_limit",
        "message": "busy",
    });
    logged(seq, delegation, Event::parse("llm.retry", &content.to_string()).unwrap().unwrap())
}

#[test]
fn who_waits_for_its_model_says_so_until_the_reply() {
    let mut events = history();
    events.extend([retried(7, None), retried(8, Some(1))]);
    let waiting = folded(&events);
    let shown =
        [60, 80, 110].map(|width| lines::aligned(Screen::plain(Some(width)), &waiting, at(9)).join("\n"));
    insta::assert_snapshot!(shown.join("\n\n"));
    let plain = |changed| lines::plain(&waiting, changed, at(9)).unwrap();
    for changed in [Changed::Lead, Changed::Delegation(0)] {
        assert!(plain(changed).ends_with("waiting 4 s to ask again (rate_limit)"), "{}", plain(changed));
    }
    events.push(logged(9, None, Event::Model(ModelEvent::AiResponse(reply("Go on.", None)))));
    events.push(said(10, 1, Some("ls")));
    let replied = folded(&events);
    assert_eq!((replied.lead().wait.as_ref(), replied.wait(0)), (None, None));
}

#[test]
fn a_pipe_gets_the_changed_line_only() {
    let mut progress = Progress::new(run_id());
    let said: Vec<String> = history()
        .iter()
        .filter_map(|event| {
            let changed = progress.take(event);
            lines::plain(&progress, changed, at(9))
        })
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn the_first_end_counts_and_the_last_words_are_kept() {
    let mut events = history();
    events.push(logged(7, None, Event::Model(ModelEvent::AiResponse(reply("All done.", None)))));
    events.push(status(8, RunStatus::Success));
    events.push(status(9, RunStatus::Error));
    let progress = folded(&events);
    assert_eq!(progress.answer(), Some("All done."));
    assert_eq!(progress.ending(), Some(&Ending { status: RunStatus::Success, error: None }));
}

#[test]
fn events_of_other_runs_change_nothing() {
    let mut other = status(1, RunStatus::Success);
    other.scope.run_id = Some(RunId::new("other").unwrap());
    let mut progress = Progress::new(run_id());
    assert_eq!(progress.take(&other), Changed::Nothing);
    assert_eq!(progress, Progress::new(run_id()));
}
