use super::*;
use crate::{
    event::{
        CancelReason, DelegationAdmitted, DelegationDelivered, DelegationQueued, DelegationRefused,
        DelegationRequested, RefusalReason, Scope,
    },
    ids::{SubagentType, ThreadId, UserId},
};

fn task_id() -> ToolCallId {
    ToolCallId::new("call_1").unwrap()
}

fn at(seq: u64) -> Timestamp {
    Timestamp::from_second(i64::try_from(seq).unwrap()).unwrap()
}

fn logged(seq: u64, event: Event) -> Logged {
    let delegation_id = Some(DelegationId::from_uuid(uuid::Uuid::from_u128(7)));
    Logged {
        position: seq,
        seq,
        thread_id: ThreadId::new("t").unwrap(),
        owner: UserId::unowned(),
        scope: Scope { run_id: Some(RunId::new("r").unwrap()), task_id: Some(task_id()), delegation_id },
        recorded_at: at(seq),
        labels: None,
        event,
    }
}

fn requested(description: &str) -> Event {
    Event::Delegation(DelegationEvent::Requested(DelegationRequested {
        task_id: task_id(),
        description: description.into(),
        prompt: "p".repeat(300),
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

fn queued() -> Event {
    Event::Delegation(DelegationEvent::Queued(DelegationQueued { task_id: task_id(), place: 1 }))
}

fn admitted() -> Event {
    Event::Delegation(DelegationEvent::Admitted(DelegationAdmitted { task_id: task_id(), waited_ms: 0 }))
}

fn refused() -> Event {
    Event::Delegation(DelegationEvent::Refused(DelegationRefused {
        task_id: task_id(),
        description: "d".into(),
        subagent_type: "nobody".into(),
        reason: RefusalReason::UnknownType,
        message: "no such type".into(),
    }))
}

fn ended(status: EndStatus) -> Event {
    Event::Subagent(SubagentEvent::Ended(SubagentEnded {
        task_id: task_id(),
        status,
        model_name: None,
        usage: Some(Usage::new(1, 2)),
        result: (status == EndStatus::Completed).then(|| " done ".into()),
        result_truncated: false,
        result_sha256: None,
        error: (status != EndStatus::Completed).then(|| "boom".into()),
        error_truncated: false,
        stop_reason: Some(StopReason::TurnCapped),
        cancel_reason: None::<CancelReason>,
        citations: None,
        turns: 1,
        steps: 1,
        receipts: 0,
    }))
}

fn delivered(status: SubagentStatus) -> Event {
    let error = Some("Task polling timed out after 0 minutes.".into());
    let task_id = task_id();
    let delivered = DelegationDelivered { task_id, status, result_brief: None, result_sha256: None, error };
    Event::Delegation(DelegationEvent::Delivered(delivered))
}

fn fold(events: Vec<Event>) -> Option<LedgerEntry> {
    (1..).zip(events).fold(None, |entry, (seq, event)| LedgerEntry::fold(entry, &logged(seq, event)))
}

#[track_caller]
fn check(events: Vec<Event>, status: LedgerStatus) -> LedgerEntry {
    let entry = fold(events).expect("there is an entry");
    assert_eq!(entry.status, status);
    entry
}

#[test]
fn an_entry_follows_its_delegation() {
    use LedgerStatus as S;
    check(vec![requested("d")], S::Queued);
    let entry = check(vec![requested("d"), queued(), admitted()], S::InProgress);
    assert_eq!((entry.queued_at, entry.started_at, entry.last_seq), (Some(at(2)), Some(at(3)), 3));
    let entry = check(vec![requested("d"), admitted(), ended(EndStatus::Completed)], S::Completed);
    assert_eq!((entry.result_brief.as_deref(), entry.error), (Some("done"), None));
    assert_eq!(
        (entry.ended_at, entry.delivered, entry.stop_reason),
        (Some(at(3)), false, Some(StopReason::TurnCapped))
    );
    let entry = check(vec![requested("d"), admitted(), ended(EndStatus::Failed)], S::Failed);
    assert_eq!((entry.result_brief, entry.error.as_deref()), (None, Some("boom")));
    let entry = check(vec![refused()], S::Refused);
    assert_eq!((entry.subagent_type.as_str(), entry.error.as_deref()), ("nobody", Some("no such type")));
    check(vec![requested("d"), queued(), refused()], S::Refused);
    check(vec![requested("d"), ended(EndStatus::Cancelled)], S::Cancelled);
}

#[test]
fn the_first_ending_stands_but_for_the_lead_s_own_wait() {
    use LedgerStatus as S;
    let twice = vec![requested("d"), admitted(), ended(EndStatus::Cancelled), ended(EndStatus::Completed)];
    check(twice, S::Cancelled);
    let out_of_patience = vec![
        requested("d"),
        admitted(),
        ended(EndStatus::TimedOut),
        delivered(SubagentStatus::PollingTimedOut),
    ];
    let entry = check(out_of_patience, S::PollingTimedOut);
    assert!(entry.delivered);
    let told =
        vec![requested("d"), admitted(), ended(EndStatus::Completed), delivered(SubagentStatus::Completed)];
    assert_eq!(check(told, S::Completed).error, None);
}

// Chain facts (f) line 18.
#[test]
fn a_nameless_delegation_is_called_by_its_prompt() {
    assert_eq!(check(vec![requested("")], LedgerStatus::Queued).description, "p".repeat(200));
}

#[test]
fn nothing_comes_of_events_without_a_beginning() {
    assert_eq!(fold(vec![queued(), admitted(), ended(EndStatus::Failed)]), None);
}
