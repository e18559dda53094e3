use super::*;
use crate::{
    event::{CancelReason, Cap, CapAction, CapAxis, DelegationDelivered, DelegationRefused, ToolStarted},
    ids::{SubagentType, ToolCallId},
    message::{AssistantMessage, Message, ToolMessage},
    receipt::ReceiptOutcome,
    status_contract::SubagentStatus,
    tool_spec::SideEffect,
    usage::Usage,
};

use DelegationCommand as C;
use DelegationRejection as R;

fn task_id() -> ToolCallId {
    ToolCallId::new("call_1").unwrap()
}

fn request() -> C {
    C::Request(Box::new(DelegationRequested {
        task_id: task_id(),
        description: "look".into(),
        prompt: "look around".into(),
        subagent_type: SubagentType::new("general-purpose").unwrap(),
        model_name: "offline".into(),
        max_turns: 150,
        timeout_seconds: 1_800,
        tools: vec!["ls".into()],
        receipts_enabled: true,
        acceptance_criteria: Vec::new(),
        token_budget: None,
    }))
}

fn refuse() -> C {
    C::Refuse(DelegationRefused {
        task_id: task_id(),
        description: String::new(),
        subagent_type: "x".into(),
        reason: RefusalReason::QueueTimeout,
        message: "the queue was too long".into(),
    })
}

fn deliver() -> C {
    let status = SubagentStatus::Completed;
    C::Deliver(DelegationDelivered {
        task_id: task_id(),
        status,
        result_brief: None,
        result_sha256: None,
        error: None,
    })
}

fn said(text: &str, usage: Option<Usage>) -> C {
    let message = AssistantMessage { content: text.into(), usage, ..AssistantMessage::default() };
    C::Record { message: Box::new(Message::Assistant(message)), receipt: None }
}

fn returned() -> C {
    let message = ToolMessage { tool_call_id: "x".into(), name: "ls".into(), ..ToolMessage::default() };
    let receipt = ReceiptDraft {
        tool_name: "ls".into(),
        tool_call_id: "x".into(),
        args_sha256: String::new(),
        output_sha256: String::new(),
        output_bytes: 0,
        outcome: ReceiptOutcome::Ok,
        started_at: jiff::Timestamp::UNIX_EPOCH,
        duration_ms: 1,
    };
    C::Record { message: Box::new(Message::Tool(message)), receipt: Some(Box::new(receipt)) }
}

fn cap() -> C {
    C::Cap(Cap { axis: CapAxis::Turns, action: CapAction::Stop, used: 1, budget: 1 })
}

fn complete() -> C {
    C::End(DelegationEnding::Completed { result: "done".into(), stop_reason: None })
}

fn cancel() -> C {
    C::End(DelegationEnding::Cancelled(CancelReason::CancelledByUser))
}

fn time_out() -> C {
    C::End(DelegationEnding::TimedOut { error: "Execution timed out after 1 seconds".into() })
}

fn given(commands: &[C]) -> Delegation {
    let mut delegation = Delegation::default();
    for command in commands {
        for event in delegation.decide(command.clone()).expect("the history holds") {
            delegation.evolve(&event);
        }
    }
    delegation
}

#[track_caller]
fn check(history: &[C], when: C, then: Result<&[&str], R>) {
    let decided = given(history).decide(when);
    let types = decided.as_ref().map(|events| events.iter().map(Event::event_type).collect::<Vec<_>>());
    assert_eq!(types.as_deref().map_err(|rejection| (*rejection).clone()), then);
}

const ADMIT: C = C::Admit { waited_ms: 0 };
const QUEUE: C = C::Queue { place: 1 };
const START: &[&str] = &["delegation.admitted", "subagent.start"];
const END: &[&str] = &["subagent.end"];

#[test]
fn an_absent_one_can_only_be_asked_for() {
    check(&[], request(), Ok(&["delegation.requested"]));
    check(&[], refuse(), Ok(&["delegation.refused"]));
    for command in [QUEUE, ADMIT, said("", None), cap(), complete(), deliver()] {
        check(&[], command, Err(R::NotRequested));
    }
}

#[test]
fn a_waiting_one_gets_a_slot_or_none() {
    check(&[request()], QUEUE, Ok(&["delegation.queued"]));
    check(&[request()], ADMIT, Ok(START));
    check(&[request(), QUEUE], ADMIT, Ok(START));
    check(&[request(), QUEUE], QUEUE, Err(R::AlreadyQueued));
    check(&[request(), QUEUE], refuse(), Ok(&["delegation.refused"]));
    check(&[request(), QUEUE], cancel(), Ok(END));
    check(&[request()], request(), Err(R::AlreadyRequested));
    check(&[request()], said("", None), Err(R::NotRunning));
    check(&[request()], cap(), Err(R::NotRunning));
    check(&[request()], deliver(), Err(R::NotEnded));
}

#[test]
fn a_running_one_records_until_it_ends() {
    let running = [request(), ADMIT];
    check(&running, said("x", None), Ok(&["subagent.message", "subagent.step"]));
    check(&running, returned(), Ok(&["subagent.message", "subagent.step", "subagent.receipt"]));
    let human = C::Record { message: Box::new(Message::human("go")), receipt: None };
    check(&running, human, Ok(&["subagent.message"]));
    check(&running, cap(), Ok(&["subagent.cap"]));
    check(&running, complete(), Ok(END));
    check(&running, request(), Err(R::AlreadyRequested));
    for command in [QUEUE, ADMIT, refuse()] {
        check(&running, command, Err(R::AlreadyRunning));
    }
    check(&running, deliver(), Err(R::NotEnded));
}

// Facts §12 lines 43 and 44, and field reports 14 and 15: the first ending wins, and nothing of
// the work comes after it.
#[test]
fn there_is_one_ending() {
    for (first, status) in [
        (complete(), EndStatus::Completed),
        (cancel(), EndStatus::Cancelled),
        (time_out(), EndStatus::TimedOut),
    ] {
        let ended = [request(), ADMIT, first];
        for late in
            [complete(), cancel(), time_out(), said("late", None), returned(), cap(), QUEUE, ADMIT, refuse()]
        {
            check(&ended, late, Err(R::AlreadyEnded(status)));
        }
        check(&ended, request(), Err(R::AlreadyRequested));
        check(&ended, deliver(), Ok(&["delegation.delivered"]));
    }
    check(&[request(), ADMIT, complete(), deliver()], deliver(), Err(R::AlreadyDelivered));
}

#[test]
fn a_refused_one_stays_refused() {
    for command in [request(), refuse(), QUEUE, ADMIT, said("", None), cap(), complete(), deliver()] {
        check(&[request(), refuse()], command, Err(R::AlreadyRefused(RefusalReason::QueueTimeout)));
    }
}

// Facts §12 lines 42, 63 and 64.
#[test]
fn the_end_counts_what_was_done() {
    let work = [
        request(),
        ADMIT,
        said("a", Some(Usage::new(100, 50))),
        returned(),
        returned(),
        said("b", Some(Usage::new(200, 80))),
    ];
    let events = given(&work).decide(cancel()).unwrap();
    let [Event::Subagent(SubagentEvent::Ended(end))] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((end.turns, end.steps, end.receipts, end.usage), (2, 4, 2, Some(Usage::new(300, 130))));
    assert_eq!((end.status, end.error.as_deref()), (EndStatus::Cancelled, Some("Cancelled by user")));
    let nothing = given(&[request(), ADMIT]).decide(complete()).unwrap();
    let [Event::Subagent(SubagentEvent::Ended(end))] = nothing.as_slice() else { panic!("{nothing:?}") };
    assert_eq!((end.usage, end.result.as_deref()), (None, Some("done")));
    assert_eq!(end.result_sha256.as_deref(), Some(crate::digest::sha256_hex(b"done").as_str()));
}

// Nothing is silent: a call that was stopped while it ran leaves a receipt.
#[test]
fn a_stopped_call_is_accounted_for_before_the_end() {
    let started = |id: &str| {
        Event::Tool(ToolEvent::Started(ToolStarted {
            tool_call_id: ToolCallId::new(id).unwrap(),
            tool_name: "bash".into(),
            args_sha256: "a".repeat(64),
            side_effect: SideEffect::Effectful,
            started_at: jiff::Timestamp::UNIX_EPOCH,
        }))
    };
    let mut delegation = given(&[request(), ADMIT, said("", None)]);
    delegation.evolve(&started("x"));
    for event in delegation.decide(returned()).unwrap() {
        delegation.evolve(&event);
    }
    delegation.evolve(&started("y"));
    delegation.evolve(&started("y"));
    let events = delegation.decide(time_out()).unwrap();
    let types: Vec<_> = events.iter().map(Event::event_type).collect();
    assert_eq!(types, ["subagent.message", "subagent.step", "subagent.receipt", "subagent.end"]);
    let Event::Subagent(SubagentEvent::Receipt(receipt)) = &events[2] else { panic!("{events:?}") };
    assert_eq!((receipt.id.number(), receipt.outcome), (2, ReceiptOutcome::Unknown));
    let Event::Subagent(SubagentEvent::Ended(end)) = &events[3] else { panic!("{events:?}") };
    assert_eq!((end.steps, end.receipts), (3, 2));
}
