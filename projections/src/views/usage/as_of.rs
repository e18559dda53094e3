//! What had been used at an earlier moment of a thread.
//!
//! A cell that has not changed since answers as it is, one that began later is left out, and of those
//! in between the newest kept state is counted on over the events up to the moment. So the answer costs
//! the thread's cells, and a few hundred events for each that was being counted in at that moment.

use domain::{ids::ThreadId, pricing::Prices};
use eventlog::{EventFilter, EventLog, Position, Seq};

use super::{
    Counted, UsageCell,
    report::{Summing, UsageQuery, UsageReport, for_each_cell},
};
use crate::{
    as_of::{Source, for_each, seq_at},
    keys::{KeyKind, MOMENT_SEQS, usage::UsageCellKey},
    projections::Projections,
    rows::{KeptRows, Rows},
    store::{RowError, Snapshot},
    view::FoldError,
};

/// What was used on a thread when this was its newest event. The views must have got as far as that.
pub fn usage_as_of(
    views: &Projections,
    thread_id: &ThreadId,
    seq: Seq,
    query: &UsageQuery,
    prices: &Prices,
) -> Result<UsageReport, RowError> {
    let query = UsageQuery { thread_id: Some(thread_id.clone()), ..query.clone() };
    summed(views, &query, prices, |_| Ok(Some(seq)))
}

/// What was used on all threads when the log ended at a position. The views must have got as far as
/// that. It looks at the cells of all threads, and at a few events of each.
pub fn usage_at(
    views: &Projections,
    position: Position,
    query: &UsageQuery,
    prices: &Prices,
) -> Result<UsageReport, RowError> {
    let mut last: Option<(ThreadId, Option<Seq>)> = None;
    summed(views, query, prices, |thread_id| {
        if let Some((_, seq)) = last.as_ref().filter(|(known, _)| known == thread_id) {
            return Ok(*seq);
        }
        let seq = seq_at(&views.0.log, thread_id, position).map_err(RowError::Log)?;
        last = Some((thread_id.clone(), seq));
        Ok(seq)
    })
}

/// Sums up the cells of threads, each as it was at the thread's moment; a thread without one was not
/// there.
fn summed(
    views: &Projections,
    query: &UsageQuery,
    prices: &Prices,
    mut moment: impl FnMut(&ThreadId) -> Result<Option<Seq>, RowError>,
) -> Result<UsageReport, RowError> {
    let snapshot = views.0.store.snapshot();
    let (mut summing, mut changed) = (Summing::new(query, prices), Vec::new());
    for_each_cell(&snapshot, query, |key, cell| {
        let Some(seq) = moment(&key.thread_id)? else { return Ok(()) };
        if cell.last_seq <= seq.get() {
            summing.add(&key.thread_id, &cell);
        } else if cell.first_seq <= seq.get() {
            changed.push((key, cell, seq));
        }
        Ok(())
    })?;
    for (key, cell, seq) in changed {
        summing.add(&key.thread_id, &cell_at(&views.0.log, &snapshot, &key, cell, seq)?);
    }
    Ok(summing.report())
}

/// A cell as it was then. It has changed before and after.
fn cell_at(
    log: &EventLog,
    snapshot: &Snapshot<'_>,
    key: &UsageCellKey,
    now: UsageCell,
    seq: Seq,
) -> Result<UsageCell, RowError> {
    let kept = snapshot.moment(key, seq.get())?;
    let (mut cell, after) = match kept {
        Some(cell) => (cell.clone(), cell.last_seq),
        None => {
            let first = now.first_seq;
            (UsageCell { calls: 0, calls_without_usage: 0, usage: None, ..now }, first.saturating_sub(1))
        }
    };
    // The next state would have been kept by the first change after these seqs.
    let first = if cell.calls == 0 { cell.first_seq } else { cell.last_seq };
    let last = (first / MOMENT_SEQS + 1) * MOMENT_SEQS - 1;
    let mut rows = Rows::new(snapshot, snapshot.side_of(KeyKind::UsageCell), KeptRows::default());
    let run_id = cell.run_id.clone();
    let source = match &run_id {
        Some(run_id) => Source::Run(&key.thread_id, run_id, EventFilter::default()),
        None => Source::Thread(&key.thread_id),
    };
    for_each(log, &source, Seq::new(after), seq.min(Seq::new(last)), |event| {
        let calls = match Counted::of(event, &mut rows) {
            Ok(calls) => calls,
            // What the view would have parked is left out here too.
            Err(FoldError::Contradiction(_)) => Vec::new(),
            Err(FoldError::Row(error)) => return Err(error),
        };
        for call in calls.into_iter().filter(|call| call.key() == *key) {
            cell.count(event.seq, call.report);
        }
        Ok(())
    })?;
    Ok(cell)
}
