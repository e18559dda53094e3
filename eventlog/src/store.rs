//! The log's backend, at the level of commits and reads.
//!
//! The rules that every backend keeps:
//!
//! 1. `commit` writes all of a group or nothing, and returns when it would survive power loss.
//! 2. Nothing of a group can be read before that.
//! 3. After an error of `commit` nobody knows what was written; the caller stops writing.
//! 4. Only one writer calls `commit`, with positions that follow the head without a gap.
//! 5. Reads may run at the same time, and each sees one consistent state.
//! 6. A read gives out about `PAGE_BYTES_MAX` bytes of events at most, and at least one event if
//!    there is one: only an empty page says that there are no more.
//!
//! `SegmentStore` keeps the rules on files of its own with an index beside them. A distributed one can keep them with one
//! message per group. One suite (`conformance`) is run against each.

use std::{ops::ControlFlow, sync::Arc};

use domain::ids::RunHash;
use jiff::Timestamp;

use crate::{
    append::IdempotencyKey,
    chain::{self, Hash},
    codec::{DecodeError, EncodeError},
    engine::EngineError,
    keyring::Keyring,
    position::{Position, Seq},
    read::RunQuery,
    recorded::{EventHashes, RecordedEvent},
    segment::SegmentError,
    stream_id::StreamId,
};

mod far;
mod faulty;
pub(crate) mod segment_store;

pub use faulty::FaultyStore;
pub use segment_store::SegmentStore;

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// Its last event's place in the stream.
    pub seq: Seq,
    /// Its last event's hash.
    pub hash: Hash,
    /// Its last event's place in the log.
    pub position: Position,
}

/// One commit: the events from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// Its first event.
    pub first: Position,
    /// Its last event.
    pub last: Position,
    /// The chain of the log after `last`.
    pub chain: Hash,
    /// When, by the log's clock.
    pub committed_at: Timestamp,
}

/// The last durable event and the chain after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The last durable position.
    pub position: Position,
    /// The chain of the log after it.
    pub chain: Hash,
}

impl Head {
    /// The head of an empty log.
    pub const EMPTY: Self = Self { position: Position::ZERO, chain: chain::START };
}

/// What was appended under an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyUse {
    /// Covers what the events said.
    pub digest: Hash,
    /// Whether the digest was made with the thread's key.
    pub is_keyed: bool,
    /// Their first position.
    pub first: Position,
    /// How many there are.
    pub count: u32,
}

/// An event with its bytes.
#[derive(Debug, Clone)]
pub struct StoredEvent {
    /// The event.
    pub event: Arc<RecordedEvent>,
    /// The record, hash included.
    pub record: Vec<u8>,
    pub(crate) hashes: EventHashes,
}

/// Everything that one commit writes.
#[derive(Debug, Clone)]
pub struct CommitGroup {
    /// The commit.
    pub commit: Commit,
    /// Its events in position order.
    pub events: Vec<StoredEvent>,
    /// The new end of each stream that it touches.
    pub tails: Vec<(StreamId, Tail)>,
    /// The idempotency keys that it uses up.
    pub keys: Vec<(StreamId, IdempotencyKey, KeyUse)>,
}

/// A stream in a list of streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSummary {
    /// The stream.
    pub stream: StreamId,
    /// Its last event's place in the stream.
    pub seq: Seq,
    /// Its last event's place in the log.
    pub position: Position,
}

/// A backend failed, or holds something that it should not.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The engine failed.
    #[error("the storage engine failed")]
    Engine(#[from] EngineError),
    /// The files of the record failed, or hold something that they should not.
    #[error("the record failed")]
    Record(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Stored bytes are damaged. `remit verify` says how far the damage goes.
    #[error("damaged data: {what}")]
    Damaged {
        /// Which bytes.
        what: String,
        /// What is wrong with them.
        #[source]
        source: DecodeError,
    },
    /// An index names an event that is not there.
    #[error("damaged data: event {position} is in an index but not in the log")]
    MissingEvent {
        /// The event.
        position: Position,
    },
    /// An event has a field that a record cannot hold.
    #[error("the event cannot be stored")]
    Unencodable(#[from] EncodeError),
    /// A key could not be found, made or saved.
    #[error("could not use the keys")]
    Keys(#[source] std::io::Error),
    /// The stream has sealed events, and its key is not there.
    #[error("the key of stream {stream} is lost; restore the key file from a backup")]
    KeyMissing {
        /// The stream.
        stream: StreamId,
    },
    /// The index has another last event for the stream than the log. `remit verify` says more.
    #[error("damaged data: stream {stream} does not end at seq {seq}, as the index has it")]
    TailDiffers {
        /// The stream.
        stream: StreamId,
        /// Where it ends by the index.
        seq: Seq,
    },
    /// A fault that a test asked for.
    #[error("injected fault")]
    Injected,
}

impl From<SegmentError> for StoreError {
    fn from(error: SegmentError) -> Self {
        Self::Record(Box::new(error))
    }
}

/// Is shown an event and the bytes that its hash covers, and says whether it wants more.
pub type Replayed<'a> = dyn FnMut(RecordedEvent, &[u8]) -> ControlFlow<()> + 'a;

/// What a store keeps between two pages of one replay, so that it neither looks for the next page nor
/// reads again what it has read ahead. It may be thrown away at any time.
#[derive(Default)]
pub struct Kept(Option<segment_store::Walked>);

/// A backend of the log. See the module for the rules.
pub trait LogStore: Send + Sync {
    /// The keys that its records are sealed with.
    fn keyring(&self) -> &Arc<Keyring>;
    /// The segments and index below, for checks and copies of everything; none without them.
    fn on_segments(&self) -> Option<&SegmentStore> {
        None
    }
    /// The head of what is durable.
    fn head(&self) -> Result<Head, StoreError>;
    /// The commit that ends at this position, if one does.
    fn commit_at(&self, last: Position) -> Result<Option<Commit>, StoreError>;
    /// Writes a group durably.
    fn commit(&self, group: CommitGroup) -> Result<(), StoreError>;
    /// The end of a stream; none if there is no such stream.
    fn tail(&self, stream: &StreamId) -> Result<Option<Tail>, StoreError>;
    /// What was appended under a key.
    fn key_use(&self, stream: &StreamId, key: &IdempotencyKey) -> Result<Option<KeyUse>, StoreError>;
    /// Events after a position, ascending.
    fn read_all(&self, after: Position, limit: usize) -> Result<Vec<RecordedEvent>, StoreError>;
    /// Shows events after a position, ascending, with the bytes that their hashes cover. Whoever reads
    /// page by page gives back what was kept after the page before.
    fn replay(
        &self,
        after: Position,
        limit: usize,
        kept: &mut Kept,
        visit: &mut Replayed<'_>,
    ) -> Result<(), StoreError>;
    /// Events of a stream after a seq, ascending.
    fn read_stream(
        &self,
        stream: &StreamId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<RecordedEvent>, StoreError>;
    /// Events of a run, ascending; none of a run that was erased.
    fn read_run(&self, query: &RunQuery) -> Result<Vec<RecordedEvent>, StoreError>;
    /// The first event of a run, one that nobody can read included; none if it has none.
    fn run_first(&self, run: RunHash) -> Result<Option<Position>, StoreError>;
    /// How many events a run has, those included that nobody can read.
    fn run_events(&self, run: RunHash) -> Result<u64, StoreError>;
    /// Streams in the order of their names, after one.
    fn streams(&self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamSummary>, StoreError>;
}
