//! What is asked of the index.
//!
//! Memory is looked at first and the tables after it: what moves from one to the other in between is
//! then seen twice, and never not at all. Within a scope everything in memory follows everything in
//! the tables, so that the first seq in memory is where the tables are read up to.

use std::{
    collections::BTreeMap,
    ops::{Bound, ControlFlow},
    sync::Arc,
};

use domain::ids::DelegationId;

use super::{
    Index, Located, Places, Record, State, damaged,
    generation::{Entry, Generation, Scope},
};
use crate::{
    engine::{Direction, KeyRange},
    keys::{self, INDEX, TASKS, run_entry::TypeRef},
    position::{Position, Seq},
    read::Room,
    store::{Commit, KeyUse, StoreError, StreamSummary, Tail},
    stream_id::StreamId,
};

/// A task's events that are taken out of memory at once.
const TASK_PAGE: usize = 256;

/// Says by delegation and type whether an event of a run is wanted.
pub(crate) type IsWanted<'a> = dyn Fn(Option<DelegationId>, TypeRef<'_>) -> bool + 'a;

/// Is shown the bytes of a record, and says whether it wants more.
pub(crate) type VisitRecord<'a> = dyn FnMut(&[u8]) -> Result<ControlFlow<()>, StoreError> + 'a;

/// What memory has of a scope.
struct Recent<T> {
    /// The first seq that memory has.
    first: Option<Seq>,
    /// What was asked for.
    found: Vec<T>,
}

impl<T> Recent<T> {
    /// Whether everything after a seq is in memory.
    fn is_all(&self, after: Seq) -> bool {
        self.first.is_some_and(|first| first <= after.next())
    }
}

impl State {
    /// What is in memory, older first.
    fn generations(&self) -> impl DoubleEndedIterator<Item = &Generation> {
        self.frozen.as_deref().into_iter().chain([&self.active])
    }

    /// As much as a page of `limit` rows has room for.
    fn recent<T>(
        &self,
        (scope, hash): (Scope, [u8; 16]),
        after: Seq,
        limit: usize,
        pick: impl Fn(&Generation, &Entry) -> Option<T>,
    ) -> Recent<T> {
        let first = self.generations().find_map(|one| one.of(scope, hash).next()).map(|entry| entry.seq);
        let mut room = Room::of(limit);
        let found = self
            .generations()
            .flat_map(|one| one.after(scope, hash, after).map(move |entry| (one, entry)))
            .filter_map(|(one, entry)| pick(one, entry).map(|found| (entry.bytes(), found)))
            .map_while(|(bytes, found)| room.admit(bytes).then_some(found))
            .collect();
        Recent { first, found }
    }
}

impl Index {
    /// Where a stream's events after a seq are, ascending.
    pub(crate) fn stream_places(
        &self,
        stream: [u8; 16],
        after: Seq,
        limit: usize,
    ) -> Result<Places, StoreError> {
        let recent =
            self.shared.read().recent((Scope::Stream, stream), after, limit, |one, entry| one.record(entry));
        let encode = |seq| keys::stream_place::encode(stream, seq);
        let range = stored_range(&keys::stream_place::prefix(stream), after, recent.first, &encode);
        self.merge(recent, after, limit, &range, &|value| {
            keys::stream_place::decode_value(value).map(Some).map_err(damaged("a stream's entry"))
        })
    }

    /// Where a run's events after a seq are that are wanted, ascending.
    pub(crate) fn run_places(
        &self,
        run: [u8; 16],
        after: Seq,
        limit: usize,
        is_wanted: &IsWanted<'_>,
    ) -> Result<Places, StoreError> {
        let recent = self.shared.read().recent((Scope::Run, run), after, limit, |one, entry| {
            is_wanted(entry.delegation_id, (&entry.event_type).into()).then(|| one.record(entry)).flatten()
        });
        let encode = |seq| keys::run_place::encode(run, seq);
        let range = stored_range(&keys::run_place::prefix(run), after, recent.first, &encode);
        self.merge(recent, after, limit, &range, &|value| {
            let place = keys::run_place::decode_value(value).map_err(damaged("a run's entry"))?;
            Ok(is_wanted(place.delegation_id, place.event_type).then_some(place.location))
        })
    }

    /// How many events a run has.
    pub(crate) fn run_count(&self, run: [u8; 16]) -> Result<u64, StoreError> {
        let (first, mut count) = {
            let state = self.shared.read();
            let entries = || state.generations().flat_map(|one| one.of(Scope::Run, run));
            (entries().next().map(|entry| entry.seq), entries().count() as u64)
        };
        let encode = |seq| keys::run_place::encode(run, seq);
        let range = stored_range(&keys::run_place::prefix(run), Seq::ZERO, first, &encode);
        self.shared.engine.view().scan(INDEX, &range, Direction::Forward, &mut |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    /// As many places as a page of `limit` rows has room for: those of the tables, then those of memory.
    fn merge(
        &self,
        recent: Recent<Record>,
        after: Seq,
        limit: usize,
        range: &KeyRange,
        read: &ReadPlace<'_>,
    ) -> Result<Places, StoreError> {
        let (mut stored, mut room, mut failure) = (Vec::new(), Room::of(limit), None);
        if recent.is_all(after) || limit == 0 {
            return Ok(Places { stored, recent: recent.found });
        }
        self.shared.engine.view().scan(INDEX, range, Direction::Forward, &mut |_, value| {
            match read(value) {
                Ok(Some(place)) => {
                    room.take(place.length as usize);
                    stored.push(place);
                }
                Ok(None) => {}
                Err(error) => failure = Some(error),
            }
            flow(room.is_left() && failure.is_none())
        })?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        let recent = recent.found.into_iter().take_while(|record| room.admit(record.bytes().len())).collect();
        Ok(Places { stored, recent })
    }

    /// Shows the records of a task after a seq, ascending, until there are no more or enough.
    pub(crate) fn task_records(
        &self,
        task: [u8; 16],
        after: Seq,
        visit: &mut VisitRecord<'_>,
    ) -> Result<(), StoreError> {
        let mut after = after;
        loop {
            let recent = self.recent_of_task(task, after);
            if !recent.is_all(after) && self.stored_of_task(task, after, recent.first, visit)?.is_break() {
                return Ok(());
            }
            for (seq, record) in &recent.found {
                after = *seq;
                if visit(record.bytes())?.is_break() {
                    return Ok(());
                }
            }
            if recent.found.len() < TASK_PAGE {
                return Ok(());
            }
        }
    }

    fn recent_of_task(&self, task: [u8; 16], after: Seq) -> Recent<(Seq, Record)> {
        self.shared.read().recent((Scope::Task, task), after, TASK_PAGE, |one, entry| {
            one.record(entry).map(|record| (entry.seq, record))
        })
    }

    /// The copies of a task's records in the tables.
    fn stored_of_task(
        &self,
        task: [u8; 16],
        after: Seq,
        before: Option<Seq>,
        visit: &mut VisitRecord<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let encode = |seq| keys::task_event::encode(task, seq);
        let range = stored_range(&keys::task_event::prefix(task), after, before, &encode);
        let mut shown = Ok(ControlFlow::Continue(()));
        self.shared.engine.view().scan(TASKS, &range, Direction::Forward, &mut |_, record| {
            shown = visit(record);
            flow(matches!(shown, Ok(ControlFlow::Continue(()))))
        })?;
        shown
    }

    /// The commit that ends at a position, if one does.
    pub(crate) fn commit_at(&self, last: Position) -> Result<Option<Commit>, StoreError> {
        Ok(self.locate(last)?.map(|located| located.commit).filter(|commit| commit.last == last))
    }

    /// The commit that holds a position; none behind the end.
    pub(crate) fn locate(&self, position: Position) -> Result<Option<Located>, StoreError> {
        let recent = self.shared.read().generations().find_map(|one| {
            one.locate(position).map(|kept| Located {
                commit: kept.commit,
                address: kept.address,
                frame: Some(Arc::clone(&kept.frame)),
            })
        });
        if recent.is_some() || position == Position::ZERO {
            return Ok(recent);
        }
        let before = Position::new(position.get() - 1);
        let range = KeyRange::after(&keys::commit_place::encode(before), &keys::commit_place::prefix());
        let pairs = self.shared.engine.view().page(INDEX, &range, Direction::Forward, 1)?;
        let Some((key, value)) = pairs.first() else {
            return Ok(None);
        };
        let last = keys::commit_place::decode(key).map_err(damaged("the key of a commit"))?;
        let (commit, address) = keys::commit_place::decode_value(last, value).map_err(|source| {
            StoreError::Damaged { what: format!("the commit that ends at {last}"), source }
        })?;
        Ok((commit.first <= position).then_some(Located { commit, address, frame: None }))
    }

    /// The end of a stream; none if there is no such stream.
    pub(crate) fn tail(&self, stream: &StreamId) -> Result<Option<Tail>, StoreError> {
        let recent = self.shared.read().generations().rev().find_map(|one| one.tails.get(stream).copied());
        if recent.is_some() {
            return Ok(recent);
        }
        let value = self.shared.engine.get(INDEX, &keys::stream::encode(stream))?;
        value.map(|value| decode_tail(stream, &value)).transpose()
    }

    /// What was appended under the idempotency key with this hash.
    pub(crate) fn key_use(&self, hash: [u8; 32]) -> Result<Option<KeyUse>, StoreError> {
        let recent = self.shared.read().generations().find_map(|one| one.keys.get(&hash).copied());
        if recent.is_some() {
            return Ok(recent);
        }
        let value = self.shared.engine.get(INDEX, &keys::idempotency::encode_hashed(hash))?;
        value
            .map(|value| keys::idempotency::decode_value(&value).map_err(damaged("an idempotency key")))
            .transpose()
    }

    /// Streams in the order of their names, after one.
    pub(crate) fn streams(
        &self,
        after: Option<&StreamId>,
        limit: usize,
    ) -> Result<Vec<StreamSummary>, StoreError> {
        let recent = self.recent_tails(after, limit);
        let prefix = keys::stream::prefix();
        let range = match after {
            Some(stream) => KeyRange::after(&keys::stream::encode(stream), &prefix),
            None => KeyRange::prefix(&prefix),
        };
        let stored = self.shared.engine.view().page(INDEX, &range, Direction::Forward, limit)?;
        let mut tails = BTreeMap::new();
        for (key, value) in stored {
            let stream = keys::stream::decode(&key).map_err(damaged("the key of a stream"))?;
            let tail = decode_tail(&stream, &value)?;
            tails.insert(key, (stream, tail));
        }
        tails.extend(recent);
        let summary =
            |(stream, tail): (_, Tail)| StreamSummary { stream, seq: tail.seq, position: tail.position };
        Ok(tails.into_values().map(summary).take(limit).collect())
    }

    /// The streams in memory after one, by their keys. The newest tail of each counts.
    fn recent_tails(&self, after: Option<&StreamId>, limit: usize) -> BTreeMap<Vec<u8>, (StreamId, Tail)> {
        let from = after.map_or(Bound::Unbounded, |stream| Bound::Excluded(stream.clone()));
        let state = self.shared.read();
        let tails = state
            .generations()
            .flat_map(|one| one.tails.range((from.clone(), Bound::Unbounded)).take(limit))
            .map(|(stream, tail)| (keys::stream::encode(stream), (stream.clone(), *tail)));
        tails.collect()
    }
}

/// Reads a place out of an entry; none if the event is not wanted.
type ReadPlace<'a> = dyn Fn(&[u8]) -> Result<Option<super::Location>, StoreError> + 'a;

/// The entries of a scope after a seq that are before what memory has.
fn stored_range(prefix: &[u8], after: Seq, before: Option<Seq>, encode: &dyn Fn(Seq) -> Vec<u8>) -> KeyRange {
    match before {
        Some(before) => KeyRange::before(&encode(before), prefix).beyond(&encode(after), Direction::Forward),
        None => KeyRange::after(&encode(after), prefix),
    }
}

fn flow(goes_on: bool) -> ControlFlow<()> {
    if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

fn decode_tail(stream: &StreamId, value: &[u8]) -> Result<Tail, StoreError> {
    keys::stream::decode_value(value)
        .map_err(|source| StoreError::Damaged { what: format!("the tail of stream {stream}"), source })
}
