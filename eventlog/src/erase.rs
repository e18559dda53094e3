//! Forgetting: the keys of a thread or a run are destroyed, and nothing else changes.
//!
//! Positions, seqs, times and the chains stay, and the log verifies as before. It must not know who
//! asks and why: jobs, their states and their events are made elsewhere.

use domain::ids::{RunHash, RunId, ThreadId};

use crate::{
    codec::DecodeError,
    keys,
    position::{Position, Seq},
    recorded::RecordedEvent,
    seal::Seal,
    sealer,
    store::{LogStore, StoreError},
    stream_id::StreamId,
};

/// What stands for a run in the log where its id must not.
pub fn run_hash(thread_id: &ThreadId, run_id: &RunId) -> RunHash {
    RunHash::from_bytes(keys::run_entry::hash(&StreamId::Thread(thread_id.clone()), run_id))
}

/// What stands for a thread in the list of keys, in hexadecimal digits.
pub fn thread_hash(thread_id: &ThreadId) -> String {
    hex::encode(sealer::thread_scope(thread_id).0)
}

/// Why nothing, or not everything, was erased. Asking again is safe.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// The events are from before events were sealed: no key hides them.
    #[error("the events of thread {thread_id} were written in plain, by a version without sealing")]
    InPlain {
        /// The thread.
        thread_id: ThreadId,
    },
    /// The key file could not be written, or the log not be read.
    #[error("could not erase thread {thread_id}; its keys may be destroyed in part: ask again")]
    Store {
        /// The thread.
        thread_id: ThreadId,
        /// What failed.
        #[source]
        source: StoreError,
    },
    /// The keys are destroyed, and files that nobody can open any more are left.
    #[error(
        "the keys of thread {thread_id} are destroyed, but files of its blobs could not be removed: ask again"
    )]
    Blobs {
        /// The thread.
        thread_id: ThreadId,
        /// What failed.
        #[source]
        source: std::io::Error,
    },
    /// The log has been closed.
    #[error("the log is closed")]
    Closed,
    /// The writer stopped by a defect.
    #[error("the log's writer has stopped; restart to recover")]
    Stopped,
}

/// Destroys the keys of a thread, or of one run on it. Says whether there was one. Where events were
/// sealed with a key that is lost, it counts as destroyed from now on: should it be found again, it
/// opens nothing.
pub(crate) fn erase(
    store: &dyn LogStore,
    thread_id: &ThreadId,
    run: Option<RunHash>,
) -> Result<bool, EraseError> {
    let failed = |source| EraseError::Store { thread_id: thread_id.clone(), source };
    let is_used = match how_kept(store, thread_id, run).map_err(failed)? {
        Kept::InPlain => return Err(EraseError::InPlain { thread_id: thread_id.clone() }),
        Kept::Sealed => true,
        Kept::Nothing => false,
    };
    let thread = sealer::thread_scope(thread_id);
    let destroyed = match run {
        Some(run) => store.keyring().destroy(thread, sealer::hashed_scope(run), is_used),
        None => store.keyring().destroy_thread(thread, is_used),
    };
    destroyed.map_err(StoreError::Keys).map_err(failed)
}

/// How the first event, and so perhaps more, was written.
enum Kept {
    Nothing,
    InPlain,
    Sealed,
}

fn how_kept(store: &dyn LogStore, thread_id: &ThreadId, run: Option<RunHash>) -> Result<Kept, StoreError> {
    let first = match run {
        None => store.read_stream(&StreamId::Thread(thread_id.clone()), Seq::ZERO, 1),
        Some(run) => match store.run_first(run)? {
            Some(first) => store.read_all(Position::new(first.get().saturating_sub(1)), 1),
            None => return Ok(Kept::Nothing),
        },
    };
    let first: Option<RecordedEvent> = match first {
        Ok(events) => events.into_iter().next(),
        // Only what was sealed needs a key.
        Err(StoreError::Damaged { source: DecodeError::KeyMissing { .. }, .. }) => return Ok(Kept::Sealed),
        Err(error) => return Err(error),
    };
    Ok(match first.map(|event| event.seal) {
        None => Kept::Nothing,
        Some(Seal::None) => Kept::InPlain,
        Some(Seal::Opened(_) | Seal::Erased(_)) => Kept::Sealed,
    })
}

#[cfg(test)]
mod tests;
