//! Erasures.

use serde::{Deserialize, Serialize};

/// The erasure of one thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erasure {
    /// The erasure.
    pub erasure_id: String,
    /// The thread.
    pub thread_id: String,
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

/// How far an erasure has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
