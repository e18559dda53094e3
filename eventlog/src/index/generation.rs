//! What the index holds in memory: the commits since some position, and what finds their events.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use domain::ids::DelegationId;

use super::{Checkpoint, IndexedCommit, Location, Record};
use crate::{
    codec::record::Type,
    position::{Position, Seq},
    store::{Commit, KeyUse, Tail},
    stream_id::StreamId,
};

/// What an entry costs beside its frame, about.
const ENTRY_BYTES: usize = 192;

/// What events are found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Stream,
    Run,
    Task,
}

/// A commit in memory.
pub(super) struct Kept {
    pub(super) commit: Commit,
    pub(super) address: u64,
    pub(super) frame: Arc<[u8]>,
}

/// An event in memory.
pub(super) struct Entry {
    pub(super) seq: Seq,
    pub(super) delegation_id: Option<DelegationId>,
    pub(super) event_type: Type,
    /// The number of its commit here.
    commit: u32,
    offset: u32,
    length: u32,
}

impl Entry {
    /// The length of its record.
    pub(super) fn bytes(&self) -> usize {
        self.length as usize
    }
}

/// The numbers of a scope's entries, in the order of their seqs.
pub(super) type Entries = HashMap<[u8; 16], Vec<u32>>;

/// Commits that follow each other.
#[derive(Default)]
pub(super) struct Generation {
    commits: Vec<Kept>,
    entries: Vec<Entry>,
    streams: Entries,
    runs: Entries,
    tasks: Entries,
    pub(super) tails: BTreeMap<StreamId, Tail>,
    pub(super) keys: HashMap<[u8; 32], KeyUse>,
    bytes: usize,
}

impl Generation {
    pub(super) fn add(&mut self, commit: IndexedCommit) {
        let IndexedCommit { commit, address, frame, events, tails, keys } = commit;
        let number = count(self.commits.len());
        self.bytes += frame.len() + (events.len() + keys.len()) * ENTRY_BYTES;
        self.commits.push(Kept { commit, address, frame });
        for event in events {
            let entry = count(self.entries.len());
            self.streams.entry(event.stream).or_default().push(entry);
            if let Some(run) = event.run {
                self.runs.entry(run).or_default().push(entry);
            }
            if let Some(task) = event.task {
                self.tasks.entry(task).or_default().push(entry);
            }
            self.entries.push(Entry {
                seq: event.seq,
                delegation_id: event.delegation_id,
                event_type: event.event_type,
                commit: number,
                offset: event.offset,
                length: event.length,
            });
        }
        self.tails.extend(tails);
        self.keys.extend(keys);
    }

    /// The memory that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn all(&self, scope: Scope) -> &Entries {
        match scope {
            Scope::Stream => &self.streams,
            Scope::Run => &self.runs,
            Scope::Task => &self.tasks,
        }
    }

    /// The entries of one scope, ascending by seq.
    pub(super) fn of(&self, scope: Scope, hash: [u8; 16]) -> impl Iterator<Item = &Entry> {
        self.numbers(scope, hash).iter().filter_map(|number| self.entry(*number))
    }

    /// The entries of one scope after a seq, ascending.
    pub(super) fn after(&self, scope: Scope, hash: [u8; 16], after: Seq) -> impl Iterator<Item = &Entry> {
        let numbers = self.numbers(scope, hash);
        let start = numbers.partition_point(|number| self.entry(*number).is_some_and(|one| one.seq <= after));
        numbers.get(start..).unwrap_or_default().iter().filter_map(|number| self.entry(*number))
    }

    fn numbers(&self, scope: Scope, hash: [u8; 16]) -> &[u32] {
        self.all(scope).get(&hash).map_or(&[], Vec::as_slice)
    }

    pub(super) fn entry(&self, number: u32) -> Option<&Entry> {
        self.entries.get(number as usize)
    }

    pub(super) fn commits(&self) -> &[Kept] {
        &self.commits
    }

    /// The commit that holds a position.
    pub(super) fn locate(&self, position: Position) -> Option<&Kept> {
        let index = self.commits.partition_point(|kept| kept.commit.last < position);
        self.commits.get(index).filter(|kept| kept.commit.first <= position)
    }

    pub(super) fn record(&self, entry: &Entry) -> Option<Record> {
        let kept = self.commits.get(entry.commit as usize)?;
        Some(Record { frame: Arc::clone(&kept.frame), offset: entry.offset, length: entry.length })
    }

    /// Where the record of an entry lies in the segments.
    pub(super) fn location(&self, entry: &Entry) -> Option<Location> {
        let kept = self.commits.get(entry.commit as usize)?;
        Some(Location { address: kept.address + u64::from(entry.offset), length: entry.length })
    }

    /// How far the tables go once this is in them; none if it is empty.
    pub(super) fn checkpoint(&self) -> Option<Checkpoint> {
        let last = self.commits.last()?;
        let head = crate::store::Head { position: last.commit.last, chain: last.commit.chain };
        Some(Checkpoint { head, end: last.address + last.frame.len() as u64 })
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
