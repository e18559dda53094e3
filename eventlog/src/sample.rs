//! Events and logs for the tests of this crate.

use std::{future::Future, sync::Arc, time::Duration};

use domain::ids::{DelegationId, EventId, RunId, ThreadId, ToolCallId, UserId};
use jiff::Timestamp;
use uuid::Uuid;

use crate::{
    Append, AppendError, Appended, EventLog, Expected, IdempotencyKey, Json, NewEvent, Options, Scope,
    StreamId,
};

/// 2026-01-02 03:04:05.000000006.
pub(crate) fn time() -> Timestamp {
    Timestamp::new(1_767_323_045, 6).unwrap()
}

/// A clock that stands still.
pub(crate) fn options() -> Options {
    Options::new(Arc::new(time))
}

pub(crate) fn memory_log() -> EventLog {
    EventLog::in_memory(options())
}

pub(crate) fn thread(name: &str) -> StreamId {
    StreamId::Thread(ThreadId::new(name).unwrap())
}

pub(crate) fn run_id(name: &str) -> RunId {
    RunId::new(name).unwrap()
}

pub(crate) fn task_id(name: &str) -> ToolCallId {
    ToolCallId::new(name).unwrap()
}

pub(crate) fn delegation_id(number: u128) -> DelegationId {
    DelegationId::from_uuid(Uuid::from_u128(number))
}

pub(crate) fn key(text: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey::new(text).unwrap())
}

/// An event of type `note` whose content is the number.
pub(crate) fn note(number: u64) -> NewEvent {
    NewEvent {
        event_id: EventId::from_uuid(Uuid::from_u128(u128::from(number))),
        event_type: "note".to_owned(),
        schema_version: 1,
        category: "trace".to_owned(),
        scope: Scope::default(),
        owner: UserId::unowned(),
        causation_id: None,
        correlation_id: None,
        created_at: time(),
        content: Json::from_serialize(&number).unwrap(),
        metadata: Json::empty_object(),
    }
}

pub(crate) fn notes(numbers: impl IntoIterator<Item = u64>) -> Vec<NewEvent> {
    numbers.into_iter().map(note).collect()
}

pub(crate) fn to(stream: &StreamId, expected: Expected, events: Vec<NewEvent>) -> Append {
    Append { stream: stream.clone(), expected, idempotency_key: None, events }
}

/// Appends notes with these numbers, whatever is there.
pub(crate) async fn add(
    log: &EventLog,
    stream: &StreamId,
    numbers: impl IntoIterator<Item = u64>,
) -> Result<Appended, AppendError> {
    log.append(to(stream, Expected::Any, notes(numbers))).await
}

/// Fails a test that would hang.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(30), future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} did not happen in time"),
    }
}
