//! What a reader asks for, and how a read fails.

use domain::ids::{DelegationId, RunId, ThreadId, ToolCallId};

use crate::{position::Seq, recorded::RecordedEvent, store::StoreError};

/// Which events of a run are wanted. The default wants all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only these types. An empty list matches nothing.
    pub event_types: Option<Vec<String>>,
    /// Only those of this `task` call.
    pub task_id: Option<ToolCallId>,
    /// Only those of this delegation.
    pub delegation_id: Option<DelegationId>,
}

impl EventFilter {
    /// Whether an event of this type and delegation is wanted, as far as these two say.
    pub(crate) fn admits(&self, event_type: &str, delegation_id: Option<DelegationId>) -> bool {
        let is_type =
            self.event_types.as_ref().is_none_or(|wanted| wanted.iter().any(|one| one == event_type));
        is_type && self.delegation_id.is_none_or(|wanted| delegation_id == Some(wanted))
    }

    /// Whether the event is wanted.
    pub fn matches(&self, event: &RecordedEvent) -> bool {
        self.admits(&event.event_type, event.scope.delegation_id)
            && self.task_id.as_ref().is_none_or(|wanted| event.scope.task_id.as_ref() == Some(wanted))
    }
}

/// Stored bytes of events that one read gives out: what a page holds in memory, however large its
/// events are. The event that reaches it is the last of its page, so a page is never empty for it.
pub const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What still fits into a page.
pub(crate) struct Room {
    rows: usize,
    bytes: usize,
}

impl Room {
    /// An empty page of at most `rows` rows and about [`PAGE_BYTES_MAX`] bytes.
    pub(crate) const fn of(rows: usize) -> Self {
        Self { rows, bytes: PAGE_BYTES_MAX }
    }

    /// Whether another row may be added.
    pub(crate) const fn is_left(&self) -> bool {
        self.rows > 0 && self.bytes > 0
    }

    /// Adds a row of so many bytes, if another may be added.
    pub(crate) const fn admit(&mut self, bytes: usize) -> bool {
        let is_left = self.is_left();
        self.take(bytes);
        is_left
    }

    /// Counts a row of so many bytes.
    pub(crate) const fn take(&mut self, bytes: usize) {
        self.rows = self.rows.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// A page of one run's events, ascending by seq. The limit counts what the filter admits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunQuery {
    /// The thread that the run is on.
    pub thread_id: ThreadId,
    /// The run.
    pub run_id: RunId,
    /// Which of its events.
    pub filter: EventFilter,
    /// Exclusive: the last seq that the reader has.
    pub after: Seq,
    /// Rows at most.
    pub limit: usize,
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The log has been closed.
    #[error("the log is closed")]
    Closed,
    /// The store failed, or holds something that it should not.
    #[error("could not read the log")]
    Store(#[from] StoreError),
}
