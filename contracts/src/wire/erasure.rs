//! Erasures.

use serde::{Deserialize, Serialize};

/// The body of `POST /erasures`: an owner, or a thread, or a run of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erase {
    /// Whose threads are to be erased, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The thread that is to be erased, or whose run is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The run that is to be erased, its thread not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
}

/// The erasure of one thread, or of one run on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erasure {
    /// The erasure.
    pub erasure_id: String,
    /// The thread.
    pub thread_id: String,
    /// Stands for the run, where one was erased: its id is gone with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_hash: Option<String>,
    /// What was asked for.
    pub reason: ErasureReason,
    /// How far it has got.
    pub state: ErasureState,
    /// Events that can no longer be read, or will be so.
    pub deleted: u64,
    /// When it was asked for.
    pub requested_at: String,
    /// When it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at: Option<String>,
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

/// How far an erasure has got, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErasureState {
    /// It is recorded; runs are being stopped.
    Requested,
    /// Nothing can be read any more; what is left is being removed.
    Erasing,
    /// Nothing is left.
    Done,
}

/// The answer to an erasure that is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erased {
    /// Events that can no longer be read.
    pub deleted: u64,
    /// The record of the erasure.
    pub erasure_id: String,
}

/// The erasures of all threads of an owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerErased {
    /// How far the last of them has got.
    pub state: ErasureState,
    /// Events that can no longer be read, or will be so.
    pub deleted: u64,
    /// One for each thread.
    pub erasures: Vec<Erasure>,
}
