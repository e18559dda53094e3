//! How far a view has got, and what it could not take.

use serde::{Deserialize, Serialize};

/// What the rows beside a checkpoint are for. There is at most one side of a view for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// They answer.
    #[default]
    Answering,
    /// They are being made, to answer in place of the others.
    Successor,
    /// They are being made, to be compared with those that answer.
    Comparison,
    /// They have answered and are being deleted.
    Retired,
}

/// How far a view has got. It is committed together with the rows that it speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// The version of the fold that made the rows.
    pub(crate) version: u32,
    /// The last position that was taken; 0 before the first.
    pub(crate) position: u64,
    /// The hash of the event there. Says whether the log is still the one that was folded.
    pub(crate) hash: [u8; 32],
    /// Events that were skipped so far.
    pub(crate) parked: u64,
    /// What the rows are for.
    #[serde(default)]
    pub(crate) role: Role,
}

impl Checkpoint {
    /// Before the first event.
    pub(crate) const fn start(version: u32, role: Role) -> Self {
        Self { version, position: 0, hash: [0; 32], parked: 0, role }
    }

    /// After an event, before which some were skipped.
    pub(crate) const fn after(self, position: u64, hash: [u8; 32], parked: usize) -> Self {
        Self { position, hash, parked: self.parked.saturating_add(parked as u64), ..self }
    }
}

/// Why a view skipped an event. Which view and event is in the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParkedRow {
    /// The whole chain of causes, bounded.
    pub(crate) reason: String,
}
