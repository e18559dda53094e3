//! What the next commit will write: each queued append is accepted, found to be a repeat, or
//! refused, against the durable state and the appends planned before it.
//!
//! Nothing is written here. When the commit fails the plan's knowledge is wrong, and the log is
//! poisoned, so it is never undone.

use std::{collections::HashMap, ops::Range, sync::Arc};

use jiff::Timestamp;

use self::sealing::{Digests, Prepared};

use crate::{
    append::{Append, AppendError, Appended, IdempotencyKey},
    chain::{self, Hash},
    codec::{EncodeError, digest, record},
    keyring::ScopeId,
    keys,
    new_event::Scope,
    position::{Position, Seq},
    recorded::{EventHashes, Place, RecordedEvent},
    seal::Seal,
    store::{Commit, CommitGroup, Head, KeyUse, LogStore, StoreError, StoredEvent, Tail},
    stream_id::StreamId,
};

mod sealing;

/// Tails that are kept in memory between commits: about 200 bytes each. A miss costs three.
const TAILS_MAX: usize = 4_096;

/// An append whose own rules are checked, with all that can be made of it before it has a place:
/// whoever appends does that, so that the one writer need not.
pub(crate) struct Checked {
    append: Append,
    /// Of its content, if it has an idempotency key.
    digest: Option<Hash>,
    stream: ScopeId,
    hashes: Vec<EventHashes>,
}

impl Checked {
    /// Checks an append and hashes its names.
    pub(crate) fn new(append: Append) -> Result<Self, AppendError> {
        if let Err(reason) = append.check() {
            return Err(AppendError::Invalid { stream: append.stream, reason });
        }
        let digest = append.idempotency_key.is_some().then(|| digest::content_digest(&append));
        let stream = ScopeId(keys::stream_entry::hash(&append.stream));
        let mut hashes: Vec<EventHashes> = Vec::with_capacity(append.events.len());
        let mut last: Option<&Scope> = None;
        for event in &append.events {
            let hashed = match hashes.last() {
                Some(same) if last == Some(&event.scope) => *same,
                _ => EventHashes::of(&append.stream, stream, &event.scope),
            };
            hashes.push(hashed);
            last = Some(&event.scope);
        }
        Ok(Self { append, digest, stream, hashes })
    }

    pub(crate) fn body_bytes(&self) -> usize {
        self.append.body_bytes()
    }

    pub(crate) const fn stream(&self) -> &StreamId {
        &self.append.stream
    }
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
        self.try_admit(checked, recorded_at).unwrap_or_else(Verdict::Refused)
    }

    fn try_admit(&mut self, checked: Checked, recorded_at: Timestamp) -> Result<Verdict, AppendError> {
        let Checked { append, digest, stream: scope, hashes } = checked;
        let Append { stream, expected, idempotency_key, events } = append;
        let stream_key = self.stream_key(&stream, scope)?;
        if idempotency_key.is_some() {
            // The answer of a repeat would need what is gone.
            self.check_runs(&stream, &events, &hashes)?;
        }
        if let (Some(key), Some(digest)) = (&idempotency_key, digest)
            && let Some(repeat) = self.find_repeat(&stream, key, &stream_key.digests(digest))?
        {
            return Ok(repeat);
        }
        let tail = self.tail(&stream)?;
        let actual = tail.map(|tail| tail.seq);
        if !expected.holds(actual) {
            return Err(AppendError::Conflict { stream, expected, actual });
        }
        let stream_key = self.ready_key(&stream, stream_key, tail)?;
        let events = self.prepare(&stream, &stream_key, events, hashes)?;
        let range = self.place(&stream, tail, events, recorded_at)?;
        if let (Some(key), Some(digest)) = (idempotency_key, digest) {
            let Digests { plain, keyed } = stream_key.digests(digest);
            let (first, count) = (self.position_of(range.start), count(&range));
            let key_use = KeyUse { digest: keyed.unwrap_or(plain), is_keyed: keyed.is_some(), first, count };
            self.keys.insert((stream, key), key_use);
        }
        Ok(Verdict::Accepted(range))
    }

    /// Looks for an earlier append under the key, planned or recorded.
    fn find_repeat(
        &self,
        stream: &StreamId,
        key: &IdempotencyKey,
        digests: &Digests,
    ) -> Result<Option<Verdict>, AppendError> {
        let planned = self.keys.get(&(stream.clone(), key.clone())).copied();
        let key_use = match planned {
            Some(key_use) => Some(key_use),
            None => self.store.key_use(stream, key).map_err(storage(stream))?,
        };
        let Some(key_use) = key_use else {
            return Ok(None);
        };
        if !digests.match_those_of(&key_use) {
            let (stream, key) = (stream.clone(), key.clone());
            return Err(AppendError::KeyReused { stream, key, first: key_use.first });
        }
        if planned.is_some() {
            return Ok(self.planned_range(key_use).map(Verdict::RepeatPlanned));
        }
        let events = self.recorded_range(key_use).map_err(storage(stream))?;
        Ok(Some(Verdict::RepeatRecorded(Appended { events, is_repeat: true })))
    }

    /// The events that were recorded under a key, page by page: together they may be larger than one.
    fn recorded_range(&self, key_use: KeyUse) -> Result<Vec<Arc<RecordedEvent>>, StoreError> {
        let (mut events, mut after) = (Vec::new(), before(key_use.first));
        while events.len() < key_use.count as usize {
            let page = self.store.read_all(after, key_use.count as usize - events.len())?;
            let Some(last) = page.last() else { break };
            after = last.position;
            events.extend(page.into_iter().map(Arc::new));
        }
        Ok(events)
    }

    /// Gives the events their places at the end of the stream and of the log.
    fn place(
        &mut self,
        stream: &StreamId,
        tail: Option<Tail>,
        events: Vec<Prepared>,
        recorded_at: Timestamp,
    ) -> Result<Range<usize>, AppendError> {
        let start = self.events.len();
        let mut tail = tail.unwrap_or(Tail { seq: Seq::ZERO, hash: chain::START, position: Position::ZERO });
        let mut head = self.head;
        for Prepared { event, hashes, scope_key } in events {
            let (position, seq) = (head.position.next(), tail.seq.next());
            let place = Place { position, stream: stream.clone(), seq, recorded_at };
            let mut event = RecordedEvent::new(event, place);
            if let Some(scope_key) = scope_key {
                event.seal = Seal::Opened(self.new_seal(&scope_key, &event.event_type));
            }
            let stored = match store_event(event, hashes, &tail.hash) {
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
        let tail = self.checked_tail(stream).map_err(storage(stream))?;
        if let Some(tail) = tail {
            self.tails.insert(stream.clone(), tail);
        }
        Ok(tail)
    }

    /// Reads the end of a stream, and looks whether it is: an older value in its place would give
    /// seqs out twice.
    fn checked_tail(&self, stream: &StreamId) -> Result<Option<Tail>, StoreError> {
        let tail = self.store.tail(stream)?;
        let seq = tail.map_or(Seq::ZERO, |tail| tail.seq);
        let after = self.store.read_stream(stream, seq, 1)?;
        let last = match tail {
            // By its own place: the commit that it is in may be large.
            Some(_) => self.store.read_stream(stream, Seq::new(seq.get().saturating_sub(1)), 1)?,
            None => Vec::new(),
        };
        let is_last = tail.is_none_or(|tail| {
            last.first().is_some_and(|event| {
                (&event.stream, event.seq, event.position, event.hash)
                    == (stream, tail.seq, tail.position, tail.hash)
            })
        });
        if is_last && after.is_empty() {
            Ok(tail)
        } else {
            Err(StoreError::TailDiffers { stream: stream.clone(), seq })
        }
    }

    /// Takes what is to be committed, if anything is, with the events for the answers.
    pub(crate) fn take_group(&mut self, committed_at: Timestamp) -> Option<CommitGroup> {
        if self.tails.len() > TAILS_MAX {
            self.tails.clear();
        }
        let first = self.events.first()?.event.position;
        let commit = Commit { first, last: self.head.position, chain: self.head.chain, committed_at };
        let keys = self.keys.drain().map(|((stream, key), key_use)| (stream, key, key_use)).collect();
        let tails = self.touched.drain().collect();
        let events = std::mem::take(&mut self.events);
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
pub(crate) fn store_event(
    mut event: RecordedEvent,
    hashes: EventHashes,
    previous: &Hash,
) -> Result<StoredEvent, EncodeError> {
    let mut record = record::encode_hashed(&event, &hashes)?;
    event.hash = chain::event_hash(previous, &record);
    record.extend_from_slice(&event.hash);
    Ok(StoredEvent { event: Arc::new(event), record, hashes })
}

/// The cursor that a position is the first after.
fn before(position: Position) -> Position {
    Position::new(position.get().saturating_sub(1))
}

fn count(range: &Range<usize>) -> u32 {
    u32::try_from(range.len()).unwrap_or(u32::MAX)
}

fn storage(stream: &StreamId) -> impl Fn(StoreError) -> AppendError {
    let stream = stream.clone();
    move |source| AppendError::Storage { stream: stream.clone(), source: Arc::new(source) }
}
