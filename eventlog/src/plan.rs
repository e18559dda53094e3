//! What the next commit will write: each queued append is accepted, found to be a repeat, or
//! refused, against the durable state and the appends planned before it.
//!
//! Nothing is written here. When the commit fails the plan's knowledge is wrong, and the log is
//! poisoned, so it is never undone.

use std::{collections::HashMap, ops::Range, sync::Arc};

use jiff::Timestamp;

use crate::{
    append::{Append, AppendError, Appended, IdempotencyKey},
    chain::{self, Hash},
    codec::record,
    new_event::NewEvent,
    position::{Position, Seq},
    recorded::{Place, RecordedEvent},
    store::{Commit, CommitGroup, Head, KeyUse, LogStore, StoreError, StoredEvent, Tail},
    stream_id::StreamId,
};

/// Tails that are kept in memory between commits: about 200 bytes each. A miss costs one read.
const TAILS_MAX: usize = 4_096;

/// An append whose own rules are checked, with the digest of its content if it has a key.
pub(crate) struct Checked {
    pub(crate) append: Append,
    pub(crate) digest: Option<Hash>,
}

/// What becomes of one append when the commit succeeds.
pub(crate) enum Verdict {
    /// These of the planned events are its own.
    Accepted(Range<usize>),
    /// These of the planned events were its own the first time.
    RepeatPlanned(Range<usize>),
    /// It was recorded before this commit.
    RepeatRecorded(Appended),
    /// It is refused.
    Refused(AppendError),
}

/// The state of the log as the writer knows it, ahead of what is durable.
pub(crate) struct Planner {
    store: Arc<dyn LogStore>,
    head: Head,
    tails: HashMap<StreamId, Tail>,
    events: Vec<StoredEvent>,
    touched: HashMap<StreamId, Tail>,
    keys: HashMap<(StreamId, IdempotencyKey), KeyUse>,
}

impl Planner {
    pub(crate) fn new(store: Arc<dyn LogStore>, head: Head) -> Self {
        Self {
            store,
            head,
            tails: HashMap::new(),
            events: Vec::new(),
            touched: HashMap::new(),
            keys: HashMap::new(),
        }
    }

    /// Decides about one append.
    pub(crate) fn admit(&mut self, checked: Checked, recorded_at: Timestamp) -> Verdict {
        let Checked { append, digest } = checked;
        self.try_admit(append, digest, recorded_at).unwrap_or_else(Verdict::Refused)
    }

    fn try_admit(
        &mut self,
        append: Append,
        digest: Option<Hash>,
        recorded_at: Timestamp,
    ) -> Result<Verdict, AppendError> {
        let Append { stream, expected, idempotency_key, events } = append;
        if let (Some(key), Some(digest)) = (&idempotency_key, digest)
            && let Some(repeat) = self.find_repeat(&stream, key, digest)?
        {
            return Ok(repeat);
        }
        let tail = self.tail(&stream)?;
        let actual = tail.map(|tail| tail.seq);
        if !expected.holds(actual) {
            return Err(AppendError::Conflict { stream, expected, actual });
        }
        let range = self.place(&stream, tail, events, recorded_at)?;
        if let (Some(key), Some(digest)) = (idempotency_key, digest) {
            let key_use = KeyUse { digest, first: self.position_of(range.start), count: count(&range) };
            self.keys.insert((stream, key), key_use);
        }
        Ok(Verdict::Accepted(range))
    }

    /// Looks for an earlier append under the key, planned or recorded.
    fn find_repeat(
        &self,
        stream: &StreamId,
        key: &IdempotencyKey,
        digest: Hash,
    ) -> Result<Option<Verdict>, AppendError> {
        let planned = self.keys.get(&(stream.clone(), key.clone())).copied();
        let key_use = match planned {
            Some(key_use) => Some(key_use),
            None => self.store.key_use(stream, key).map_err(storage(stream))?,
        };
        let Some(key_use) = key_use else {
            return Ok(None);
        };
        if key_use.digest != digest {
            let (stream, key) = (stream.clone(), key.clone());
            return Err(AppendError::KeyReused { stream, key, first: key_use.first });
        }
        if planned.is_some() {
            return Ok(self.planned_range(key_use).map(Verdict::RepeatPlanned));
        }
        let before = Position::new(key_use.first.get().saturating_sub(1));
        let events = self.store.read_all(before, key_use.count as usize).map_err(storage(stream))?;
        let events = events.into_iter().map(Arc::new).collect();
        Ok(Some(Verdict::RepeatRecorded(Appended { events, is_repeat: true })))
    }

    /// Gives the events their places at the end of the stream and of the log.
    fn place(
        &mut self,
        stream: &StreamId,
        tail: Option<Tail>,
        events: Vec<NewEvent>,
        recorded_at: Timestamp,
    ) -> Result<Range<usize>, AppendError> {
        let start = self.events.len();
        let mut tail = tail.unwrap_or(Tail { seq: Seq::ZERO, hash: chain::START, position: Position::ZERO });
        let mut head = self.head;
        for event in events {
            let (position, seq) = (head.position.next(), tail.seq.next());
            let place = Place { position, stream: stream.clone(), seq, recorded_at };
            let stored = match store_event(RecordedEvent::new(event, place), &tail.hash) {
                Ok(stored) => stored,
                Err(error) => {
                    self.events.truncate(start);
                    return Err(storage(stream)(StoreError::Unencodable(error)));
                }
            };
            tail = Tail { seq, hash: stored.event.hash, position };
            head = Head { position, chain: chain::log_chain(&head.chain, &tail.hash) };
            self.events.push(stored);
        }
        self.head = head;
        self.tails.insert(stream.clone(), tail);
        self.touched.insert(stream.clone(), tail);
        Ok(start..self.events.len())
    }

    fn tail(&mut self, stream: &StreamId) -> Result<Option<Tail>, AppendError> {
        if let Some(tail) = self.tails.get(stream) {
            return Ok(Some(*tail));
        }
        let tail = self.store.tail(stream).map_err(storage(stream))?;
        if let Some(tail) = tail {
            self.tails.insert(stream.clone(), tail);
        }
        Ok(tail)
    }

    /// Takes what is to be committed, if anything is, with the events for the answers.
    pub(crate) fn take_group(&mut self, committed_at: Timestamp) -> Option<CommitGroup> {
        let first = self.events.first()?.event.position;
        let commit = Commit { first, last: self.head.position, chain: self.head.chain, committed_at };
        let keys = self.keys.drain().map(|((stream, key), key_use)| (stream, key, key_use)).collect();
        let tails = self.touched.drain().collect();
        let events = std::mem::take(&mut self.events);
        if self.tails.len() > TAILS_MAX {
            self.tails.clear();
        }
        Some(CommitGroup { commit, events, tails, keys })
    }

    /// The head after everything that was planned.
    pub(crate) fn head(&self) -> Head {
        self.head
    }

    fn position_of(&self, index: usize) -> Position {
        self.events.get(index).map_or(Position::ZERO, |stored| stored.event.position)
    }

    fn planned_range(&self, key_use: KeyUse) -> Option<Range<usize>> {
        let first = self.events.iter().position(|stored| stored.event.position == key_use.first)?;
        Some(first..first + key_use.count as usize)
    }
}

/// Encodes an event, hashes it, and puts the hash into both.
fn store_event(mut event: RecordedEvent, previous: &Hash) -> Result<StoredEvent, crate::codec::EncodeError> {
    let mut record = record::encode(&event)?;
    event.hash = chain::event_hash(previous, &record);
    record.extend_from_slice(&event.hash);
    Ok(StoredEvent { event: Arc::new(event), record })
}

fn count(range: &Range<usize>) -> u32 {
    u32::try_from(range.len()).unwrap_or(u32::MAX)
}

fn storage(stream: &StreamId) -> impl Fn(StoreError) -> AppendError {
    let stream = stream.clone();
    move |source| AppendError::Storage { stream: stream.clone(), source: Arc::new(source) }
}
