//! Receipts of all delegations: evidence that tool calls ended, by run, delegation, tool and outcome.

mod packed;

use domain::{
    event::{Event, Logged, SubagentEvent},
    ids::{DelegationId, RunId, ThreadId},
    receipt::{Receipt, ReceiptOutcome},
};
use eventlog::{Seq, engine::Direction};
use serde::{Deserialize, Serialize};

pub(crate) use self::packed::Receipts;
use crate::{
    keys::{
        CHUNK_SEQS, KeyKind, NameHash, chunk_of,
        receipt::{ReceiptsKey, ReceiptsOfRunKey},
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

/// Chunks that are looked at in one go when a filter may refuse most receipts. Each has one at least of
/// the seqs of its number, so that all chunks of one number are always among them.
const LOOK_CHUNKS: usize = CHUNK_SEQS as usize + 8;

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
    const VERSION: u32 = 3;
    const KINDS: &'static [KeyKind] = &[KeyKind::Receipts, KeyKind::ReceiptsOfRun];

    fn apply(&self, event: &Logged, rows: &mut Rows<'_>) -> Result<(), FoldError> {
        if let Some(row) = ReceiptRow::of(event) {
            let (thread_id, chunk) = (event.thread_id.clone(), chunk_of(event.seq));
            let run = NameHash::of_any_run(&thread_id, event.scope.run_id.as_ref());
            let of_run = ReceiptsOfRunKey { thread_id: thread_id.clone(), run: run.clone(), chunk };
            let is_first = rows.update(&ReceiptsKey { thread_id, chunk, run }, |receipts| {
                let mut receipts: Receipts = receipts.unwrap_or_default();
                receipts.push(&row);
                Some(receipts)
            })?;
            if is_first.is_some() {
                rows.put(&of_run, ());
            }
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
        listing.list(|after, _| {
            let chunks = match &filter.run_id {
                Some(run_id) => of_run(&snapshot, thread_id, run_id, listing, after)?,
                None => of_thread(&snapshot, thread_id, listing, after)?,
            };
            // Where there may be more, the last number may have more chunks.
            let beyond = chunks.last().filter(|_| chunks.len() == LOOK_CHUNKS).map(|(number, _)| *number);
            let seen = chunks.into_iter().filter(|(number, _)| beyond.is_none_or(|beyond| *number < beyond));
            let mut rows: Vec<_> = seen.flat_map(|(_, receipts)| receipts).collect();
            rows.retain(|row| listing.holds(after, row.seq) && filter.admits(row));
            rows.sort_by_key(|row| row.seq);
            Ok((rows, beyond.map(|number| Seq::new((number * CHUNK_SEQS).saturating_sub(1)))))
        })
    }
}

/// Chunks with their numbers, ascending.
type Chunks = Vec<(u64, Vec<ReceiptRow>)>;

fn of_thread(
    snapshot: &Snapshot<'_>,
    thread_id: &ThreadId,
    listing: Listing,
    after: Seq,
) -> Result<Chunks, RowError> {
    let (first, last) = listing.chunks(after);
    let range = ReceiptsKey::of_thread(thread_id).range_of_numbers(first, last);
    let chunks = snapshot.page::<ReceiptsKey>(&range, Direction::Forward, LOOK_CHUNKS)?;
    chunks.into_iter().map(|(key, receipts)| Ok((key.chunk, unpacked(&receipts)?))).collect()
}

fn of_run(
    snapshot: &Snapshot<'_>,
    thread_id: &ThreadId,
    run_id: &RunId,
    listing: Listing,
    after: Seq,
) -> Result<Chunks, RowError> {
    let run = NameHash::of_run(thread_id, run_id);
    let (first, last) = listing.chunks(after);
    let range = ReceiptsOfRunKey::of_run(thread_id, &run).range_within(first, last);
    let mut chunks = Vec::new();
    for (ReceiptsOfRunKey { thread_id, run, chunk }, ()) in
        snapshot.page::<ReceiptsOfRunKey>(&range, Direction::Forward, LOOK_CHUNKS)?
    {
        let receipts = snapshot.get(&ReceiptsKey { thread_id, chunk, run })?;
        chunks.push((chunk, unpacked(&receipts.unwrap_or_default())?));
    }
    Ok(chunks)
}

fn unpacked(receipts: &Receipts) -> Result<Vec<ReceiptRow>, RowError> {
    receipts.unpacked().map_err(|source| RowError::damaged(KeyKind::Receipts, source))
}
