//! The log on an ordered engine.

use std::{ops::ControlFlow, sync::Arc};

use domain::ids::RunHash;

use super::{
    Commit, CommitGroup, Head, KeyUse, LogStore, Replayed, RunExtent, StoreError, StoredEvent, StreamSummary,
    Tail,
};
use crate::{
    append::IdempotencyKey,
    codec::{DecodeError, record},
    engine::{Batch, Direction, Durability, Engine, KeyRange, Keyspace, View},
    keyring::{Found, Keyring, ScopeId},
    keys::{
        self, EVENTS, INDEX, TASKS,
        run_entry::{RunEntry, TypeRef},
        task_event::Task,
    },
    position::{Position, Seq},
    read::{Room, RunQuery},
    recorded::RecordedEvent,
    seal::{self, Seal, TypeTag},
    stream_id::StreamId,
};

/// From this many neighbours on a range is cheaper than one read per key.
const NEIGHBOURS_MIN: usize = 4;

/// Keeps the rules of [`LogStore`] on an [`Engine`].
pub struct EngineStore {
    engine: Engine,
    keyring: Arc<Keyring>,
}

impl EngineStore {
    /// A log on an engine that was opened with the log's keyspaces.
    pub(crate) fn new(engine: Engine, keyring: Arc<Keyring>) -> Self {
        Self { engine, keyring }
    }

    /// A log in memory, with its keys.
    pub fn in_memory() -> Self {
        #[expect(clippy::expect_used, reason = "a system without randomness cannot seal anything")]
        let keyring = Keyring::in_memory().expect("the system gives random bytes");
        Self::new(Engine::in_memory(&keys::KEYSPACES), Arc::new(keyring))
    }

    /// The head of what an engine holds.
    pub(crate) fn head_of(engine: &Engine) -> Result<Head, StoreError> {
        let range = KeyRange::prefix(&keys::commit::prefix());
        let last = engine.view().page(INDEX, &range, Direction::Backward, 1)?;
        let Some((key, value)) = last.first() else {
            return Ok(Head::EMPTY);
        };
        let position = keys::commit::decode(key).map_err(damaged("the key of a commit"))?;
        let commit = decode_commit(position, value)?;
        Ok(Head { position, chain: commit.chain })
    }

    fn decode_event(&self, bytes: &[u8]) -> Result<RecordedEvent, StoreError> {
        record::decode(bytes, &self.keyring).map_err(damaged("the record of an event"))
    }
}

impl LogStore for EngineStore {
    fn keyring(&self) -> &Arc<Keyring> {
        &self.keyring
    }

    fn engine(&self) -> Option<&Engine> {
        Some(&self.engine)
    }

    fn head(&self) -> Result<Head, StoreError> {
        Self::head_of(&self.engine)
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
        collect(&*self.engine.view(), EVENTS, &range, &mut Room::of(limit), &mut |_, value| {
            self.decode_event(value).map(Some)
        })
    }

    fn replay(&self, after: Position, limit: usize, visit: &mut Replayed<'_>) -> Result<(), StoreError> {
        let range = KeyRange::after(&keys::event::encode(after), &keys::event::prefix());
        let (mut left, mut failure) = (limit, None);
        if limit == 0 {
            return Ok(());
        }
        self.engine.view().scan(EVENTS, &range, Direction::Forward, &mut |_, value| {
            let shown = self.decode_event(value).map(|event| visit(event, record::hashed(value)));
            left -= 1;
            match shown {
                Ok(flow) if left > 0 => flow,
                Ok(_) => ControlFlow::Break(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failure.map_or(Ok(()), Err)
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
        let positions = collect(&*view, INDEX, &range, &mut Room::of(limit), &mut |_, value| {
            keys::stream_entry::decode_value(value).map(Some).map_err(damaged("a stream entry"))
        })?;
        self.fetch(&*view, &positions, &mut Room::of(limit))
    }

    fn read_run(&self, query: &RunQuery) -> Result<Vec<RecordedEvent>, StoreError> {
        let stream = StreamId::Thread(query.thread_id.clone());
        let run = ScopeId(keys::run_entry::hash(&stream, &query.run_id));
        if let Found::Destroyed = self.keyring.find(run).map_err(StoreError::Keys)? {
            return Ok(Vec::new());
        }
        match &query.filter.task_id {
            Some(task_id) => self.read_task(Task { stream: &stream, run_id: &query.run_id, task_id }, query),
            None => self.read_whole_run(&stream, query),
        }
    }

    fn run_extent(&self, run: RunHash) -> Result<RunExtent, StoreError> {
        let range = KeyRange::prefix(&keys::run_entry::prefix(*run.as_bytes()));
        let (mut extent, mut failure) = (RunExtent { first: None, events: 0 }, None);
        self.engine.view().scan(INDEX, &range, Direction::Forward, &mut |_, value| {
            extent.events += 1;
            if extent.first.is_some() {
                return ControlFlow::Continue(());
            }
            match keys::run_entry::decode_value(value) {
                Ok(entry) => extent.first = Some(entry.position),
                Err(source) => failure = Some(damaged("a run entry")(source)),
            }
            if failure.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        failure.map_or(Ok(extent), Err)
    }

    fn streams(&self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamSummary>, StoreError> {
        let prefix = keys::stream::prefix();
        let range = match after {
            Some(stream) => KeyRange::after(&keys::stream::encode(stream), &prefix),
            None => KeyRange::prefix(&prefix),
        };
        collect(&*self.engine.view(), INDEX, &range, &mut Room::of(limit), &mut |key, value| {
            let stream = keys::stream::decode(key).map_err(damaged("the key of a stream"))?;
            let tail = decode_tail(&stream, value)?;
            Ok(Some(StreamSummary { stream, seq: tail.seq, position: tail.position }))
        })
    }
}

impl EngineStore {
    /// The covering copies of one task.
    fn read_task(&self, task: Task<'_>, query: &RunQuery) -> Result<Vec<RecordedEvent>, StoreError> {
        let hash = keys::task_event::hash(task);
        let prefix = keys::task_event::prefix(hash);
        let range = KeyRange::after(&keys::task_event::encode(hash, query.after), &prefix);
        collect(&*self.engine.view(), TASKS, &range, &mut Room::of(query.limit), &mut |_, value| {
            let event = self.decode_event(value)?;
            let is_wanted = event.stream == *task.stream
                && event.scope.run_id.as_ref() == Some(task.run_id)
                && query.filter.matches(&event);
            Ok(is_wanted.then_some(event))
        })
    }

    /// Filters in the index, then reads what is wanted.
    fn read_whole_run(&self, stream: &StreamId, query: &RunQuery) -> Result<Vec<RecordedEvent>, StoreError> {
        let run = keys::run_entry::hash(stream, &query.run_id);
        let wanted = self.wanted_types(ScopeId(run), query)?;
        let prefix = keys::run_entry::prefix(run);
        let range = KeyRange::after(&keys::run_entry::encode(run, query.after), &prefix);
        let view = self.engine.view();
        let positions = collect(&*view, INDEX, &range, &mut Room::of(query.limit), &mut |_, value| {
            let entry = keys::run_entry::decode_value(value).map_err(damaged("a run entry"))?;
            let is_type = wanted.as_ref().is_none_or(|wanted| wanted.admit(entry.event_type));
            let is_delegation =
                query.filter.delegation_id.is_none_or(|wanted| entry.delegation_id == Some(wanted));
            Ok((is_type && is_delegation).then_some(entry.position))
        })?;
        self.fetch(&*view, &positions, &mut Room::of(query.limit))
    }

    /// The types that the query wants, as the index may hold them; none if it wants all.
    fn wanted_types(&self, run: ScopeId, query: &RunQuery) -> Result<Option<WantedTypes>, StoreError> {
        let Some(names) = query.filter.event_types.clone() else {
            return Ok(None);
        };
        let tags = match self.keyring.find(run).map_err(StoreError::Keys)? {
            Found::Live(key) => names.iter().map(|name| seal::type_tag(&key, name)).collect(),
            Found::Destroyed | Found::Missing => Vec::new(),
        };
        Ok(Some(WantedTypes { names, tags }))
    }

    /// Reads events by their ascending positions, neighbours in one go, as long as there is room.
    fn fetch(
        &self,
        view: &dyn View,
        positions: &[Position],
        room: &mut Room,
    ) -> Result<Vec<RecordedEvent>, StoreError> {
        let mut events = Vec::with_capacity(positions.len());
        for neighbours in positions.chunk_by(|one, other| one.next() == *other) {
            match neighbours {
                [first, .., last] if neighbours.len() >= NEIGHBOURS_MIN => {
                    let range = KeyRange::between(&keys::event::encode(*first), &keys::event::encode(*last));
                    let mut found = collect(view, EVENTS, &range, room, &mut |_, value| {
                        self.decode_event(value).map(Some)
                    })?;
                    if found.len() < neighbours.len() && room.is_left() {
                        return Err(StoreError::MissingEvent { position: first_missing(neighbours, &found) });
                    }
                    events.append(&mut found);
                }
                few => {
                    for position in few {
                        if !room.is_left() {
                            return Ok(events);
                        }
                        let record = view
                            .get(EVENTS, &keys::event::encode(*position))?
                            .ok_or(StoreError::MissingEvent { position: *position })?;
                        room.take(record.len());
                        events.push(self.decode_event(&record)?);
                    }
                }
            }
        }
        Ok(events)
    }
}

/// Event types by their names and by their tags.
struct WantedTypes {
    names: Vec<String>,
    tags: Vec<TypeTag>,
}

impl WantedTypes {
    fn admit(&self, event_type: TypeRef<'_>) -> bool {
        match event_type {
            TypeRef::Plain(name) => self.names.iter().any(|wanted| wanted == name),
            TypeRef::Tag(tag) => self.tags.contains(&tag),
        }
    }
}

/// Puts an event and its index entries into the batch.
fn put_event(batch: &mut Batch, stored: StoredEvent) {
    let event = &*stored.event;
    let stream_entry = keys::stream_entry::encode_hashed(stored.hashes.stream.0, event.seq);
    batch.put(INDEX, stream_entry, keys::stream_entry::encode_value(event.position));
    if let Some(run) = stored.hashes.run {
        let event_type = match &event.seal {
            Seal::Opened(opened) => TypeRef::Tag(opened.type_tag),
            Seal::None | Seal::Erased(_) => TypeRef::Plain(&event.event_type),
        };
        let delegation_id = event.scope.delegation_id;
        let entry = RunEntry { position: event.position, delegation_id, event_type };
        batch.put(INDEX, keys::run_entry::encode(run.0, event.seq), keys::run_entry::encode_value(&entry));
    }
    let place = keys::event::encode(event.position);
    match stored.hashes.task {
        Some(task) => {
            let copy = keys::task_event::encode(task, event.seq);
            batch.put_twice([(EVENTS, place), (TASKS, copy)], stored.record);
        }
        None => batch.put(EVENTS, place, stored.record),
    }
}

/// Makes something of a key and value, or nothing if they are not wanted.
type Read<'a, T> = dyn FnMut(&[u8], &[u8]) -> Result<Option<T>, StoreError> + 'a;

/// Reads pairs of a range that `read` wants, as long as there is room for them.
fn collect<T>(
    view: &dyn View,
    keyspace: Keyspace,
    range: &KeyRange,
    room: &mut Room,
    read: &mut Read<'_, T>,
) -> Result<Vec<T>, StoreError> {
    let mut wanted = Vec::new();
    let mut failure = None;
    if !room.is_left() {
        return Ok(wanted);
    }
    view.scan(keyspace, range, Direction::Forward, &mut |key, value| {
        match read(key, value) {
            Ok(Some(one)) => {
                room.take(value.len());
                wanted.push(one);
            }
            Ok(None) => {}
            Err(error) => failure = Some(error),
        }
        if room.is_left() && failure.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    failure.map_or(Ok(wanted), Err)
}

fn first_missing(wanted: &[Position], found: &[RecordedEvent]) -> Position {
    let is_found = |position: &Position| found.iter().any(|event| event.position == *position);
    wanted.iter().copied().find(|position| !is_found(position)).unwrap_or(Position::ZERO)
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
