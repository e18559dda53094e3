//! Forgetting: the keys of a thread or a run are destroyed, and nothing else changes.
//!
//! Positions, seqs, times and the chains stay, and the log verifies as before. It must not know who
//! asks and why: jobs, their states and their events are made elsewhere.

use domain::ids::{RunId, ThreadId};

use crate::{
    position::Seq,
    read::{EventFilter, RunQuery},
    seal::Seal,
    sealer,
    store::{LogStore, StoreError},
    stream_id::StreamId,
};

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
    /// The log has been closed.
    #[error("the log is closed")]
    Closed,
    /// The writer stopped by a defect.
    #[error("the log's writer has stopped; restart to recover")]
    Stopped,
}

/// Destroys the keys of a thread, or of one run on it. Says whether there was one.
pub(crate) fn erase(
    store: &dyn LogStore,
    thread_id: &ThreadId,
    run_id: Option<&RunId>,
) -> Result<bool, EraseError> {
    let failed = |source| EraseError::Store { thread_id: thread_id.clone(), source };
    if is_in_plain(store, thread_id, run_id).map_err(failed)? {
        return Err(EraseError::InPlain { thread_id: thread_id.clone() });
    }
    let destroyed = match run_id {
        Some(run_id) => store.keyring().destroy(sealer::run_scope(thread_id, run_id)),
        None => store.keyring().destroy_thread(sealer::thread_scope(thread_id)),
    };
    destroyed.map_err(StoreError::Keys).map_err(failed)
}

/// Whether the first event, and so perhaps more, was written in plain.
fn is_in_plain(
    store: &dyn LogStore,
    thread_id: &ThreadId,
    run_id: Option<&RunId>,
) -> Result<bool, StoreError> {
    let first = match run_id {
        None => store.read_stream(&StreamId::Thread(thread_id.clone()), Seq::ZERO, 1)?,
        Some(run_id) => store.read_run(&RunQuery {
            thread_id: thread_id.clone(),
            run_id: run_id.clone(),
            filter: EventFilter::default(),
            after: Seq::ZERO,
            limit: 1,
        })?,
    };
    Ok(first.first().is_some_and(|event| event.seal == Seal::None))
}

#[cfg(test)]
mod tests;
