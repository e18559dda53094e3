//! Why a blob was not kept, or cannot be had.

use std::{
    io,
    path::{Path, PathBuf},
};

use domain::{ids::ThreadId, limits::BLOB_BYTES_MAX};

use super::BlobDigest;
use crate::read::ReadError;

/// Why a blob was not kept, or cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// No event of the thread named it, or what named it was erased.
    #[error("there is no blob {sha256} on thread {thread_id}")]
    NotFound {
        /// The thread.
        thread_id: ThreadId,
        /// The digest that was asked for.
        sha256: BlobDigest,
    },
    /// An event names it, and it is not there.
    #[error("blob {sha256} is missing, and an event of thread {thread_id} names it")]
    Missing {
        /// The thread.
        thread_id: ThreadId,
        /// The digest that was asked for.
        sha256: BlobDigest,
    },
    /// More than a blob may hold.
    #[error("it is larger than {BLOB_BYTES_MAX} bytes, which is the most that is kept as one blob")]
    TooLarge,
    /// The thread or the run was erased.
    #[error("thread {thread_id}, or the run on it, was erased and takes no more blobs")]
    Erased {
        /// The thread.
        thread_id: ThreadId,
    },
    /// The thread or the run has no events, or is from before events were sealed.
    #[error(
        "thread {thread_id}, or the run on it, has no key to seal a blob with: record its first event before"
    )]
    NoKey {
        /// The thread.
        thread_id: ThreadId,
    },
    /// The stored bytes are not those that were written.
    #[error("blob {sha256} is damaged: {what}")]
    Damaged {
        /// The digest that was asked for.
        sha256: BlobDigest,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The log has no folder.
    #[error("a log without a folder keeps no blobs")]
    NoFolder,
    /// The disk is nearly full, and what is left is kept back for the log.
    #[error(
        "there is no room for it: {free_bytes} bytes are free, and {reserve_bytes} are kept back for the log"
    )]
    NoRoom {
        /// What is free, in bytes.
        free_bytes: u64,
        /// What is kept back, in bytes.
        reserve_bytes: u64,
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
    #[error("could not read the log for a blob")]
    Log(#[from] ReadError),
}

impl BlobError {
    /// Whether what is stored is not what was written.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::Damaged { .. } => true,
            Self::NotFound { .. }
            | Self::TooLarge
            | Self::Erased { .. }
            | Self::NoKey { .. }
            | Self::NoFolder
            | Self::NoRoom { .. }
            | Self::Log(_)
            | Self::Io { .. } => false,
        }
    }
}

pub(super) fn io_error(action: &'static str, path: &Path) -> impl Fn(io::Error) -> BlobError {
    let path = path.to_owned();
    move |source| BlobError::Io { action, path: path.clone(), source }
}
