//! Blobs: payloads that are too large for an event, beside the log and sealed in the same way.
//!
//! An event names a blob by the SHA-256 of its bytes and by its size, in its metadata (`named`).
//! What lies on disk is a file of sealed chunks:
//!
//! ```text
//! {data}/blobs/staged/{random}              durable, and perhaps no event names it
//! {data}/blobs/{thread}/{scope}/{name}      an event names it
//! {data}/blobs/{thread}/{scope}/{name}.key  opens a blob that another scope of the thread wrote
//! ```
//!
//! `thread` and `scope` are the hashes under which the key file has their keys. `name` is made of the
//! digest with the thread's key: whoever knows what a blob may hold cannot look whether it is there,
//! and no name is the same in two threads.
//!
//! **Sealing.** Each file has a key of its own, wrapped in its header by the key that seals the events
//! that name it: the run's, or the thread's outside of runs. So what is erased with a run or a thread
//! cannot be opened from then on, wherever copies of the file are, and the files are removed as well.
//! The same bytes are stored once within a thread: another run gets a hard link to the file, and a
//! small file with the same key, wrapped for itself. Across threads nothing is shared.
//!
//! **Staging.** A new blob is written to `staged`, synced, and only then named by an event. When that
//! event is recorded the file moves to its place, without a sync: should the move be lost, the file is
//! still in `staged`. On opening the log only the files there are looked at; each says which thread it
//! is of and how far that had come, so that the events after that say whether it was named: it moves
//! to its place, or is removed. A file in its place is removed by an erasure and by nothing else. The
//! move goes from one folder to another, which file systems with a journal do in one piece.

use domain::ids::{RunId, ThreadId};

use crate::{erase::run_hash, keyring::ScopeId, sealer};

pub(crate) mod check;
mod chunk;
pub(crate) mod copy;
mod digest;
mod error;
mod header;
pub(crate) mod inspect;
mod masking;
mod named;
mod place;
mod reader;
mod settle;
mod staged_file;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub use check::BlobFault;
pub use digest::{BlobDigest, BlobRef, InvalidDigest};
pub use error::BlobError;
pub use inspect::BlobInspection;
pub(crate) use named::{is_named_by, named};
pub use reader::BlobReader;
pub use store::BlobStats;
pub(crate) use store::Blobs;
pub(crate) use writer::Target;
pub use writer::{BlobWriter, Kept, OverMax};

/// What a blob belongs to: the scope of the event that will name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobScope {
    /// The thread.
    pub thread_id: ThreadId,
    /// The run on it; none for what belongs to the thread itself.
    pub run_id: Option<RunId>,
}

impl BlobScope {
    fn thread(&self) -> ScopeId {
        sealer::thread_scope(&self.thread_id)
    }

    /// Whose key seals it.
    fn sealing(&self) -> ScopeId {
        match &self.run_id {
            Some(run_id) => sealer::hashed_scope(run_hash(&self.thread_id, run_id)),
            None => self.thread(),
        }
    }
}
