//! Receipts of all delegations: evidence that tool calls ended, by run, delegation, tool and outcome.

use domain::{
    event::{Event, Logged, SubagentEvent},
    ids::{DelegationId, RunId, ThreadId},
    receipt::{Receipt, ReceiptOutcome},
};
use eventlog::{Seq, engine::Direction};
use serde::{Deserialize, Serialize};

use crate::{
    keys::{
        KeyKind, NameHash,
        receipt::{ReceiptKey, ReceiptOfRunKey},
    },
    projections::Projections,
    rows::Rows,
    store::{RowError, Snapshot},
    view::{FoldError, View},
    views::{
        card::TaskRef,
        ledger::delegation_of,
        listing::{Listed, Listing},
    },
};

/// A receipt with the delegation that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptRow {
    /// The place of its event in the thread.
    pub seq: u64,
    /// The run.
    pub run_id: Option<RunId>,
    /// The delegation.
    pub delegation_id: DelegationId,
    /// The evidence.
    pub receipt: Receipt,
}

impl ReceiptRow {
    /// The receipt that an event is, if it is one of a delegation of ours.
    pub(crate) fn of(event: &Logged) -> Option<Self> {
        let delegation_id = delegation_of(event)?;
        let Event::Subagent(SubagentEvent::Receipt(receipt)) = &event.event else { return None };
        let run_id = event.scope.run_id.clone();
        Some(Self { seq: event.seq, run_id, delegation_id, receipt: receipt.clone() })
    }
}

/// Which receipts of a thread. What is `None` is not asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiptFilter {
    /// Only those of this run.
    pub run_id: Option<RunId>,
    /// Only those of this delegation.
    pub task: Option<TaskRef>,
    /// Only those of this tool.
    pub tool_name: Option<String>,
    /// Only those of calls that came to this.
    pub outcome: Option<ReceiptOutcome>,
}

impl ReceiptFilter {
    fn admits(&self, row: &ReceiptRow) -> bool {
        let task_id = Some(&row.receipt.task_id);
        self.run_id.as_ref().is_none_or(|run_id| row.run_id.as_ref() == Some(run_id))
            && self.task.as_ref().is_none_or(|task| task.names(task_id, Some(row.delegation_id)))
            && self.tool_name.as_ref().is_none_or(|name| row.receipt.tool_name == *name)
            && self.outcome.is_none_or(|outcome| row.receipt.outcome == outcome)
    }
}

/// The view of all receipts.
pub(crate) struct ReceiptsView;

impl View for ReceiptsView {
    const NAME: &'static str = "receipts";
    const VERSION: u32 = 2;
    const KINDS: &'static [KeyKind] = &[KeyKind::Receipt, KeyKind::ReceiptOfRun];

    fn apply(&self, event: &Logged, rows: &mut Rows<'_>) -> Result<(), FoldError> {
        if let Some(row) = ReceiptRow::of(event) {
            let (thread_id, seq) = (event.thread_id.clone(), event.seq);
            let run = NameHash::of_any_run(&thread_id, event.scope.run_id.as_ref());
            rows.put(&ReceiptOfRunKey { thread_id: thread_id.clone(), run, seq }, ());
            rows.put(&ReceiptKey { thread_id, seq }, row);
        }
        Ok(())
    }
}

impl Projections {
    /// Receipts of a thread in the order in which they were recorded.
    pub fn receipts(
        &self,
        thread_id: &ThreadId,
        filter: &ReceiptFilter,
        listing: Listing,
    ) -> Result<Listed<ReceiptRow>, RowError> {
        let snapshot = self.0.store.snapshot();
        listing.list(|after, limit| {
            let found = match &filter.run_id {
                Some(run_id) => of_run(&snapshot, thread_id, run_id, listing, (after, limit))?,
                None => of_thread(&snapshot, thread_id, listing, (after, limit))?,
            };
            let seen = found.last().map(|row| Seq::new(row.seq));
            Ok((found.into_iter().filter(|row| filter.admits(row)).collect(), seen))
        })
    }
}

fn of_thread(
    snapshot: &Snapshot<'_>,
    thread_id: &ThreadId,
    listing: Listing,
    (after, limit): (Seq, usize),
) -> Result<Vec<ReceiptRow>, RowError> {
    let range = listing.range(&ReceiptKey::of_thread(thread_id), after);
    let rows = snapshot.page::<ReceiptKey>(&range, Direction::Forward, limit)?;
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

fn of_run(
    snapshot: &Snapshot<'_>,
    thread_id: &ThreadId,
    run_id: &RunId,
    listing: Listing,
    (after, limit): (Seq, usize),
) -> Result<Vec<ReceiptRow>, RowError> {
    let run = NameHash::of_run(thread_id, run_id);
    let range = listing.range(&ReceiptOfRunKey::of_run(thread_id, &run), after);
    let mut rows = Vec::new();
    for (ReceiptOfRunKey { thread_id, seq, .. }, ()) in
        snapshot.page::<ReceiptOfRunKey>(&range, Direction::Forward, limit)?
    {
        rows.extend(snapshot.get(&ReceiptKey { thread_id, seq })?);
    }
    Ok(rows)
}
