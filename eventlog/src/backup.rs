//! A copy of the log that is made while others write, and a data folder that is made of it.
//!
//! Segments never change once they are full, and everything up to a head is durable, so that a copy
//! is a prefix of the segments up to one position. Records stay sealed as they are, and nothing that
//! can be made of them is copied: the index is made anew by restoring.
//!
//! ```text
//! {backup}/manifest.json           where the copy ends, and the length and BLAKE3 of each file
//! {backup}/segments/{address}.seg  the record, without what is behind the head
//! {backup}/keys/{n}/threads        the keys of threads and runs, wrapped by the master key
//! {backup}/keys/{n}/master.key     the master key, if it was generated in the data folder
//! {backup}/threads                 the files of threads, unless they are left out (`thread_files`)
//! {backup}/blobs                  blobs, sealed as they are (see `blob`)
//! ```
//!
//! A second backup into the same folder adds what is new. It first writes behind what the manifest
//! counts and into new files, then puts a new manifest in the place of the old one, and then removes
//! the keys that were there before: a crash leaves the one backup or the other. The files of threads
//! are copied anew each time, and blobs that are the same as in the backup before are shared with it;
//! from the second backup on both are in `files/{n}`.
//!
//! The keys are copied last, so that none is missing that an event needs, and what was erased until
//! then is not there. A master key from elsewhere is not copied; without it nobody can read the copy.
//!
//! A new backup and a restored folder are made beside their place and moved there when they are
//! whole.

use std::{
    io,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use crate::{
    ReadError,
    engine::EngineError,
    format::FormatError,
    open::OpenError,
    store::StoreError,
    verify,
    verify::{Damage, Progress},
};

mod check;
mod copy;
mod files;
mod manifest;
mod restore;
#[cfg(test)]
mod tests;
mod thread_files;
mod unfinished;

pub use check::verify_backup;
pub(crate) use copy::copy;
pub use manifest::{FileEntry, Manifest, MasterKeyPlace};
pub use restore::restore;
pub use thread_files::{THREADS_FOLDER, ThreadFiles};

/// Where the record is in a backup.
const SEGMENTS_FOLDER: &str = "segments";
/// Where the keys are, in a folder with a number.
const KEYS_FOLDER: &str = "keys";
/// The keys in that folder.
const KEYS_FILE: &str = "threads";
/// The master key in that folder.
const MASTER_FILE: &str = "master.key";

/// What is backed up besides the log, and whom to tell.
pub struct BackupRequest<'a> {
    /// When the backup is made.
    pub taken_at: Timestamp,
    /// The folder with the files of threads; none leaves them out.
    pub threads: Option<&'a Path>,
    /// Is told how far it is, and says whether to go on. A backup that is stopped is removed, or as it
    /// was before.
    pub progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
}

/// Why there is no backup, or no folder made of one. What was begun is removed again.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The place is taken.
    #[error("{} is not empty: name a folder that does not exist", .folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
    },
    /// The backup that is there is of another log, or of a log that went on differently.
    #[error(
        "the backup in {} is of another log, or of one that went on differently: name another folder",
        .folder.display()
    )]
    OtherLog {
        /// The folder.
        folder: PathBuf,
    },
    /// An earlier program made the backup.
    #[error(
        "the backup has format {found}, which this program no longer reads: restore it with the version \
         that made it, and open the folder with this one"
    )]
    Older {
        /// Its format.
        found: u32,
    },
    /// There is no backup in the folder.
    #[error("there is no backup in {}: it has no manifest.json", .folder.display())]
    NoBackup {
        /// The folder.
        folder: PathBuf,
    },
    /// The place is in the folder that is copied.
    #[error("a backup cannot be made inside of {}, which it copies: name another folder", .folder.display())]
    InsideItself {
        /// The folder.
        folder: PathBuf,
    },
    /// Whoever asked for it wants it no more.
    #[error("the backup was stopped before it was whole, and is removed")]
    Stopped,
    /// The log has no folder, so there is nothing to copy keys from.
    #[error("a log without a folder cannot be backed up")]
    Unsupported,
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
    #[error("could not read the log to back it up")]
    Read(#[from] ReadError),
    /// The log is not what was recorded, so that a copy of it would not be either.
    #[error("the log cannot be backed up, because it is damaged")]
    LogDamaged(#[source] Damage),
    /// The manifest cannot be read.
    #[error("the manifest {} is not one that `remit backup` wrote", .path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// The manifest does not go together with the files.
    #[error("the manifest {} does not fit the backup: {what}", .path.display())]
    ManifestDiffers {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// A later program made the backup.
    #[error(
        "the backup has format {found}, and this program knows formats up to {}; use a later version",
        manifest::FORMAT
    )]
    Newer {
        /// Its format.
        found: u32,
    },
    /// A later program wrote the log that was backed up.
    #[error("could not use the log in the backup")]
    Format(#[source] FormatError),
    /// A file is not as it was written.
    #[error("the file {} of the backup is damaged: {what}", .path.display())]
    FileDiffers {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// What is in the files is not what was recorded.
    #[error("the backup is damaged")]
    Damaged(#[source] Damage),
    /// The restored log could not be written.
    #[error("could not write the restored log")]
    Store(#[from] StoreError),
    /// The keys do not open, for example because the master key is another.
    #[error("could not use the keys in the backup")]
    Keys(#[source] OpenError),
    /// The restored log could not be verified.
    #[error("could not verify the restored log")]
    Verify(#[from] verify::VerifyError),
}

impl BackupError {
    /// Whether what is stored is not what was written.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::LogDamaged(_)
            | Self::Manifest { .. }
            | Self::ManifestDiffers { .. }
            | Self::FileDiffers { .. }
            | Self::Damaged(_) => true,
            Self::NotEmpty { .. }
            | Self::OtherLog { .. }
            | Self::Older { .. }
            | Self::NoBackup { .. }
            | Self::InsideItself { .. }
            | Self::Stopped
            | Self::Unsupported
            | Self::Io { .. }
            | Self::Read(_)
            | Self::Newer { .. }
            | Self::Format(_)
            | Self::Store(_)
            | Self::Keys(_)
            | Self::Verify(_) => false,
        }
    }
}

impl From<EngineError> for BackupError {
    fn from(error: EngineError) -> Self {
        Self::Store(error.into())
    }
}

fn io_error(action: &'static str, path: &Path) -> impl Fn(io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::Io { action, path: path.clone(), source }
}
