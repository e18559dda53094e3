//! Following the chains, event by event: what must be done in order, and little enough for one
//! thread. It takes the stored hashes as they are; whether they fit the records is checked beside
//! it, from what it gives out.

use std::{collections::HashMap, sync::Arc};

use super::DamageKind;
use crate::{
    chain::{self, Hash},
    codec::record::{self, HASH_BYTES, Outline},
    keys::location::Location,
    position::{Position, Seq},
    segment::frame::Frame,
    store::{Commit, Head, Tail},
    stream_id::StreamId,
};

/// A record in its place, with the hash that it must follow from.
pub(super) struct Linked {
    pub(super) previous: Hash,
    pub(super) outline: Outline,
    pub(super) location: Location,
    frame: Arc<[u8]>,
    offset: u32,
}

impl Linked {
    /// Its bytes, hash included.
    pub(super) fn record(&self) -> &[u8] {
        let start = self.offset as usize;
        self.frame.get(start..start + self.location.length as usize).unwrap_or_default()
    }
}

/// A head that the log must have passed, and what it means if it has not.
pub(super) struct Milestone {
    pub(super) head: Head,
    pub(super) differs: DamageKind,
}

/// The state after the last event that was followed.
pub(super) struct Link {
    pub(super) position: Position,
    chain: Hash,
    pub(super) tails: HashMap<StreamId, Tail>,
    pub(super) commit_count: u64,
    milestones: Vec<Milestone>,
}

impl Link {
    /// Begins before the first event.
    pub(super) fn new(milestones: Vec<Milestone>) -> Self {
        Self {
            position: Position::ZERO,
            chain: chain::START,
            tails: HashMap::new(),
            commit_count: 0,
            milestones,
        }
    }

    /// Follows the events of a frame. What is wrong is wrong with the position after the last that
    /// was followed, or with that one if it was.
    pub(super) fn follow(
        &mut self,
        frame: &Frame<'_>,
        bytes: &Arc<[u8]>,
        job: &mut Vec<Linked>,
    ) -> Result<(), (Position, DamageKind)> {
        for (offset, record) in frame.records() {
            let address = frame.header.address + u64::from(offset);
            let location = Location { address, length: u32::try_from(record.len()).unwrap_or(u32::MAX) };
            let (previous, outline) =
                self.follow_event(record).map_err(|kind| (self.position.next(), kind))?;
            job.push(Linked { previous, outline, location, frame: Arc::clone(bytes), offset });
            if let Some(kind) = self.passed_other() {
                return Err((self.position, kind));
            }
        }
        self.end_commit(&frame.header.commit()).map_err(|kind| (self.position, kind))
    }

    fn follow_event(&mut self, record: &[u8]) -> Result<(Hash, Outline), DamageKind> {
        let expected = self.position.next();
        let unreadable = |reason: String| DamageKind::Unreadable { reason };
        let outline = record::outline(record).map_err(|error| unreadable(error.to_string()))?;
        if outline.position != expected {
            return Err(DamageKind::Displaced { found: outline.position });
        }
        let hash =
            *record.last_chunk::<HASH_BYTES>().ok_or_else(|| unreadable("it has no hash".to_owned()))?;
        let before = self.tails.get_mut(&outline.stream);
        let (seq, previous) = before.as_ref().map_or((Seq::ZERO, chain::START), |tail| (tail.seq, tail.hash));
        if seq.next() != outline.seq {
            let (stream, expected, found) = (outline.stream, seq.next(), outline.seq);
            return Err(DamageKind::SeqGap { stream, expected, found });
        }
        let tail = Tail { seq: outline.seq, hash, position: expected };
        match before {
            Some(known) => *known = tail,
            None => drop(self.tails.insert(outline.stream.clone(), tail)),
        }
        self.position = expected;
        self.chain = chain::log_chain(&self.chain, &hash);
        Ok((previous, outline))
    }

    /// Whether a milestone at the present position has another chain.
    fn passed_other(&self) -> Option<DamageKind> {
        let is_other = |one: &&Milestone| one.head.position == self.position && one.head.chain != self.chain;
        self.milestones.iter().find(is_other).map(|one| one.differs.clone())
    }

    fn end_commit(&mut self, commit: &Commit) -> Result<(), DamageKind> {
        if commit.last != self.position || commit.chain != self.chain {
            return Err(DamageKind::ChainDiffers);
        }
        self.commit_count += 1;
        Ok(())
    }
}

/// Whether the record is what its hash says.
pub(super) fn hash_fits(linked: &Linked) -> bool {
    linked
        .record()
        .split_last_chunk::<HASH_BYTES>()
        .is_some_and(|(hashed, hash)| chain::event_hash(&linked.previous, hashed) == *hash)
}
