//! What is running, and how much may.

use serde::{Deserialize, Serialize};

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
    /// Event streams that are open now.
    pub open_streams: u32,
    /// Event streams that may be open at once.
    pub max_streams: u32,
    /// The models that a run may ask for; the first is the default.
    pub models: Vec<String>,
}
