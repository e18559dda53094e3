//! Proving that the log is what was recorded: every record, chain, commit and index entry.
//!
//! The walk (`walk`) goes over the segments in order, at about the speed at which they can be read:
//! one thread reads frames, one follows the chains, the others hash. What the index should hold is
//! added up on the way and compared with what its tables hold (`index`); only when the sums differ
//! is the first bad entry looked for.
//!
//! Hashes cover sealed bytes, so no key is needed for them and erased threads verify like others.

use std::{fmt, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    blob::{self, BlobDigest, BlobFault, Blobs},
    chain::Hash,
    engine::EngineError,
    index::{Checkpoint, Index as LogIndex},
    keyring::{KeyFile, Keyring},
    open::{self, KEYS_FOLDER, LOG_FOLDER, OpenError, WATERMARK_FILE, recover},
    options::Options,
    position::{Position, Seq},
    segment::Segments,
    store::{Head, SegmentStore, StoreError},
    stream_id::StreamId,
};

mod index;
mod link;
mod stream;
mod walk;

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
    /// The record is damaged.
    #[error("the segment {segment} is damaged at byte {at}: {what}")]
    Segment {
        /// The file.
        segment: String,
        /// Where.
        at: u64,
        /// What is wrong there.
        what: String,
    },
    /// The index cannot be opened, or is one of another record. It is made anew when the log is
    /// opened.
    #[error("the index cannot be used, and is made anew from the record when the log is opened: {reason}")]
    IndexUnusable {
        /// Why.
        reason: String,
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
    /// Commits and where they are.
    Commits,
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Streams => "index of streams",
            Self::Runs => "index of runs",
            Self::Tasks => "index of tasks",
            Self::Keys => "index of idempotency keys",
            Self::Commits => "index of commits",
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
    pub(crate) segments: &'a Segments,
    /// None where keys are not looked at.
    pub(crate) keyring: Option<&'a Keyring>,
    /// None where there is none. The checkpoint is one that the head covers.
    pub(crate) index: Option<(&'a LogIndex, Checkpoint)>,
    /// The last event that is looked at.
    pub(crate) head: Head,
    /// The head that was noted outside the log.
    pub(crate) noted: Option<Head>,
}

/// Verifies the log in a folder that nobody has open. Nothing in it is changed. A torn end that was
/// never acknowledged is no damage: opening the log drops it.
pub fn verify_folder(
    folder: &Path,
    options: &Options,
    request: VerifyRequest<'_>,
) -> Result<Report, VerifyError> {
    let log_folder = folder.join(LOG_FOLDER);
    // Where a head was noted, or keys were made, a log has been.
    let is_there = log_folder.exists()
        || folder.join(WATERMARK_FILE).exists()
        || KeyFile::has_keys(&folder.join(KEYS_FOLDER));
    if !is_there {
        return Err(VerifyError::NoLog { folder: folder.display().to_string() });
    }
    let _lock = open::acquire_lock(folder, (options.clock)())?;
    let looked = open::look(folder)?;
    if let Some(refusal) = looked.refusal_by_keys(folder) {
        return Err(refusal.into());
    }
    if let Some(damage) = looked.damage() {
        return Ok(Report::of_damage(damage));
    }
    let head = looked.survey.head;
    let has_keys = looked.must_have_keys() && head != Head::EMPTY;
    let keyring = has_keys.then(|| open::open_keys(folder, options, true)).transpose()?;
    let (index, unusable) = match open_index(&log_folder, &looked.segments, head) {
        Ok(index) => (index, None),
        Err(reason) => (None, Some(reason)),
    };
    let subject = Subject {
        segments: &looked.segments,
        keyring: keyring.as_ref(),
        index: index.as_ref().map(|index| (index, index.checkpoint())),
        head,
        noted: looked.noted_head(),
    };
    let mut report = walk::walk(&subject, request)?;
    if let Some(reason) = unusable.filter(|_| report.is_whole()) {
        report.damage = Some(Damage { position: head.position, kind: DamageKind::IndexUnusable { reason } });
    }
    match &keyring {
        Some(keyring) => blob::check::complete(report, &looked.segments, keyring, folder),
        None => Ok(report),
    }
}

/// The index of a folder as it is in its tables. None if it has none.
fn open_index(log_folder: &Path, segments: &Segments, head: Head) -> Result<Option<LogIndex>, String> {
    let folder = open::index_folder(log_folder);
    if !folder.exists() {
        return Ok(None);
    }
    let text = |error: &dyn std::error::Error| domain::causes::with_causes(error);
    let engine = recover::open_engine(&folder).map_err(|error| text(&error))?;
    let index = LogIndex::open(engine).map_err(|error| text(&error))?;
    match recover::fits(&index, segments, head).map_err(|error| text(&error))? {
        true => Ok(Some(index)),
        false => Err("its last commit is not in the record".to_owned()),
    }
}

/// Verifies a log that is open, up to its present head.
pub(crate) fn verify_live(
    store: &SegmentStore,
    blobs: Option<&Blobs>,
    request: VerifyRequest<'_>,
) -> Result<Report, VerifyError> {
    // The tables may go on while the head is asked for, and must not be ahead of it.
    let checkpoint = store.index().checkpoint();
    let subject = Subject {
        segments: store.segments(),
        keyring: Some(store.keyring_ref()),
        index: Some((store.index(), checkpoint)),
        head: store.index().end().head,
        noted: None,
    };
    let report = walk::walk(&subject, request)?;
    match blobs {
        Some(blobs) => blob::check::complete(report, store.segments(), store.keyring_ref(), blobs.data()),
        None => Ok(report),
    }
}

/// Verifies a record that has neither keys nor index beside it, such as that of a backup.
pub(crate) fn verify_record(
    segments: &Segments,
    head: Head,
    request: VerifyRequest<'_>,
) -> Result<Report, VerifyError> {
    let subject = Subject { segments, keyring: None, index: None, head, noted: None };
    walk::walk(&subject, request)
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
