//! How far a view has got, and what it could not take.

use eventlog::RecordedEvent;
use serde::{Deserialize, Serialize};

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
}

impl Checkpoint {
    /// Before the first event.
    pub(crate) const fn start(version: u32) -> Self {
        Self { version, position: 0, hash: [0; 32], parked: 0 }
    }

    /// After the last event of a page of which some were skipped.
    pub(crate) fn after(self, last: &RecordedEvent, parked: usize) -> Self {
        Self {
            version: self.version,
            position: last.position.get(),
            hash: last.hash,
            parked: self.parked.saturating_add(parked as u64),
        }
    }
}

/// Why a view skipped an event. Which view and event is in the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParkedRow {
    /// The whole chain of causes, bounded.
    pub(crate) reason: String,
}
