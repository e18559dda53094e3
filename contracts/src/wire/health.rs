//! Whether the server is well, and where its views stand.

use serde::{Deserialize, Serialize};

/// The answer of `/healthz`: the process is alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alive {
    /// `ok`.
    pub status: String,
}

/// The answer of `/readyz` when the server takes work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// `ready`, or `degraded` when a view is behind or passed over events.
    pub status: String,
    /// The last durable position.
    pub head: u64,
    /// Where the views stand.
    pub views: Vec<View>,
}

/// Where one view stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Its name.
    pub name: String,
    /// The version of its rows.
    pub version: u32,
    /// The last position that it has taken in.
    pub position: u64,
    /// Durable events that it has not taken in yet.
    pub lag: u64,
    /// Events that it could not take in and passed over.
    pub parked: u64,
    /// The first of them, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_parked: Option<String>,
}
