//! The indexes against the events: what they should hold is added up, and so is what they hold.
//!
//! A sum does not depend on order, and the indexes are in another order than the log. Sums that
//! differ do not say where; then each event's entries are looked up one by one.

use std::{
    collections::HashMap,
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
};

use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

use super::{Damage, DamageKind, Index};
use crate::{
    codec::record::{self, Outline},
    engine::{Direction, Engine, EngineError, KeyRange, Keyspace},
    keys::{
        self, EVENTS, INDEX, TASKS,
        run_entry::{RunEntry, TypeRef},
    },
    position::Position,
    store::{StoreError, Tail},
    stream_id::StreamId,
};

/// Entries that are read in one go, so that nobody is held up for long.
const CHUNK: usize = 1_024;

/// Entries of the three indexes, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    streams: Sum,
    runs: Sum,
    tasks: Sum,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    total: u128,
}

impl Sums {
    fn add(&mut self, index: Index, key: &[u8], value: &[u8]) {
        let sum = match index {
            Index::Streams => &mut self.streams,
            Index::Runs => &mut self.runs,
            Index::Tasks => &mut self.tasks,
            Index::Keys => return,
        };
        sum.count += 1;
        sum.total = sum.total.wrapping_add(xxh3_128_with_seed(value, xxh3_64(key)));
    }

    /// Adds what the indexes should hold of one event.
    pub(super) fn expect(&mut self, outline: &Outline, record: &[u8]) {
        entries(outline, record, &mut |index, key, value| self.add(index, key, value));
    }

    pub(super) fn join(&mut self, other: Self) {
        let pairs = [
            (&mut self.streams, other.streams),
            (&mut self.runs, other.runs),
            (&mut self.tasks, other.tasks),
        ];
        for (sum, other) in pairs {
            sum.count += other.count;
            sum.total = sum.total.wrapping_add(other.total);
        }
    }

    /// The first index whose sum is another.
    fn first_other(&self, other: &Self) -> Option<Index> {
        let pairs = [
            (Index::Streams, self.streams, other.streams),
            (Index::Runs, self.runs, other.runs),
            (Index::Tasks, self.tasks, other.tasks),
        ];
        pairs.into_iter().find(|(_, one, other)| one != other).map(|(index, _, _)| index)
    }
}

/// Is shown an index with a key and a value of it.
pub(crate) type Show<'a> = dyn FnMut(Index, &[u8], &[u8]) + 'a;

/// Shows what the indexes should hold of one event.
pub(crate) fn entries(outline: &Outline, record: &[u8], show: &mut Show<'_>) {
    let stream = keys::stream_entry::encode(&outline.stream, outline.seq);
    show(Index::Streams, &stream, &keys::stream_entry::encode_value(outline.position));
    if let Some(run) = outline.run {
        let event_type = TypeRef::from(&outline.event_type);
        let entry = RunEntry { position: outline.position, delegation_id: outline.delegation_id, event_type };
        let key = keys::run_entry::encode(run.0, outline.seq);
        show(Index::Runs, &key, &keys::run_entry::encode_value(&entry));
    }
    if let Some(task) = outline.task {
        show(Index::Tasks, &keys::task_event::encode(task, outline.seq), record);
    }
}

/// What is looked at, and up to where.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    pub(super) engine: &'a Engine,
    pub(super) head: Position,
    /// Whether entries behind the head are new, and to be left out.
    pub(super) is_live: bool,
    /// Ends the work early.
    pub(super) stop: &'a AtomicBool,
}

impl Stored<'_> {
    /// Adds up the copies of tasks' events.
    pub(super) fn tasks(self) -> Result<Sums, EngineError> {
        let mut sums = Sums::default();
        self.scan(TASKS, &keys::task_event::all(), &mut |key, value| {
            let position =
                if self.is_live { record::outline(value).ok().map(|one| one.position) } else { None };
            if self.counts(position) {
                sums.add(Index::Tasks, key, value);
            }
        })?;
        Ok(sums)
    }

    /// Adds up the entries of streams and runs.
    pub(super) fn streams_and_runs(self) -> Result<Sums, EngineError> {
        let mut sums = Sums::default();
        self.scan(INDEX, &keys::stream_entry::all(), &mut |key, value| {
            if self.counts(keys::stream_entry::decode_value(value).ok()) {
                sums.add(Index::Streams, key, value);
            }
        })?;
        self.scan(INDEX, &keys::run_entry::all(), &mut |key, value| {
            if self.counts(keys::run_entry::decode_value(value).ok().map(|entry| entry.position)) {
                sums.add(Index::Runs, key, value);
            }
        })?;
        Ok(sums)
    }

    fn counts(self, position: Option<Position>) -> bool {
        !self.is_live || position.is_none_or(|position| position <= self.head)
    }

    fn scan(
        self,
        keyspace: Keyspace,
        prefix: &[u8],
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), EngineError> {
        let mut range = KeyRange::prefix(prefix);
        loop {
            let (mut count, mut last) = (0, Vec::new());
            self.engine.view().scan(keyspace, &range, Direction::Forward, &mut |key, value| {
                show(key, value);
                count += 1;
                if count < CHUNK {
                    return ControlFlow::Continue(());
                }
                last = key.to_vec();
                ControlFlow::Break(())
            })?;
            if count < CHUNK || self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            range = KeyRange::after(&last, prefix);
        }
    }

    /// Looks for the first event that the indexes do not have as it is, once it is known that the
    /// sums differ.
    pub(super) fn find_first(self, expected: &Sums, stored: &Sums) -> Result<Option<Damage>, StoreError> {
        let Some(differing) = expected.first_other(stored) else {
            return Ok(None);
        };
        let mut after = Position::ZERO;
        loop {
            let range = KeyRange::after(&keys::event::encode(after), &keys::event::prefix());
            let page = self.engine.view().page(EVENTS, &range, Direction::Forward, CHUNK)?;
            for (_, record) in &page {
                let Ok(outline) = record::outline(record) else { break };
                if outline.position > self.head {
                    break;
                }
                if let Some(index) = self.first_wrong(&outline, record)? {
                    return Ok(Some(Damage {
                        position: outline.position,
                        kind: DamageKind::Index { index },
                    }));
                }
                after = outline.position;
            }
            if page.len() < CHUNK || after >= self.head {
                let kind = DamageKind::IndexTooLong { index: differing };
                return Ok(Some(Damage { position: self.head, kind }));
            }
        }
    }

    fn first_wrong(self, outline: &Outline, record: &[u8]) -> Result<Option<Index>, StoreError> {
        let mut expected = Vec::new();
        entries(outline, record, &mut |index, key, value| {
            expected.push((index, key.to_vec(), value.to_vec()));
        });
        let view = self.engine.view();
        for (index, key, value) in expected {
            let keyspace = if index == Index::Tasks { TASKS } else { INDEX };
            if view.get(keyspace, &key)?.as_ref() != Some(&value) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Compares the ends of all streams with those that the index has.
    pub(super) fn check_tails(self, tails: &HashMap<StreamId, Tail>) -> Result<Option<Damage>, StoreError> {
        let mut first: Option<Damage> = None;
        for (stream, tail) in tails {
            let value = self.engine.get(INDEX, &keys::stream::encode(stream))?;
            let stored = value.and_then(|value| keys::stream::decode_value(&value).ok());
            let is_newer = self.is_live && stored.is_some_and(|stored| stored.position > self.head);
            let is_first = first.as_ref().is_none_or(|damage| damage.position > tail.position);
            if stored != Some(*tail) && !is_newer && is_first {
                let kind = DamageKind::TailDiffers { stream: stream.clone() };
                first = Some(Damage { position: tail.position, kind });
            }
        }
        Ok(first)
    }

    /// Looks whether every idempotency key names events that are there, and no stream is listed
    /// that has none.
    pub(super) fn check_rest(self, streams: usize) -> Result<Option<Damage>, StoreError> {
        let (mut first, mut listed) = (None, 0);
        let at_head = |index| Damage { position: self.head, kind: DamageKind::IndexTooLong { index } };
        self.scan(INDEX, &keys::idempotency::all(), &mut |_, value| {
            let is_wrong = match keys::idempotency::decode_value(value) {
                Ok(key_use) if self.is_live && key_use.first > self.head => false,
                Ok(key_use) => {
                    let last = key_use.first.get() + u64::from(key_use.count).saturating_sub(1);
                    key_use.first == Position::ZERO || last > self.head.get()
                }
                Err(_) => true,
            };
            if is_wrong && first.is_none() {
                first = Some(at_head(Index::Keys));
            }
        })?;
        self.scan(INDEX, &keys::stream::prefix(), &mut |_, _| listed += 1)?;
        Ok(first.or_else(|| (!self.is_live && listed > streams).then(|| at_head(Index::Streams))))
    }
}
