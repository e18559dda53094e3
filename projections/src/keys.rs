//! What is stored in the views' folder, and under which key.
//!
//! | kind | key                        | row                     | view    |
//! |------|----------------------------|-------------------------|---------|
//! | 1    | view name                  | checkpoint              | –       |
//! | 2    | view name, position, thread | parked event           | –       |
//! | 3    | thread                     | thread                  | threads |
//! | 4    | thread, hash of run        | nothing: it was started | threads |
//! | 5    | thread, hash of run        | run                     | runs    |
//! | 6    | thread, first seq          | run id                  | runs    |
//! | 7    | thread, delegation         | ledger entry            | ledger  |
//! | 8    | thread, first seq          | delegation id           | ledger  |
//! | 9    | thread, hash of run, first seq | delegation id           | ledger  |
//! | 10   | thread, delegation         | card head               | cards   |
//! | 11   | thread, delegation, chunk, hash of run | card parts  | cards   |
//! | 12   | thread, hash of run and task | newest delegation id    | cards   |
//! | 13   | as kind 3, seq             | the thread as it was then | threads |
//! | 14   | as kind 5, seq             | the run as it was then  | runs    |
//! | 15   | as kind 10, seq            | the card head as it was then | cards |
//! | 20   | thread, seq                | nothing: it is a message that is shown | messages |
//! | 21   | thread, seq                | nothing: it is a message that is hidden | messages |
//! | 22   | thread, hash of run, seq   | its number, and the last answer | messages |
//! | 23   | thread, hash of run        | the same of its last message | messages |
//! | 25   | thread, hash of run        | the lead's model        | usage   |
//! | 26   | thread, hash of run, delegation | a subagent's model and type | usage |
//! | 27   | thread, hash of run, hash of day, model and caller | calls and tokens | usage |
//! | 28   | thread, seq                | cap                     | caps    |
//! | 29   | thread, chunk, hash of run | receipts                | receipts |
//! | 30   | thread, hash of run, chunk | nothing: there are some | receipts |
//! | 31   | as kind 27, seq            | the cell as it was then | usage   |
//!
//! The first byte of each key is its kind. Names end with a zero byte, which none of them
//! contains, so that no name is mistaken for the beginning of another. Numbers are big endian. So
//! the order of the bytes is the order of the parts. What a thread has much of is kept in chunks of
//! [`CHUNK_SEQS`] seqs: a row costs more than what is in it.
//!
//! Rows are JSON, and chunks are packed; all but checkpoints are sealed with the key of the thread that their key names.
//! Keys are not sealed: they hold threads' ids, our own ids, numbers and hashes. The ids of runs and
//! tasks come from clients and providers, who may write there what they like.
//!
//! A view owns its kinds: to rebuild it is to delete what is under them. Whoever changes a key or
//! a row raises the version of its view; nothing here has to be readable for ever.

use std::{cell::RefCell, sync::Arc};

use domain::{
    digest,
    ids::{DelegationId, RunId, ThreadId, ToolCallId},
};
use eventlog::engine::KeyRange;
use serde::{Serialize, de::DeserializeOwned};
use uuid::Uuid;

use crate::views::{card::CardParts, receipts::Receipts};

pub(crate) mod cap;
pub(crate) mod card;
pub(crate) mod checkpoint;
pub(crate) mod ledger;
pub(crate) mod message;
pub(crate) mod receipt;
pub(crate) mod run;
pub(crate) mod thread;
pub(crate) mod usage;

#[cfg(test)]
mod tests;

/// Ends a name in a key. The alphabet of names is above it.
const NAME_END: u8 = 0;

/// Seqs of a thread between two kept states of a row, where every state is asked for now and then.
/// Fewer mean more rows, more mean more events to fold for an answer.
pub(crate) const MOMENT_SEQS: u64 = if cfg!(test) { 3 } else { 256 };

/// Seqs of a thread in one chunk. More mean fewer rows to seal, to look up and to open; fewer mean less
/// to write again whenever something is added to the newest chunk.
pub(crate) const CHUNK_SEQS: u64 = if cfg!(test) { 3 } else { 32 };

/// The chunk that a seq is in.
pub(crate) const fn chunk_of(seq: u64) -> u64 {
    seq / CHUNK_SEQS
}

/// First byte of every key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum KeyKind {
    Checkpoint = 1,
    Parked = 2,
    Thread = 3,
    ThreadRun = 4,
    Run = 5,
    RunOrder = 6,
    LedgerEntry = 7,
    LedgerOrder = 8,
    LedgerOfRun = 9,
    CardHead = 10,
    CardParts = 11,
    CardOfTask = 12,
    ThreadThen = 13,
    RunThen = 14,
    CardHeadThen = 15,
    VisibleMessage = 20,
    HiddenMessage = 21,
    MessageOfRun = 22,
    RunMessages = 23,
    LeadModel = 25,
    SubagentModel = 26,
    UsageCell = 27,
    Cap = 28,
    Receipts = 29,
    ReceiptsOfRun = 30,
    UsageCellThen = 31,
}

/// The thread that an encoded key belongs to; none for a checkpoint, and for what is no key.
pub(crate) fn thread_of(key: &[u8]) -> Option<ThreadId> {
    let (kind, rest) = key.split_first()?;
    let mut parts = KeyReader(rest);
    if *kind == KeyKind::Parked as u8 {
        parts.name()?;
        parts.number()?;
    }
    (*kind != KeyKind::Checkpoint as u8).then(|| parts.thread())?
}

/// The key of the state that a row had at a seq, from the row's key.
pub(crate) fn moment_key(kind: KeyKind, key: &[u8], seq: u64) -> Vec<u8> {
    [&[kind as u8], key.get(1..).unwrap_or_default(), &seq.to_be_bytes()].concat()
}

/// Stands for a run, or for a task of a run, in a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameHash(Arc<str>);

thread_local! {
    /// The run that was hashed last: neighbouring events are mostly of one run, and every view asks.
    static NEWEST_RUN: RefCell<Option<(ThreadId, RunId, NameHash)>> = const { RefCell::new(None) };
}

impl NameHash {
    /// Of a run.
    pub(crate) fn of_run(thread_id: &ThreadId, run_id: &RunId) -> Self {
        NEWEST_RUN.with_borrow_mut(|newest| match newest {
            Some((thread, run, hash)) if (&*thread, &*run) == (thread_id, run_id) => hash.clone(),
            Some(_) | None => {
                let hash = Self::of_text(&format!("{thread_id}/{run_id}"));
                *newest = Some((thread_id.clone(), run_id.clone(), hash.clone()));
                hash
            }
        })
    }

    /// Of the run that an event is of, or of none: no run's name is empty.
    pub(crate) fn of_any_run(thread_id: &ThreadId, run_id: Option<&RunId>) -> Self {
        match run_id {
            Some(run_id) => Self::of_run(thread_id, run_id),
            None => Self::of_text(&format!("{thread_id}/")),
        }
    }

    fn of_text(text: &str) -> Self {
        Self(digest::sha256_hex(text.as_bytes()).into())
    }

    /// Of several words. They are told apart: none of them has a zero byte, or its hash is another one.
    pub(crate) fn of_words(words: &[&str]) -> Self {
        Self::of_text(&words.join("\0"))
    }

    /// Of a task.
    pub(crate) fn of_task(thread_id: &ThreadId, run_id: &RunId, task_id: &ToolCallId) -> Self {
        Self::of_text(&format!("{thread_id}/{run_id}/{task_id}"))
    }

    /// Any text in its place.
    #[cfg(test)]
    pub(crate) fn from_text(text: &str) -> Self {
        Self(text.into())
    }
}

/// What can be stored under a key: JSON, where nothing else is said.
pub(crate) trait Row: Sized + Clone + Send + 'static {
    /// The row as it is before it is sealed.
    fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error>;

    /// The row from what `to_bytes` made.
    fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error>;
}

impl<T: Serialize + DeserializeOwned + Clone + Send + 'static> Row for T {
    fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

/// A row as a person reads it: as JSON.
pub(crate) fn shown(kind: KeyKind, row: &[u8]) -> String {
    let packed = match kind {
        KeyKind::CardParts => {
            CardParts::from_bytes(row).and_then(|row| serde_json::to_string(&row.unpacked()?))
        }
        KeyKind::Receipts => {
            Receipts::from_bytes(row).and_then(|row| serde_json::to_string(&row.unpacked()?))
        }
        KeyKind::Checkpoint
        | KeyKind::Parked
        | KeyKind::Thread
        | KeyKind::ThreadRun
        | KeyKind::Run
        | KeyKind::RunOrder
        | KeyKind::LedgerEntry
        | KeyKind::LedgerOrder
        | KeyKind::LedgerOfRun
        | KeyKind::CardHead
        | KeyKind::CardOfTask
        | KeyKind::ThreadThen
        | KeyKind::RunThen
        | KeyKind::CardHeadThen
        | KeyKind::VisibleMessage
        | KeyKind::HiddenMessage
        | KeyKind::MessageOfRun
        | KeyKind::RunMessages
        | KeyKind::LeadModel
        | KeyKind::SubagentModel
        | KeyKind::UsageCell
        | KeyKind::UsageCellThen
        | KeyKind::Cap
        | KeyKind::ReceiptsOfRun => return String::from_utf8_lossy(row).into_owned(),
    };
    packed.unwrap_or_else(|error| error.to_string())
}

/// A key, which also says what is stored under it.
pub(crate) trait RowKey: Sized {
    /// Its first byte.
    const KIND: KeyKind;
    /// What is stored under it.
    type Row: Row;
    /// Where states of the row are kept as they were: one for each [`MOMENT_SEQS`] seqs of the thread
    /// in which the row changed.
    const MOMENTS: Option<KeyKind> = None;

    /// The seq of the newest event in a row of which states are kept.
    fn last_seq(_row: &Self::Row) -> u64 {
        0
    }

    /// Adds the parts in their order.
    fn write(&self, parts: &mut KeyWriter);

    /// Takes the parts in their order. `None` when they are not as `write` makes them.
    fn read(parts: &mut KeyReader<'_>) -> Option<Self>;

    /// The key as bytes.
    fn encode(&self) -> Vec<u8> {
        let mut parts = KeyWriter::new(Self::KIND);
        self.write(&mut parts);
        parts.0
    }

    /// The same, in place of what is in this memory.
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        bytes.clear();
        bytes.push(Self::KIND as u8);
        let mut parts = KeyWriter(std::mem::take(bytes));
        self.write(&mut parts);
        *bytes = parts.0;
    }

    /// The key from its bytes.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let mut parts = KeyReader(rest);
        let key = (*kind == Self::KIND as u8).then(|| Self::read(&mut parts))??;
        parts.0.is_empty().then_some(key)
    }
}

/// Puts a key together.
pub(crate) struct KeyWriter(Vec<u8>);

impl KeyWriter {
    /// The beginning of all keys of a kind.
    pub(crate) fn new(kind: KeyKind) -> Self {
        Self(vec![kind as u8])
    }

    /// The beginning of all keys of a kind that belong to a thread.
    pub(crate) fn of_thread(kind: KeyKind, thread_id: &ThreadId) -> Self {
        let mut parts = Self::new(kind);
        parts.name(thread_id.as_str());
        parts
    }

    pub(crate) fn name(&mut self, name: &str) -> &mut Self {
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(NAME_END);
        self
    }

    pub(crate) fn hash(&mut self, hash: &NameHash) -> &mut Self {
        self.name(&hash.0)
    }

    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    pub(crate) fn delegation(&mut self, id: DelegationId) -> &mut Self {
        self.0.extend_from_slice(id.as_uuid().as_bytes());
        self
    }

    /// Whether a key begins with these parts.
    pub(crate) fn begins(&self, key: &[u8]) -> bool {
        key.starts_with(&self.0)
    }

    /// The keys that begin with these parts.
    pub(crate) fn range(&self) -> KeyRange {
        KeyRange::prefix(&self.0)
    }

    /// Those of them that come after `key`.
    pub(crate) fn range_after<K: RowKey>(&self, key: &K) -> KeyRange {
        KeyRange::after(&key.encode(), &self.0)
    }

    /// Those of them that are not less than the beginning of a key.
    pub(crate) fn range_from(&self, first: &Self) -> KeyRange {
        // No key is as short as its own beginning.
        KeyRange::after(&first.0, &self.0)
    }

    /// Those of them that end with a number from `first` to `last`, both included.
    pub(crate) fn range_within(&self, first: u64, last: u64) -> KeyRange {
        let first = [self.0.as_slice(), &first.to_be_bytes()].concat();
        let last = [self.0.as_slice(), &last.to_be_bytes()].concat();
        KeyRange::between(&first, &last)
    }

    /// Those of them that go on with a number from `first` to `last`, both included, and then with more.
    pub(crate) fn range_of_numbers(&self, first: u64, last: u64) -> KeyRange {
        let from = |number: u64| [self.0.as_slice(), &number.to_be_bytes()].concat();
        match last.checked_add(1) {
            // No key ends with its number, so that the upper end is none of them.
            Some(end) => KeyRange::between(&from(first), &from(end)),
            None => KeyRange::after(&from(first), &self.0),
        }
    }

    /// Those of them that come before `key`.
    pub(crate) fn range_before<K: RowKey>(&self, key: &K) -> KeyRange {
        KeyRange::before(&key.encode(), &self.0)
    }
}

/// Takes a key apart.
pub(crate) struct KeyReader<'a>(&'a [u8]);

impl<'a> KeyReader<'a> {
    pub(crate) fn name(&mut self) -> Option<&'a str> {
        let end = self.0.iter().position(|byte| *byte == NAME_END)?;
        let (name, rest) = self.0.split_at_checked(end)?;
        self.0 = rest.split_first()?.1;
        std::str::from_utf8(name).ok()
    }

    pub(crate) fn thread(&mut self) -> Option<ThreadId> {
        ThreadId::new(self.name()?).ok()
    }

    pub(crate) fn hash(&mut self) -> Option<NameHash> {
        self.name().map(|hash| NameHash(hash.into()))
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn delegation(&mut self) -> Option<DelegationId> {
        self.array().map(Uuid::from_bytes).map(DelegationId::from_uuid)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }
}
