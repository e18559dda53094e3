use super::*;
use crate::{
    event::{CapAction, CapAxis, DelegationRequested, Scope, StepBody, SubagentCapped, SubagentMessage},
    ids::{DelegationId, RunId, SubagentType, ThreadId, ToolCallId, UserId},
    message::{AssistantMessage, Message, ToolArgs, ToolCall},
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

#[test]
fn a_delegation_that_was_never_asked_for_has_no_card() {
    assert_eq!(card(vec![step(1, "a")]), None);
}
