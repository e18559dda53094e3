//! Proving that the log is what was recorded: every record, chain, commit and index entry.
//!
//! The walk (`walk`) goes over the records in order, at about the speed at which they can be read:
//! one thread reads, one follows the chains, the others hash. What the indexes should hold is added
//! up on the way and compared with what they hold (`index`); only when the sums differ is the first
//! bad entry looked for.
//!
//! Hashes cover sealed bytes, so no key is needed for them and erased threads verify like others.

use std::{fmt, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    blob::{self, BlobDigest, BlobFault, Blobs},
    chain::Hash,
    engine::{Engine, EngineError},
    keyring::Keyring,
    open::{self, OpenError},
    options::Options,
    position::{Position, Seq},
    store::{Head, StoreError},
    stream_id::StreamId,
};

mod index;
mod link;
mod recent;
mod stream;
mod walk;

pub(crate) use index::entries as index_entries;
pub(crate) use recent::check_recent;
pub use stream::{BrokenLink, Fault, verify_stream};

/// The end of a log as somebody wrote it down: proof that the log went at least this far, and what
/// it held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedHead {
    /// The last position.
    pub position: Position,
    /// The chain of the log after it. 64 hexadecimal digits in JSON.
    #[serde(with = "crate::recorded::hex_hash")]
    pub chain: Hash,
}

impl From<Head> for ExportedHead {
    fn from(head: Head) -> Self {
        Self { position: head.position, chain: head.chain }
    }
}

/// How far a verification has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The last position that was looked at.
    pub position: Position,
    /// The last that will be.
    pub head: Position,
}

/// What to compare with, and whom to tell.
#[derive(Default)]
pub struct VerifyRequest<'a> {
    /// A head that was written down earlier.
    pub exported: Option<ExportedHead>,
    /// Is told after every thousand events or so.
    pub progress: Option<&'a mut dyn FnMut(Progress)>,
}

impl fmt::Debug for VerifyRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyRequest").field("exported", &self.exported).finish_non_exhaustive()
    }
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Where the log ends.
    pub head: ExportedHead,
    /// Events that were found whole: all of them, if there is no damage.
    pub events: u64,
    /// Commits.
    pub commits: u64,
    /// Streams.
    pub streams: u64,
    /// Bytes of all records.
    pub record_bytes: u64,
    /// Blobs that events name, found whole.
    pub blobs: u64,
    /// The first that is wrong.
    pub damage: Option<Damage>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.damage.is_none()
    }
}

/// The first bad place of a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("position {position}: {kind}")]
pub struct Damage {
    /// Where.
    pub position: Position,
    /// What is wrong there.
    pub kind: DamageKind,
}

/// What is wrong at a position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DamageKind {
    /// The event is not there.
    #[error("the event is missing")]
    Missing,
    /// The record cannot be read.
    #[error("the record cannot be read: {reason}")]
    Unreadable {
        /// Why.
        reason: String,
    },
    /// The record says that it belongs to another position.
    #[error("the record there is of position {found}")]
    Displaced {
        /// The position that it has.
        found: Position,
    },
    /// The event does not follow the one before it in its stream.
    #[error("the event has seq {found} of stream {stream}, where {expected} follows")]
    SeqGap {
        /// The stream.
        stream: StreamId,
        /// The seq that follows.
        expected: Seq,
        /// The seq that it has.
        found: Seq,
    },
    /// The record is not what was recorded.
    #[error("the record was changed: its hash does not match")]
    HashDiffers,
    /// There is no commit that begins there.
    #[error("the commit that begins there is missing")]
    CommitMissing,
    /// The commit that ends there has another chain.
    #[error("the events up to there are not those that were committed: the chain of the log differs")]
    ChainDiffers,
    /// There is an event and no commit that ends after it.
    #[error("the event is in no commit")]
    Uncommitted,
    /// An index does not have the event as it is.
    #[error("the {index} does not have the event as it was recorded")]
    Index {
        /// Which index.
        index: Index,
    },
    /// An index has entries that no event has.
    #[error("the {index} has entries up to there that no event has")]
    IndexTooLong {
        /// Which index.
        index: Index,
    },
    /// The index of streams has another end of the stream.
    #[error("the stream {stream} ends there, and the index has another end")]
    TailDiffers {
        /// The stream.
        stream: StreamId,
    },
    /// The key was not destroyed, and is not there or does not open the body.
    #[error("the body cannot be opened: the key of its thread or run is lost")]
    KeyLost,
    /// The event names a blob that is not what it should be.
    #[error("the blob {sha256} that the event names {fault}")]
    Blob {
        /// Its digest.
        sha256: BlobDigest,
        /// What is wrong with it.
        fault: BlobFault,
    },
    /// The log was longer.
    #[error("the log ends before it, and had durably reached position {noted}")]
    HeadBehind {
        /// Where the log was known to end.
        noted: Position,
    },
    /// The log had another content when its head was noted.
    #[error("the log had another content there when its head was noted")]
    HeadDiffers,
    /// The log ends before the exported head.
    #[error("the log ends before it, and had reached position {exported} when its head was exported")]
    TailRemoved {
        /// Where the log ended then.
        exported: Position,
    },
    /// The log had another content when its head was exported.
    #[error("the log had another content there when its head was exported")]
    ExportDiffers,
    /// The journal of the engine is damaged, with later commits behind the damage.
    #[error("the journal {journal} is damaged at byte {at}, with later commits behind the damage")]
    Journal {
        /// The file.
        journal: String,
        /// Where.
        at: u64,
    },
}

/// An index of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// Stream and seq to position.
    Streams,
    /// Run and seq to position.
    Runs,
    /// The copies of tasks' events.
    Tasks,
    /// Idempotency keys.
    Keys,
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Streams => "index of streams",
            Self::Runs => "index of runs",
            Self::Tasks => "index of tasks",
            Self::Keys => "index of idempotency keys",
        })
    }
}

/// Why nothing could be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// There is no log in the folder.
    #[error("there is no log in {folder}")]
    NoLog {
        /// The folder.
        folder: String,
    },
    /// The folder could not be opened.
    #[error("could not open the log to verify it")]
    Open(#[from] OpenError),
    /// The log could not be read.
    #[error("could not read the log to verify it")]
    Store(#[from] StoreError),
    /// The log is closed.
    #[error("the log is closed")]
    Closed,
    /// The backend has no keys of its own to look at.
    #[error("this backend of the log cannot be verified from outside")]
    Unsupported,
}

impl From<EngineError> for VerifyError {
    fn from(error: EngineError) -> Self {
        Self::Store(error.into())
    }
}

/// What is verified.
pub(crate) struct Subject<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) keyring: &'a Keyring,
    /// The last event that is looked at.
    pub(crate) head: Head,
    /// Events behind the head are new, and no damage.
    pub(crate) is_live: bool,
    /// The head that was noted outside the log.
    pub(crate) noted: Option<Head>,
}

/// Verifies the log in a folder that nobody has open. Nothing in it is changed, except that the
/// engine drops a torn end of its journal, as it does on every start; a journal that is damaged in
/// the middle is reported without opening it.
pub fn verify_folder(
    folder: &Path,
    options: &Options,
    request: VerifyRequest<'_>,
) -> Result<Report, VerifyError> {
    let opened = match open::open_to_verify(folder, options)? {
        open::ToVerify::NoLog => return Err(VerifyError::NoLog { folder: folder.display().to_string() }),
        open::ToVerify::Damaged(damage) => return Ok(Report::of_damage(damage)),
        open::ToVerify::Opened(opened) => opened,
    };
    let subject = Subject {
        engine: &opened.engine,
        keyring: &opened.keyring,
        head: opened.head,
        is_live: false,
        noted: opened.noted,
    };
    let report = walk::walk(&subject, request)?;
    blob::check::complete(report, &opened.engine, &opened.keyring, folder)
}

/// Verifies a log that is open, up to its present head.
pub(crate) fn verify_live(
    engine: &Engine,
    keyring: &Keyring,
    head: Head,
    blobs: Option<&Blobs>,
    request: VerifyRequest<'_>,
) -> Result<Report, VerifyError> {
    let report = walk::walk(&Subject { engine, keyring, head, is_live: true, noted: None }, request)?;
    match blobs {
        Some(blobs) => blob::check::complete(report, engine, keyring, blobs.data()),
        None => Ok(report),
    }
}

impl Report {
    pub(crate) fn of_damage(damage: Damage) -> Self {
        let head = Head { position: Position::new(damage.position.get().saturating_sub(1)), ..Head::EMPTY };
        let damage = Some(damage);
        Self { head: head.into(), events: 0, commits: 0, streams: 0, record_bytes: 0, blobs: 0, damage }
    }
}

#[cfg(test)]
mod tests;
