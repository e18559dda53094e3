//! What is running, and how much may.

use serde::{Deserialize, Serialize};

/// A delegation's place in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePlace {
    /// Our id of the delegation.
    pub delegation_id: String,
    /// Its place now, from 1.
    pub place: u32,
    /// How long it will wait, in seconds, judged by what ended last; null while nothing has.
    pub estimated_wait_seconds: Option<u64>,
}

/// How full the server is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity {
    /// Subagents that may run at once.
    pub max_running: u32,
    /// Subagents that run now.
    pub running: u32,
    /// Delegations that wait for a slot now.
    pub queued: u32,
    /// Delegations that may wait at once.
    pub queue_capacity: u32,
    /// Who waits, the next one first.
    pub queue: Vec<QueuePlace>,
    /// How long whoever asks now would wait, in seconds, judged by what ended last; null while nothing
    /// has.
    pub estimated_wait_seconds: Option<u64>,
    /// Event streams that are open now.
    pub open_streams: u32,
    /// Event streams that may be open at once.
    pub max_streams: u32,
    /// The models that a run may ask for; the first is the default.
    pub models: Vec<String>,
}
