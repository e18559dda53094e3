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
    /// Seconds since the first of them was recorded; 0 when there are none.
    #[serde(default)]
    pub lag_seconds: u64,
    /// Events that it could not take in and passed over.
    pub parked: u64,
    /// The first of them, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_parked: Option<String>,
    /// How far it is, while it is being made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild: Option<Rebuild>,
    /// How that ended the last time since the server was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_rebuild: Option<LastRebuild>,
}

/// How far views are that are being made again. They answer meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuild {
    /// Tells one rebuild from another since the server was started.
    pub number: u64,
    /// The views.
    pub views: Vec<String>,
    /// Whether they are only compared with those that answer.
    pub check: bool,
    /// `folding`, `comparing` or `deleting`.
    pub phase: String,
    /// The last position that was taken.
    pub position: u64,
    /// The last position of the log.
    pub head: u64,
    /// Events per second so far.
    pub events_per_second: u64,
    /// How long the rest of the log takes at this speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
}

/// How a rebuild ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRebuild {
    /// Tells one rebuild from another since the server was started.
    pub number: u64,
    /// `replaced`, `same`, `different`, `stopped` or `failed`.
    pub outcome: String,
    /// The position that it had reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The first row that differs, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A row that is not what the log makes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The view.
    pub view: String,
    /// The row's key.
    pub key: String,
    /// The row that answers, as JSON; none if there is none.
    pub answering: Option<String>,
    /// The row that the log makes, as JSON; none if there is none.
    pub rebuilt: Option<String>,
}

/// The body of `POST /api/projections/{name}/rebuild`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RebuildOrder {
    /// Compare what is made with what answers, instead of replacing it.
    #[serde(default)]
    pub check: bool,
}

/// An event that a view passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkedEvent {
    /// The event.
    pub position: u64,
    /// Why.
    pub reason: String,
}
