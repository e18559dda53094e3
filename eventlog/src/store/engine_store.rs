//! The log on an ordered engine.

use std::ops::ControlFlow;

use super::{Commit, CommitGroup, Head, KeyUse, LogStore, StoreError, StoredEvent, StreamSummary, Tail};
use crate::{
    append::IdempotencyKey,
    codec::{DecodeError, record},
    engine::{Batch, Direction, Durability, Engine, KeyRange, Keyspace, View},
    keys::{self, EVENTS, INDEX, TASKS, task_event::Task},
    position::{Position, Seq},
    read::RunQuery,
    recorded::RecordedEvent,
    stream_id::StreamId,
};

/// From this many neighbours on a range is cheaper than one read per key.
const NEIGHBOURS_MIN: usize = 4;

/// Keeps the rules of [`LogStore`] on an [`Engine`].
pub struct EngineStore {
    engine: Engine,
}

impl EngineStore {
    /// A log on an engine that was opened with the log's keyspaces.
    pub(crate) fn new(engine: Engine) -> Self {
        Self { engine }
    }

    /// A log in memory.
    pub fn in_memory() -> Self {
        Self::new(Engine::in_memory(&keys::KEYSPACES))
    }

    /// The format version that the log was written with; none if it is new.
    pub(crate) fn format_version(&self) -> Result<Option<u32>, StoreError> {
        let value = self.engine.get(INDEX, &keys::meta::format_version())?;
        value.map(|value| keys::meta::decode_value(&value).map_err(damaged("the format version"))).transpose()
    }

    /// Writes the format version of a new log.
    pub(crate) fn set_format_version(&self, version: u32) -> Result<(), StoreError> {
        let mut batch = Batch::new();
        batch.put(INDEX, keys::meta::format_version(), keys::meta::encode_value(version));
        Ok(self.engine.commit(batch, Durability::Synced)?)
    }
}

impl LogStore for EngineStore {
    fn head(&self) -> Result<Head, StoreError> {
        let range = KeyRange::prefix(&keys::commit::prefix());
        let last = self.engine.view().page(INDEX, &range, Direction::Backward, 1)?;
        let Some((key, value)) = last.first() else {
            return Ok(Head::EMPTY);
        };
        let position = keys::commit::decode(key).map_err(damaged("the key of a commit"))?;
        let commit = decode_commit(position, value)?;
        Ok(Head { position, chain: commit.chain })
    }

    fn commit_at(&self, last: Position) -> Result<Option<Commit>, StoreError> {
        let value = self.engine.get(INDEX, &keys::commit::encode(last))?;
        value.map(|value| decode_commit(last, &value)).transpose()
    }

    fn commit(&self, group: CommitGroup) -> Result<(), StoreError> {
        let mut batch = Batch::new();
        for stored in group.events {
            put_event(&mut batch, stored);
        }
        for (stream, tail) in &group.tails {
            batch.put(INDEX, keys::stream::encode(stream), keys::stream::encode_value(tail));
        }
        for (stream, key, key_use) in &group.keys {
            let value = keys::idempotency::encode_value(key_use);
            batch.put(INDEX, keys::idempotency::encode(stream, key), value);
        }
        let commit_key = keys::commit::encode(group.commit.last);
        batch.put(INDEX, commit_key, keys::commit::encode_value(&group.commit));
        Ok(self.engine.commit(batch, Durability::Synced)?)
    }

    fn tail(&self, stream: &StreamId) -> Result<Option<Tail>, StoreError> {
        let value = self.engine.get(INDEX, &keys::stream::encode(stream))?;
        value.map(|value| decode_tail(stream, &value)).transpose()
    }

    fn key_use(&self, stream: &StreamId, key: &IdempotencyKey) -> Result<Option<KeyUse>, StoreError> {
        let value = self.engine.get(INDEX, &keys::idempotency::encode(stream, key))?;
        value
            .map(|value| keys::idempotency::decode_value(&value).map_err(damaged("an idempotency key")))
            .transpose()
    }

    fn read_all(&self, after: Position, limit: usize) -> Result<Vec<RecordedEvent>, StoreError> {
        let range = KeyRange::after(&keys::event::encode(after), &keys::event::prefix());
        collect(&*self.engine.view(), EVENTS, &range, limit, &mut |_, value| decode_event(value).map(Some))
    }

    fn read_stream(
        &self,
        stream: &StreamId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<RecordedEvent>, StoreError> {
        let range =
            KeyRange::after(&keys::stream_entry::encode(stream, after), &keys::stream_entry::prefix(stream));
        let view = self.engine.view();
        let positions = collect(&*view, INDEX, &range, limit, &mut |_, value| {
            keys::stream_entry::decode_value(value).map(Some).map_err(damaged("a stream entry"))
        })?;
        fetch(&*view, &positions)
    }

    fn read_run(&self, query: &RunQuery) -> Result<Vec<RecordedEvent>, StoreError> {
        let stream = StreamId::Thread(query.thread_id.clone());
        match &query.filter.task_id {
            Some(task_id) => self.read_task(Task { stream: &stream, run_id: &query.run_id, task_id }, query),
            None => self.read_whole_run(&stream, query),
        }
    }

    fn streams(&self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
        let prefix = keys::stream::prefix();
        let range = match after {
            Some(stream) => KeyRange::after(&keys::stream::encode(stream), &prefix),
            None => KeyRange::prefix(&prefix),
        };
        collect(&*self.engine.view(), INDEX, &range, limit, &mut |key, value| {
            let stream = keys::stream::decode(key).map_err(damaged("the key of a stream"))?;
            let tail = decode_tail(&stream, value)?;
            Ok(Some(StreamSummary { stream, seq: tail.seq, position: tail.position }))
        })
    }
}

impl EngineStore {
    /// The covering copies of one task.
    fn read_task(&self, task: Task<'_>, query: &RunQuery) -> Result<Vec<RecordedEvent>, StoreError> {
        let prefix = keys::task_event::prefix(task);
        let range = KeyRange::after(&keys::task_event::encode(task, query.after), &prefix);
        collect(&*self.engine.view(), TASKS, &range, query.limit, &mut |_, value| {
            let event = decode_event(value)?;
            let is_wanted = event.stream == *task.stream
                && event.scope.run_id.as_ref() == Some(task.run_id)
                && query.filter.matches(&event);
            Ok(is_wanted.then_some(event))
        })
    }

    /// Filters in the index, then reads what is wanted.
    fn read_whole_run(&self, stream: &StreamId, query: &RunQuery) -> Result<Vec<RecordedEvent>, StoreError> {
        let prefix = keys::run_entry::prefix(stream, &query.run_id);
        let range = KeyRange::after(&keys::run_entry::encode(stream, &query.run_id, query.after), &prefix);
        let view = self.engine.view();
        let positions = collect(&*view, INDEX, &range, query.limit, &mut |_, value| {
            let entry = keys::run_entry::decode_value(value).map_err(damaged("a run entry"))?;
            let is_wanted = query.filter.admits(entry.event_type, entry.delegation_id);
            Ok(is_wanted.then_some(entry.position))
        })?;
        fetch(&*view, &positions)
    }
}

/// Puts an event and its index entries into the batch.
fn put_event(batch: &mut Batch, stored: StoredEvent) {
    let event = &*stored.event;
    let stream_entry = keys::stream_entry::encode(&event.stream, event.seq);
    batch.put(INDEX, stream_entry, keys::stream_entry::encode_value(event.position));
    if let Some(run_id) = &event.scope.run_id {
        let entry = keys::run_entry::RunEntry {
            position: event.position,
            delegation_id: event.scope.delegation_id,
            event_type: &event.event_type,
        };
        let key = keys::run_entry::encode(&event.stream, run_id, event.seq);
        batch.put(INDEX, key, keys::run_entry::encode_value(&entry));
        if let Some(task_id) = &event.scope.task_id {
            let task = Task { stream: &event.stream, run_id, task_id };
            batch.put(TASKS, keys::task_event::encode(task, event.seq), stored.record.clone());
        }
    }
    batch.put(EVENTS, keys::event::encode(event.position), stored.record);
}

/// Makes something of a key and value, or nothing if they are not wanted.
type Read<'a, T> = dyn FnMut(&[u8], &[u8]) -> Result<Option<T>, StoreError> + 'a;

/// Reads up to `limit` pairs of a range that `read` wants.
fn collect<T>(
    view: &dyn View,
    keyspace: Keyspace,
    range: &KeyRange,
    limit: usize,
    read: &mut Read<'_, T>,
) -> Result<Vec<T>, StoreError> {
    let mut wanted = Vec::new();
    let mut failure = None;
    if limit == 0 {
        return Ok(wanted);
    }
    view.scan(keyspace, range, Direction::Forward, &mut |key, value| {
        match read(key, value) {
            Ok(Some(one)) => wanted.push(one),
            Ok(None) => {}
            Err(error) => failure = Some(error),
        }
        if wanted.len() < limit && failure.is_none() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    failure.map_or(Ok(wanted), Err)
}

/// Reads events by their ascending positions, neighbours in one go.
fn fetch(view: &dyn View, positions: &[Position]) -> Result<Vec<RecordedEvent>, StoreError> {
    let mut events = Vec::with_capacity(positions.len());
    for neighbours in positions.chunk_by(|one, other| one.next() == *other) {
        match neighbours {
            [first, .., last] if neighbours.len() >= NEIGHBOURS_MIN => {
                let range = KeyRange::between(&keys::event::encode(*first), &keys::event::encode(*last));
                let mut found = collect(view, EVENTS, &range, neighbours.len(), &mut |_, value| {
                    decode_event(value).map(Some)
                })?;
                if found.len() < neighbours.len() {
                    return Err(StoreError::MissingEvent { position: first_missing(neighbours, &found) });
                }
                events.append(&mut found);
            }
            few => {
                for position in few {
                    let record = view
                        .get(EVENTS, &keys::event::encode(*position))?
                        .ok_or(StoreError::MissingEvent { position: *position })?;
                    events.push(decode_event(&record)?);
                }
            }
        }
    }
    Ok(events)
}

fn first_missing(wanted: &[Position], found: &[RecordedEvent]) -> Position {
    let is_found = |position: &Position| found.iter().any(|event| event.position == *position);
    wanted.iter().copied().find(|position| !is_found(position)).unwrap_or(Position::ZERO)
}

fn decode_event(bytes: &[u8]) -> Result<RecordedEvent, StoreError> {
    record::decode(bytes).map_err(damaged("the record of an event"))
}

fn decode_commit(last: Position, value: &[u8]) -> Result<Commit, StoreError> {
    keys::commit::decode_value(last, value)
        .map_err(|source| StoreError::Damaged { what: format!("the commit that ends at {last}"), source })
}

fn decode_tail(stream: &StreamId, value: &[u8]) -> Result<Tail, StoreError> {
    keys::stream::decode_value(value)
        .map_err(|source| StoreError::Damaged { what: format!("the tail of stream {stream}"), source })
}

fn damaged(what: &'static str) -> impl Fn(DecodeError) -> StoreError {
    move |source| StoreError::Damaged { what: what.to_owned(), source }
}
