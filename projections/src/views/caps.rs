//! Caps: every guard that warned or ended something early, of leads and of subagents.

use domain::{
    event::{Cap, CapAction, CapAxis, Event, Logged, RunEvent, SubagentEvent},
    ids::{DelegationId, RunId, ThreadId, ToolCallId},
};
use eventlog::{Seq, engine::Direction};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    keys::{KeyKind, cap::CapKey},
    projections::Projections,
    rows::Rows,
    store::RowError,
    view::{FoldError, View},
    views::{
        card::TaskRef,
        listing::{Listed, Listing},
    },
};

/// A guard that fired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapRow {
    /// The place of its event in the thread.
    pub seq: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// The run.
    pub run_id: Option<RunId>,
    /// The provider's id of the `task` call, where a subagent was stopped or warned.
    pub task_id: Option<ToolCallId>,
    /// The delegation, where a subagent was stopped or warned.
    pub delegation_id: Option<DelegationId>,
    /// What fired, and at which count.
    pub cap: Cap,
}

impl CapRow {
    /// The cap that an event is, if it is one of a guard of ours: what others record as one stopped
    /// nothing here.
    pub(crate) fn of(event: &Logged) -> Option<Self> {
        if event.is_of_others() {
            return None;
        }
        let cap = match &event.event {
            Event::Run(RunEvent::Capped(cap)) => cap,
            Event::Subagent(SubagentEvent::Capped(capped)) => &capped.cap,
            Event::Run(_)
            | Event::Subagent(_)
            | Event::Thread(_)
            | Event::Model(_)
            | Event::Tool(_)
            | Event::Delegation(_)
            | Event::Registry(_)
            | Event::Foreign(_) => return None,
        };
        let scope = &event.scope;
        Some(Self {
            seq: event.seq,
            at: event.recorded_at,
            run_id: scope.run_id.clone(),
            task_id: scope.task_id.clone(),
            delegation_id: scope.delegation_id,
            cap: cap.clone(),
        })
    }
}

/// Which caps of a thread. What is `None` is not asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapFilter {
    /// Only those of this run.
    pub run_id: Option<RunId>,
    /// Only those of this delegation.
    pub task: Option<TaskRef>,
    /// Only those of guards that watch this.
    pub axis: Option<CapAxis>,
    /// Only warnings, or only stops.
    pub action: Option<CapAction>,
}

impl CapFilter {
    fn admits(&self, row: &CapRow) -> bool {
        self.run_id.as_ref().is_none_or(|run_id| row.run_id.as_ref() == Some(run_id))
            && self.task.as_ref().is_none_or(|task| task.names(row.task_id.as_ref(), row.delegation_id))
            && self.axis.is_none_or(|axis| row.cap.axis == axis)
            && self.action.is_none_or(|action| row.cap.action == action)
    }
}

/// The view of all caps.
pub(crate) struct CapsView;

impl View for CapsView {
    const NAME: &'static str = "caps";
    const VERSION: u32 = 3;
    const READS_SINCE: u32 = 2;
    const KINDS: &'static [KeyKind] = &[KeyKind::Cap];

    fn apply(&self, event: &Logged, rows: &mut Rows<'_>) -> Result<(), FoldError> {
        if let Some(row) = CapRow::of(event) {
            rows.put(&CapKey { thread_id: event.thread_id.clone(), seq: event.seq }, row);
        }
        Ok(())
    }
}

impl Projections {
    /// Caps of a thread in the order in which they fired. A run has few, so that a filter may look at
    /// all of them.
    pub fn caps(
        &self,
        thread_id: &ThreadId,
        filter: &CapFilter,
        listing: Listing,
    ) -> Result<Listed<CapRow>, RowError> {
        let snapshot = self.0.store.snapshot();
        let of_thread = CapKey::of_thread(thread_id);
        listing.list(|after: Seq, limit| {
            let range = listing.range(&of_thread, after);
            let rows = snapshot.page::<CapKey>(&range, Direction::Forward, limit)?;
            let seen = rows.last().map(|(key, _)| Seq::new(key.seq));
            Ok((rows.into_iter().map(|(_, row)| row).filter(|row| filter.admits(row)).collect(), seen))
        })
    }
}
