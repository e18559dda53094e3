//! The index against the record: what its tables should hold is added up, and so is what they hold.
//!
//! A sum does not depend on order, and the tables are in another order than the log. Sums that
//! differ do not say where; then each commit's entries are looked up one by one.
//!
//! Only what the index's checkpoint covers is looked at: what lies behind it is made from the record
//! on every start.

use std::{
    collections::HashMap,
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
};

use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

use super::{Damage, DamageKind, Index};
use crate::{
    codec::record::{self, Outline},
    engine::{Direction, EngineError, KeyRange, Keyspace},
    index::{Checkpoint, Index as LogIndex},
    keys::{self, INDEX, TASKS, location::Location, run_entry::TypeRef, run_place::RunPlace},
    position::Position,
    segment::{Segments, Walk, frame::Frame},
    store::{StoreError, Tail},
    stream_id::StreamId,
};

/// Entries that are read in one go, so that nobody is held up for long.
const CHUNK: usize = 1_024;
/// How many indexes there are.
const INDEXES: usize = 5;

/// Entries of each index, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums([Sum; INDEXES]);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    total: u128,
}

/// All indexes, in the order of their sums.
const ALL: [Index; INDEXES] = [Index::Streams, Index::Runs, Index::Tasks, Index::Keys, Index::Commits];

impl Sums {
    pub(super) fn add(&mut self, index: Index, key: &[u8], value: &[u8]) {
        for (sum, _) in self.0.iter_mut().zip(ALL).filter(|(_, of)| *of == index) {
            sum.count += 1;
            sum.total = sum.total.wrapping_add(xxh3_128_with_seed(value, xxh3_64(key)));
        }
    }

    pub(super) fn join(&mut self, other: Self) {
        for (sum, other) in self.0.iter_mut().zip(other.0) {
            sum.count += other.count;
            sum.total = sum.total.wrapping_add(other.total);
        }
    }

    /// The first index whose sum is another.
    fn first_other(&self, other: &Self) -> Option<Index> {
        let pairs = self.0.iter().zip(other.0);
        pairs.zip(ALL).find(|((one, other), _)| **one != *other).map(|(_, index)| index)
    }
}

/// Is shown an index with a key and a value of it.
pub(super) type Show<'a> = dyn FnMut(Index, &[u8], &[u8]) + 'a;

/// Shows what the index should hold of one event.
pub(super) fn event_entries(outline: &Outline, location: Location, record: &[u8], show: &mut Show<'_>) {
    let stream = keys::stream_entry::hash(&outline.stream);
    let value = keys::stream_place::encode_value(location);
    show(Index::Streams, &keys::stream_place::encode(stream, outline.seq), &value);
    if let Some(run) = outline.run {
        let event_type = TypeRef::from(&outline.event_type);
        let place = RunPlace { location, delegation_id: outline.delegation_id, event_type };
        let key = keys::run_place::encode(run.0, outline.seq);
        show(Index::Runs, &key, &keys::run_place::encode_value(&place));
    }
    if let Some(task) = outline.task {
        show(Index::Tasks, &keys::task_event::encode(task, outline.seq), record);
    }
}

/// Shows what the index should hold of a commit beside its events.
pub(super) fn commit_entries(frame: &Frame<'_>, show: &mut Show<'_>) {
    let commit = frame.header.commit();
    let value = keys::commit_place::encode_value(&commit, frame.header.address);
    show(Index::Commits, &keys::commit_place::encode(commit.last), &value);
    for key in frame.keys() {
        let value = keys::idempotency::encode_value(&key.key_use);
        show(Index::Keys, &keys::idempotency::encode_hashed(key.hash), &value);
    }
}

/// What is looked at, and up to where.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    pub(super) index: &'a LogIndex,
    pub(super) checkpoint: Checkpoint,
    /// Ends the work early.
    pub(super) stop: &'a AtomicBool,
}

impl Stored<'_> {
    /// Whether an event is one that the tables have.
    pub(super) fn covers(self, position: Position) -> bool {
        position <= self.checkpoint.head.position
    }

    /// Adds up the copies of tasks' events.
    pub(super) fn tasks(self) -> Result<Sums, EngineError> {
        let mut sums = Sums::default();
        self.scan(TASKS, &keys::task_event::all(), &mut |key, value| {
            if record::position(value).is_none_or(|position| self.covers(position)) {
                sums.add(Index::Tasks, key, value);
            }
        })?;
        Ok(sums)
    }

    /// Adds up all other entries.
    pub(super) fn others(self) -> Result<Sums, EngineError> {
        let mut sums = Sums::default();
        let is_in = |location: Option<Location>| {
            location.is_none_or(|location| location.address < self.checkpoint.end)
        };
        self.scan(INDEX, &keys::stream_place::all(), &mut |key, value| {
            if is_in(keys::stream_place::decode_value(value).ok()) {
                sums.add(Index::Streams, key, value);
            }
        })?;
        self.scan(INDEX, &keys::run_place::all(), &mut |key, value| {
            if is_in(keys::run_place::decode_value(value).ok().map(|place| place.location)) {
                sums.add(Index::Runs, key, value);
            }
        })?;
        self.scan(INDEX, &keys::idempotency::all(), &mut |key, value| {
            let first = keys::idempotency::decode_value(value).ok().map(|key_use| key_use.first);
            if first.is_none_or(|first| self.covers(first)) {
                sums.add(Index::Keys, key, value);
            }
        })?;
        self.scan(INDEX, &keys::commit_place::prefix(), &mut |key, value| {
            if keys::commit_place::decode(key).ok().is_none_or(|last| self.covers(last)) {
                sums.add(Index::Commits, key, value);
            }
        })?;
        Ok(sums)
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
            self.index.engine().view().scan(keyspace, &range, Direction::Forward, &mut |key, value| {
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

    /// Looks for the first commit that the tables do not have as it is, once it is known that the
    /// sums differ.
    pub(super) fn find_first(
        self,
        segments: &Segments,
        expected: &Sums,
        stored: &Sums,
    ) -> Result<Option<Damage>, StoreError> {
        let Some(differing) = expected.first_other(stored) else {
            return Ok(None);
        };
        let mut walk = Walk::new(segments.clone(), 0, Some(Position::new(1)));
        while walk.at() < self.checkpoint.end
            && let Some(frame) = walk.next()?
        {
            if let Some(damage) = self.first_wrong(&frame)? {
                return Ok(Some(damage));
            }
        }
        let kind = DamageKind::IndexTooLong { index: differing };
        Ok(Some(Damage { position: self.checkpoint.head.position, kind }))
    }

    fn first_wrong(self, frame: &Frame<'_>) -> Result<Option<Damage>, StoreError> {
        let at = |position, index| Damage { position, kind: DamageKind::Index { index } };
        for (offset, bytes) in frame.records() {
            let Ok(outline) = record::outline(bytes) else { break };
            let address = frame.header.address + u64::from(offset);
            let location = Location { address, length: u32::try_from(bytes.len()).unwrap_or(u32::MAX) };
            let wrong = self.first_missing(&mut |show| event_entries(&outline, location, bytes, show))?;
            if let Some(index) = wrong {
                return Ok(Some(at(outline.position, index)));
            }
        }
        let wrong = self.first_missing(&mut |show| commit_entries(frame, show))?;
        Ok(wrong.map(|index| at(frame.header.commit().last, index)))
    }

    /// The first index that does not have an entry as it is shown.
    fn first_missing(self, all: &mut dyn FnMut(&mut Show<'_>)) -> Result<Option<Index>, EngineError> {
        let mut expected = Vec::new();
        all(&mut |index, key, value| expected.push((index, key.to_vec(), value.to_vec())));
        let view = self.index.engine().view();
        for (index, key, value) in expected {
            let keyspace = if index == Index::Tasks { TASKS } else { INDEX };
            if view.get(keyspace, &key)?.as_ref() != Some(&value) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Compares the ends of all streams as of the checkpoint with those that the tables have.
    pub(super) fn check_tails(self, tails: &HashMap<StreamId, Tail>) -> Result<Option<Damage>, StoreError> {
        let (mut first, mut listed): (Option<Damage>, usize) = (None, 0);
        for (stream, tail) in tails {
            let value = self.index.engine().get(INDEX, &keys::stream::encode(stream))?;
            let stored = value.and_then(|value| keys::stream::decode_value(&value).ok());
            // Loaded since, or before a crash that kept the checkpoint back.
            let is_newer = stored.is_some_and(|stored| !self.covers(stored.position));
            let is_first = first.as_ref().is_none_or(|damage| damage.position > tail.position);
            if stored != Some(*tail) && !is_newer && is_first {
                let kind = DamageKind::TailDiffers { stream: stream.clone() };
                first = Some(Damage { position: tail.position, kind });
            }
        }
        self.scan(INDEX, &keys::stream::prefix(), &mut |_, value| {
            let tail = keys::stream::decode_value(value).ok();
            listed += usize::from(tail.is_none_or(|tail| self.covers(tail.position)));
        })?;
        let kind = DamageKind::IndexTooLong { index: Index::Streams };
        let too_long = Damage { position: self.checkpoint.head.position, kind };
        Ok(first.or_else(|| (listed > tails.len()).then_some(too_long)))
    }
}
