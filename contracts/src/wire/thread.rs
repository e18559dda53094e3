//! Threads.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The body of `POST /threads`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateThread {
    /// The id to give it; made when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// What the client wants to find again.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// The thread.
    pub thread_id: String,
    /// Whether a run is at work on it.
    pub status: ThreadStatus,
    /// What the client wants to find again.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// The owner.
    pub user_id: String,
    /// The last event's place in the thread.
    pub seq: u64,
    /// When its first event was recorded.
    pub created_at: String,
    /// When its last event was recorded.
    pub updated_at: String,
}

/// Whether a run is at work on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadStatus {
    /// None is.
    Idle,
    /// One is.
    Busy,
}
