//! An audit export: events as JSON lines that anybody can check without the log, and a log that is
//! made of one.
//!
//! ```text
//! {export}/manifest.json   filter, counts, chain heads, and the length and BLAKE3 of each file
//! {export}/manifest.sig    an Ed25519 signature of the bytes of manifest.json
//! {export}/events.jsonl    one event on each line, in the order of the log
//! {export}/hashes          only of a filtered export: one line for each position of the log
//! {export}/keys            only of a whole export: the keys of threads and runs, wrapped
//! {export}/blobs           only of a whole export: the blobs that events name, sealed as they are
//! {export}/outputs         where it was asked for: the blobs that its events name, in plain, by SHA-256
//! ```
//!
//! A line of `events.jsonl` is the event (`RecordedEvent`) with the hash before it in its stream
//! (`line`). An event that was sealed brings the key of its own body, which opens nothing else: so
//! the stored bytes, which its hash covers, can be made again from the line. An erased event brings
//! its stored bytes, and no text. The lines are plain text of threads: an export must be kept like
//! the threads themselves, and no erasure reaches an export that was made before it.
//!
//! What an export proves:
//!
//! - **whole** (no filter): every record, every stream from its first event on, and the chain of the
//!   log up to the head. A log can be made of it, with the same events, seqs and hashes, by whoever
//!   has the master key that the keys are wrapped with (`import`).
//! - **filtered**: each event is what was recorded, and has its place in the chain of the log up to
//!   the head: `hashes` has the hash of every event, marked `+` for those that are here and `-` for
//!   those that are withheld. That no withheld event fits the filter is only what the signer says.
//!
//! An export is made beside its place and moved there when it is whole and signed. What an
//! interruption leaves is checked and gone on with by the next attempt (`place`, `make`).

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{
    BlobDigest, BlobError, ReadError, ReplayError,
    format::FormatError,
    open::OpenError,
    position::Position,
    secret::InvalidKey,
    store::StoreError,
    verify::{Damage, VerifyError},
};

mod check;
mod filter;
mod follow;
mod import;
mod line;
mod make;
mod manifest;
mod output;
mod outputs;
mod place;
mod signature;
#[cfg(test)]
mod tests;
mod walk;

pub use check::{ExportDamage, ExportReport, VerifyExport, verify_export};
pub use filter::Filter;
pub use import::{Import, import};
pub use make::{ExportRequest, Made, export};
pub use manifest::{Manifest, StreamEntry};
pub use signature::{InvalidPublicKey, PublicKey, SigningKey};

const MANIFEST_FILE: &str = "manifest.json";
const SIGNATURE_FILE: &str = "manifest.sig";
const EVENTS_FILE: &str = "events.jsonl";
const HASHES_FILE: &str = "hashes";
const KEYS_FILE: &str = "keys";
/// The signing key within a data folder.
const SIGNING_KEY_FILE: &str = "keys/export.key";

/// Why there is no export, or no log made of one.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The place is taken.
    #[error("{} is not empty: name a folder that does not exist", .folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
    },
    /// Another process works there.
    #[error("another process is making {}", .folder.display())]
    Busy {
        /// The folder that is being made.
        folder: PathBuf,
    },
    /// An interrupted export with another filter is there.
    #[error(
        "{} was begun with other filters: repeat them to go on with it, or begin anew",
        .folder.display()
    )]
    OtherUnfinished {
        /// The folder that was begun.
        folder: PathBuf,
    },
    /// What was begun is not of this log.
    #[error("{} was begun from another log: begin anew", .folder.display())]
    OtherLog {
        /// The folder that was begun.
        folder: PathBuf,
    },
    /// Whoever asked for it wants it no longer.
    #[error("the export was stopped before it was done")]
    Stopped,
    /// Threads were erased each time that the export was about to be done.
    #[error("threads were erased while they were exported, {attempts} times: try again later")]
    ErasedMeanwhile {
        /// How often it was tried.
        attempts: u32,
    },
    /// There is no export in the folder.
    #[error("there is no export in {}: it has no {MANIFEST_FILE} and {SIGNATURE_FILE}", .folder.display())]
    NoExport {
        /// The folder.
        folder: PathBuf,
    },
    /// A file or folder could not be used.
    #[error("could not {action} {}", .path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The log could not be read.
    #[error("could not read the log to export it")]
    Read(#[from] ReadError),
    /// The log is not what was recorded.
    #[error("the log cannot be exported, because it is damaged")]
    LogDamaged(#[source] ReplayError),
    /// The log lacks a blob that an event names, or has another one.
    #[error("the log cannot be exported with its blobs, because one is damaged")]
    BlobDamaged(#[source] Damage),
    /// A blob that an event names could not be read, to be written down in plain.
    #[error("could not read output {sha256}, which an event names; export without outputs to do without it")]
    Output {
        /// The blob.
        sha256: BlobDigest,
        /// Why.
        #[source]
        source: BlobError,
    },
    /// An event cannot be written down.
    #[error("event {position} cannot be written as JSON")]
    Unwritable {
        /// The event.
        position: Position,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The manifest cannot be read.
    #[error("the file {} is not one that `remit export` wrote", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A later program made the export.
    #[error(
        "the export has format {found}, and this program knows formats up to {}; use a later version",
        manifest::FORMAT
    )]
    Newer {
        /// Its format.
        found: u32,
    },
    /// A later program wrote the log that was exported.
    #[error("could not use the log in the export")]
    Format(#[source] FormatError),
    /// The signing key holds something else.
    #[error("the signing key {} cannot be used", .path.display())]
    SigningKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: InvalidKey,
    },
    /// The export is not what was written.
    #[error("the export is damaged")]
    Damaged(#[source] Box<ExportDamage>),
    /// Only a whole export has everything that a log is made of.
    #[error("no log can be made of the export: {reason}")]
    NotImportable {
        /// What is not there.
        reason: &'static str,
    },
    /// The keys do not open, for example because the master key is another.
    #[error("could not use the keys in the export")]
    Keys(#[source] OpenError),
    /// The log could not be written.
    #[error("could not write the imported log")]
    Store(#[from] StoreError),
    /// The log could not be verified.
    #[error("could not verify the imported log")]
    Verify(#[from] VerifyError),
    /// The log that was made is not what was recorded.
    #[error("the imported log is damaged")]
    ImportDamaged(#[source] Damage),
}

impl ExportError {
    /// Whether what is stored is not what was written.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::LogDamaged(_)
            | Self::BlobDamaged(_)
            | Self::Unreadable { .. }
            | Self::Damaged(_)
            | Self::ImportDamaged(_) => true,
            Self::NotEmpty { .. }
            | Self::Busy { .. }
            | Self::OtherUnfinished { .. }
            | Self::OtherLog { .. }
            | Self::ErasedMeanwhile { .. }
            | Self::Stopped
            | Self::NoExport { .. }
            | Self::Io { .. }
            | Self::Read(_)
            | Self::Output { .. }
            | Self::Unwritable { .. }
            | Self::Newer { .. }
            | Self::Format(_)
            | Self::SigningKey { .. }
            | Self::NotImportable { .. }
            | Self::Keys(_)
            | Self::Store(_)
            | Self::Verify(_) => false,
        }
    }
}

/// The names of an export's files, of which the manifest lists all but itself and its signature.
pub fn file_names(manifest: &Manifest) -> Vec<String> {
    let own = [MANIFEST_FILE, SIGNATURE_FILE].map(str::to_owned);
    let listed = manifest.files.iter().chain(&manifest.blobs).chain(&manifest.outputs);
    own.into_iter().chain(listed.map(|file| file.name.clone())).collect()
}

/// Whether the folder is, or was, an export.
pub fn is_export(folder: &Path) -> bool {
    [EVENTS_FILE, SIGNATURE_FILE].iter().any(|name| folder.join(name).is_file())
}

fn io_error(action: &'static str, path: &Path) -> impl Fn(io::Error) -> ExportError {
    let path = path.to_owned();
    move |source| ExportError::Io { action, path: path.clone(), source }
}
