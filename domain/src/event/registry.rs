//! What happened beside the threads. It stands in a stream of its own and is never sealed, so it
//! holds ids, counts and times, and no text of a thread.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::family::family;
use crate::ids::{ErasureId, RunHash, ThreadId};

family! {
    /// What happened beside the threads. An erasure begins and ends with an event, so that one
    /// which a crash cut off is carried on.
    pub enum RegistryEvent {
        /// Somebody asked that a thread or a run be erased. From here on it is carried to its end.
        ErasureRequested(ErasureRequested) = "erasure.requested" in Registry,
        /// Nothing of the thread can be read any more.
        ThreadErased(ThreadErased) = "thread.erased" in Registry,
        /// Nothing of the run can be read any more.
        RunErased(RunErased) = "run.erased" in Registry,
        /// A key that an erasure had destroyed was there again, and has been destroyed again.
        ErasureRepeated(ErasureRepeated) = "erasure.repeated" in Registry,
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
    /// One run of this thread.
    Run,
}

/// Somebody asked that a thread or a run be erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasureRequested {
    /// The erasure.
    pub erasure_id: ErasureId,
    /// The thread.
    pub thread_id: ThreadId,
    /// What was asked for.
    pub reason: ErasureReason,
    /// The run, where it is about one. Its id is a text of the thread's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_hash: Option<RunHash>,
    /// Events that the thread or the run had.
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

/// A run was erased, and its thread was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunErased {
    /// The erasure.
    pub erasure_id: ErasureId,
    /// The thread.
    pub thread_id: ThreadId,
    /// The run.
    pub run_hash: RunHash,
    /// Events whose bodies nobody can read any more: those that the run had, and those by which it
    /// was ended for its erasure.
    pub events: u64,
    /// When it was asked for.
    pub requested_at: Timestamp,
}

/// An older copy of the keys was put back, and a key of something erased was in it. What it had made
/// readable is unreadable again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasureRepeated {
    /// The erasure.
    pub erasure_id: ErasureId,
    /// The thread.
    pub thread_id: ThreadId,
    /// The run, where the erasure is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_hash: Option<RunHash>,
}
