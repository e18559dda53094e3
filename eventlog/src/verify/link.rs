//! Following the chains, event by event: what must be done in order, and little enough for one
//! thread. It takes the stored hashes as they are; whether they fit the records is checked beside
//! it, from what it gives out.

use std::collections::{HashMap, VecDeque};

use super::{Damage, DamageKind};
use crate::{
    chain::{self, Hash},
    codec::record::{self, HASH_BYTES, Outline},
    engine::{Direction, Engine, KeyRange, Pair},
    keys::{self, EVENTS, INDEX},
    position::{Position, Seq},
    store::{Commit, Head, StoreError, Tail},
    stream_id::StreamId,
};

/// Commits that are read at once.
const COMMITS: usize = 1_024;

/// A record in its place, with the hash that it must follow from.
pub(super) struct Linked {
    pub(super) previous: Hash,
    pub(super) record: Vec<u8>,
    pub(super) outline: Outline,
}

/// A head that the log must have passed, and what it means if it has not.
pub(super) struct Milestone {
    pub(super) head: Head,
    pub(super) differs: DamageKind,
}

/// The state after the last event that was followed.
pub(super) struct Link<'a> {
    engine: &'a Engine,
    /// Whether streams may have events before the first that is followed.
    is_partial: bool,
    pub(super) position: Position,
    chain: Hash,
    pub(super) tails: HashMap<StreamId, Tail>,
    commits: VecDeque<Commit>,
    commit_end: Position,
    pub(super) commit_count: u64,
    milestones: Vec<Milestone>,
}

impl<'a> Link<'a> {
    /// Begins after a head whose chain is taken as true.
    pub(super) fn after(engine: &'a Engine, head: Head, milestones: Vec<Milestone>) -> Self {
        Self {
            engine,
            is_partial: head != Head::EMPTY,
            position: head.position,
            chain: head.chain,
            tails: HashMap::new(),
            commits: VecDeque::new(),
            commit_end: head.position,
            commit_count: 0,
            milestones,
        }
    }

    /// Follows one event. What was wrong before it is an error at its place.
    pub(super) fn follow(&mut self, pair: Pair) -> Result<Result<Linked, Damage>, StoreError> {
        let expected = self.position.next();
        let bad = |kind| Ok(Err(Damage { position: expected, kind }));
        let (key, record) = pair;
        if key != keys::event::encode(expected) {
            return bad(DamageKind::Missing);
        }
        let outline = match record::outline(&record) {
            Ok(outline) => outline,
            Err(error) => return bad(DamageKind::Unreadable { reason: error.to_string() }),
        };
        if outline.position != expected {
            return bad(DamageKind::Displaced { found: outline.position });
        }
        let Some(hash) = record.last_chunk::<HASH_BYTES>().copied() else {
            return bad(DamageKind::Unreadable { reason: "it has no hash".to_owned() });
        };
        let previous = match self.previous(&outline)? {
            Ok(previous) => previous,
            Err(kind) => return bad(kind),
        };
        let tail = Tail { seq: outline.seq, hash, position: expected };
        match self.tails.get_mut(&outline.stream) {
            Some(known) => *known = tail,
            None => drop(self.tails.insert(outline.stream.clone(), tail)),
        }
        self.position = expected;
        self.chain = chain::log_chain(&self.chain, &hash);
        Ok(Ok(Linked { previous, record, outline }))
    }

    /// Compares the chain after the event that was followed last with commits and milestones.
    pub(super) fn check_chain(&mut self) -> Result<Option<DamageKind>, StoreError> {
        let position = self.position;
        if self.commits.is_empty() {
            self.read_commits()?;
        }
        let Some(commit) = self.commits.front().copied() else {
            return Ok(Some(DamageKind::Uncommitted));
        };
        if commit.first != self.commit_end.next() {
            return Ok(Some(DamageKind::CommitMissing));
        }
        if commit.last == position {
            if commit.chain != self.chain {
                return Ok(Some(DamageKind::ChainDiffers));
            }
            self.commit_end = position;
            self.commit_count += 1;
            self.commits.pop_front();
        }
        let reached = self.milestones.iter().find(|milestone| milestone.head.position == position);
        Ok(reached.filter(|milestone| milestone.head.chain != self.chain).map(|one| one.differs.clone()))
    }

    fn read_commits(&mut self) -> Result<(), StoreError> {
        let range = KeyRange::after(&keys::commit::encode(self.commit_end), &keys::commit::prefix());
        for (key, value) in self.engine.view().page(INDEX, &range, Direction::Forward, COMMITS)? {
            let damaged = |source| StoreError::Damaged { what: "a commit".to_owned(), source };
            let last = keys::commit::decode(&key).map_err(damaged)?;
            self.commits.push_back(keys::commit::decode_value(last, &value).map_err(damaged)?);
        }
        Ok(())
    }

    /// The hash before an event in its stream.
    fn previous(&self, outline: &Outline) -> Result<Result<Hash, DamageKind>, StoreError> {
        let before = match self.tails.get(&outline.stream) {
            Some(tail) => Some((tail.seq, tail.hash)),
            None if self.is_partial && outline.seq > Seq::new(1) => self.look_up(outline)?,
            None => None,
        };
        let (seq, hash) = before.unwrap_or((Seq::ZERO, chain::START));
        if seq.next() == outline.seq {
            return Ok(Ok(hash));
        }
        let (stream, expected, found) = (outline.stream.clone(), seq.next(), outline.seq);
        Ok(Err(DamageKind::SeqGap { stream, expected, found }))
    }

    /// The event before one whose stream was not followed yet.
    fn look_up(&self, outline: &Outline) -> Result<Option<(Seq, Hash)>, StoreError> {
        let seq = Seq::new(outline.seq.get() - 1);
        let view = self.engine.view();
        let Some(value) = view.get(INDEX, &keys::stream_entry::encode(&outline.stream, seq))? else {
            return Ok(None);
        };
        let damaged = |source| StoreError::Damaged { what: "a stream entry".to_owned(), source };
        let position = keys::stream_entry::decode_value(&value).map_err(damaged)?;
        let record = view.get(EVENTS, &keys::event::encode(position))?;
        Ok(record.as_ref().and_then(|record| record.last_chunk()).map(|hash| (seq, *hash)))
    }
}

/// Whether the record is what its hash says.
pub(super) fn hash_fits(linked: &Linked) -> bool {
    linked
        .record
        .split_last_chunk::<HASH_BYTES>()
        .is_some_and(|(hashed, hash)| chain::event_hash(&linked.previous, hashed) == *hash)
}
