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
