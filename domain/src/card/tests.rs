use super::*;
use crate::{
    event::{
        CapAction, CapAxis, DelegationAdmitted, DelegationRequested, EndStatus, Scope, StepBody,
        SubagentCapped, SubagentEnded, SubagentMessage,
    },
    ids::{DelegationId, RunId, SubagentType, ThreadId, ToolCallId, UserId},
    ledger::LedgerStatus,
    message::{AssistantMessage, Message, ToolArgs, ToolCall},
    receipt::ReceiptOutcome,
    usage::Usage,
};

fn task_id() -> ToolCallId {
    ToolCallId::new("call_1").unwrap()
}

fn logged(seq: u64, event: Event) -> Logged {
    Logged {
        position: seq,
        seq,
        thread_id: ThreadId::new("t").unwrap(),
        owner: UserId::unowned(),
        scope: Scope {
            run_id: Some(RunId::new("r").unwrap()),
            task_id: Some(task_id()),
            delegation_id: Some(DelegationId::from_uuid(uuid::Uuid::from_u128(1))),
        },
        recorded_at: Timestamp::UNIX_EPOCH,
        labels: None,
        event,
    }
}

fn requested() -> Event {
    Event::Delegation(DelegationEvent::Requested(DelegationRequested {
        task_id: task_id(),
        description: "d".into(),
        prompt: "look around".into(),
        subagent_type: SubagentType::new("bash").unwrap(),
        model_name: "m".into(),
        max_turns: 60,
        timeout_seconds: 1,
        tools: Vec::new(),
        receipts_enabled: true,
        acceptance_criteria: Vec::new(),
        token_budget: None,
    }))
}

fn step(message_index: u32, text: &str) -> Event {
    let body = StepBody::Tool { tool_name: "ls".into() };
    Event::Subagent(SubagentEvent::Step(Step {
        task_id: task_id(),
        message_index,
        text: text.into(),
        truncated: false,
        body,
    }))
}

fn replied(tool: &str) -> Event {
    let call = ToolCall { id: "x".into(), name: tool.into(), args: ToolArgs::parse("") };
    let message =
        Message::Assistant(AssistantMessage { tool_calls: vec![call], ..AssistantMessage::default() });
    Event::Subagent(SubagentEvent::Message(SubagentMessage { task_id: task_id(), message }))
}

fn capped() -> Event {
    let cap = Cap { axis: CapAxis::Turns, action: CapAction::Stop, used: 3, budget: 3 };
    Event::Subagent(SubagentEvent::Capped(SubagentCapped { task_id: task_id(), cap }))
}

fn replied_with(usage: Option<Usage>) -> Event {
    let message = Message::Assistant(AssistantMessage { usage, ..AssistantMessage::default() });
    Event::Subagent(SubagentEvent::Message(SubagentMessage { task_id: task_id(), message }))
}

fn ended(status: EndStatus, text: &str, usage: Option<Usage>) -> Event {
    Event::Subagent(SubagentEvent::Ended(SubagentEnded {
        task_id: task_id(),
        status,
        model_name: None,
        usage,
        result: (status == EndStatus::Completed).then(|| text.to_owned()),
        result_truncated: false,
        result_sha256: None,
        error: (status != EndStatus::Completed).then(|| text.to_owned()),
        error_truncated: false,
        stop_reason: None,
        cancel_reason: None,
        citations: None,
        turns: 1,
        steps: 0,
        receipts: 0,
    }))
}

fn receipt(number: u32) -> Event {
    Event::Subagent(SubagentEvent::Receipt(Receipt {
        task_id: task_id(),
        id: ReceiptId::numbered(number),
        tool_name: "ls".into(),
        tool_call_id: "x".into(),
        args_sha256: "a".into(),
        output_sha256: "b".into(),
        output_bytes: 1,
        outcome: ReceiptOutcome::Ok,
        started_at: Timestamp::UNIX_EPOCH,
        duration_ms: 1,
    }))
}

fn admitted() -> Event {
    Event::Delegation(DelegationEvent::Admitted(DelegationAdmitted { task_id: task_id(), waited_ms: 0 }))
}

fn card(events: Vec<Event>) -> Option<Card> {
    let events: Vec<_> = (1..).zip(events).map(|(seq, event)| logged(seq, event)).collect();
    Card::of_events(&events)
}

#[test]
fn a_card_shows_what_was_asked_and_done() {
    let card = card(vec![requested(), replied("ls"), step(1, "a"), step(2, "b"), replied("grep"), capped()])
        .unwrap();
    assert_eq!((card.head.prompt.as_str(), card.head.max_turns, card.head.turns), ("look around", 60, 2));
    assert_eq!(card.head.last_tool.as_deref(), Some("grep"));
    assert_eq!(card.steps.iter().map(|step| step.message_index).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(card.caps.iter().map(|(_, _, seq)| *seq).collect::<Vec<_>>(), [6]);
    assert_eq!(card.head.entry.last_seq, 6);
}

#[test]
fn steps_merge_by_index_and_the_later_one_wins() {
    let card = card(vec![requested(), step(2, "b"), step(1, "a"), step(2, "B")]).unwrap();
    let texts: Vec<_> = card.steps.iter().map(|step| step.text.as_str()).collect();
    assert_eq!(texts, ["a", "B"]);
}

// Facts §12 line 123, and §11.2.
#[test]
fn a_smaller_usage_at_the_end_came_late() {
    let (one, all, late) = (Usage::new(100, 20), Usage::new(200, 40), Usage::new(100, 20));
    let usage = |end| {
        let events = vec![requested(), replied_with(Some(one)), replied_with(Some(one)), end];
        card(events).unwrap().head.entry.usage
    };
    assert_eq!(usage(ended(EndStatus::Completed, "done", Some(late))), Some(all));
    assert_eq!(usage(ended(EndStatus::Completed, "done", None)), Some(all));
    assert_eq!(usage(ended(EndStatus::Completed, "done", Some(all))), Some(all));
}

// Facts §12 line 124: what ended stays as it ended, and the first of two endings stands.
#[test]
fn nothing_takes_an_ending_back() {
    let first = [requested(), admitted(), ended(EndStatus::Completed, "found", None)];
    let later = [admitted(), step(1, "late"), ended(EndStatus::Failed, "late", None)];
    let done = card(first.iter().cloned().chain(later).collect()).unwrap();
    assert_eq!(done.head.entry.status, LedgerStatus::Completed);
    assert_eq!((done.head.result.as_deref(), done.head.entry.error.as_deref()), (Some("found"), None));
    assert_eq!(done.steps.len(), 1, "a late step is no ending");
    // Nor does a failure become a success here: it was the end (decided otherwise than facts §11.2).
    let events = vec![
        requested(),
        ended(EndStatus::Failed, "broke", None),
        ended(EndStatus::Completed, "found", None),
    ];
    let failed = card(events).unwrap();
    assert_eq!((failed.head.entry.status, failed.head.result), (LedgerStatus::Failed, None));
}

// Facts §12 lines 121 and 122: a card's state comes from statuses, and never from texts.
#[test]
fn a_text_that_sounds_like_success_is_none() {
    let failed =
        card(vec![requested(), ended(EndStatus::Failed, "Task Succeeded. Result: ok", None)]).unwrap();
    assert_eq!((failed.head.entry.status, failed.head.result), (LedgerStatus::Failed, None));
    let working = card(vec![requested(), admitted(), step(1, "Task Succeeded. Result: ok")]).unwrap();
    assert_eq!(working.head.entry.status, LedgerStatus::InProgress);
}

// Field report 25: how far it got is known of every delegation, however it ended.
#[test]
fn the_head_counts_what_the_card_lists() {
    let events = vec![
        requested(),
        step(1, "a"),
        step(2, "b"),
        receipt(1),
        receipt(2),
        capped(),
        ended(EndStatus::Failed, "broke", None),
    ];
    let card = card(events).unwrap();
    let newest = card.receipts.last().map(|(receipt, _)| receipt.id);
    assert_eq!((card.head.steps, card.head.caps), (2, 1));
    assert_eq!((card.steps.len(), card.caps.len(), card.head.last_receipt), (2, 1, newest));
}

#[test]
fn a_delegation_that_was_never_asked_for_has_no_card() {
    assert_eq!(card(vec![step(1, "a")]), None);
}
