//! What the tests of this crate share.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use domain::{
    event::{Event, RunEvent, RunStatus, RunStatusChanged},
    ids::{EventId, RunId, ThreadId, UserId},
};
use eventlog::{Append, EventLog, Expected, Json, NewEvent, Options, RecordedEvent, Scope, StreamId};

/// A log in memory.
pub(crate) fn log() -> EventLog {
    EventLog::in_memory(Options::default())
}

/// A thread's id.
pub(crate) fn thread(id: &str) -> ThreadId {
    ThreadId::new(id).unwrap()
}

/// A run's id.
pub(crate) fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

/// An event with this content.
pub(crate) fn event(event_type: &str, content: &str) -> NewEvent {
    static MADE: AtomicU64 = AtomicU64::new(1);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let event_id: EventId = format!("0198f000-0000-7000-8000-{number:012x}").parse().unwrap();
    NewEvent {
        event_id,
        event_type: event_type.to_owned(),
        schema_version: 1,
        category: "trace".to_owned(),
        scope: Scope::default(),
        owner: UserId::unowned(),
        causation_id: None,
        correlation_id: None,
        created_at: "2026-11-30T12:00:00Z".parse().unwrap(),
        content: Json::parse(content).unwrap(),
        metadata: Json::empty_object(),
    }
}

/// An event of a run.
pub(crate) fn run_event(run_id: &str, event_type: &str, content: &str) -> NewEvent {
    let mut event = event(event_type, content);
    event.scope.run_id = Some(run(run_id));
    event
}

/// A run's new state.
pub(crate) fn run_status(run_id: &str, status: RunStatus) -> NewEvent {
    let changed =
        Event::Run(RunEvent::StatusChanged(RunStatusChanged { status, stop_reason: None, error: None }));
    run_event(run_id, changed.event_type(), &changed.content().unwrap().to_string())
}

/// Records events in a thread.
pub(crate) async fn append(
    log: &EventLog,
    thread_id: &str,
    events: Vec<NewEvent>,
) -> Vec<Arc<RecordedEvent>> {
    let stream = StreamId::Thread(thread(thread_id));
    let append = Append { stream, expected: Expected::Any, idempotency_key: None, events };
    log.append(append).await.unwrap().events
}
