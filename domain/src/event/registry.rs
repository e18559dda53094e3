//! What happened beside the threads. It stands in a stream of its own and is never sealed, so it
//! holds ids, counts and times, and no text of a thread.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::family::family;
use crate::ids::{ErasureId, ThreadId};

family! {
    /// What happened beside the threads. An erasure begins and ends with an event, so that one
    /// which a crash cut off is carried on.
    pub enum RegistryEvent {
        /// Somebody asked that a thread be erased. From here on it is carried to its end.
        ErasureRequested(ErasureRequested) = "erasure.requested" in Registry,
        /// Nothing of the thread can be read any more.
        ThreadErased(ThreadErased) = "thread.erased" in Registry,
    }
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErasureReason {
    /// This thread.
    Thread,
    /// All threads of its owner.
    Owner,
}

/// Somebody asked that a thread be erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasureRequested {
    /// The erasure.
    pub erasure_id: ErasureId,
    /// The thread.
    pub thread_id: ThreadId,
    /// What was asked for.
    pub reason: ErasureReason,
    /// Events that the thread had.
    pub events: u64,
    /// When it was asked for.
    pub requested_at: Timestamp,
}

/// A thread was erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadErased {
    /// The erasure.
    pub erasure_id: ErasureId,
    /// The thread.
    pub thread_id: ThreadId,
    /// What was asked for.
    pub reason: ErasureReason,
    /// Events whose bodies nobody can read any more: those that the thread had, and those by which
    /// its run was ended for it.
    pub events: u64,
    /// When it was asked for.
    pub requested_at: Timestamp,
}
