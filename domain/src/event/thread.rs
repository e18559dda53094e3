//! The life of a thread.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::family::family;

family! {
    /// The life of a thread.
    pub enum ThreadEvent {
        /// The thread was made, by name.
        Created(ThreadCreated) = "thread.created" in Thread,
    }
}

/// A thread was made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ThreadCreated {
    /// What the client wants to find again.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The folder of the host that is the thread's workspace, where a person at the command line
    /// chose one; else the thread has a folder of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}
