//! What the views answered at an earlier moment: when the newest event of a thread was this one.
//!
//! A row that has not changed since answers as it is. Of others the views keep states from now and
//! then (see `RowKey::MOMENTS`); the newest of them that is old enough is folded on with the events
//! up to the moment, by the functions that fold the view. What is only ever added is cut short. So a
//! row costs a few hundred events at most, however long the thread is; a list costs that for each of its
//! rows, and a card reads its parts up to then besides.
//!
//! Of one thread and one run the log says what the views do not have yet. Lists are those of the
//! views, which must have got as far as the moment: wait for them.

mod position;

use std::collections::HashSet;

use domain::{
    card::{Card, CardHead},
    event::Logged,
    ids::{DelegationId, RunId, ThreadId, ToolCallId},
    ledger::LedgerEntry,
};
use eventlog::{EventFilter, EventLog, RecordedEvent, Seq, StreamId, engine::Direction};

use crate::{
    keys::{
        MOMENT_SEQS, RowKey,
        card::{CardHeadKey, CardOfTaskKey},
        ledger::LedgerEntryKey,
        run::{RunKey, RunOrderKey},
        thread::ThreadKey,
    },
    projections::Projections,
    store::{RowError, Snapshot},
    views::{
        card::{TaskRef, parts_until},
        ledger::{delegation_of, delegations},
        listing::Listing,
        run::{RunRow, started_run},
        thread::ThreadRow,
    },
};
pub use position::{seq_at, threads_as_of};

/// Events that are read at once: those between two kept states, and one more that says that the
/// moment is passed.
const PAGE_EVENTS: usize = MOMENT_SEQS as usize + 1;

/// The newest state of a row that is not newer than a seq, if the views have one.
fn state<K: RowKey>(views: &Projections, key: &K, seq: Seq) -> Result<Option<K::Row>, RowError> {
    let snapshot = views.0.store.snapshot();
    match snapshot.get(key)? {
        Some(row) if K::last_seq(&row) <= seq.get() => Ok(Some(row)),
        Some(_) => snapshot.moment(key, seq.get()),
        None => Ok(None),
    }
}

/// The thread as it was then.
pub fn thread_as_of(
    views: &Projections,
    thread_id: &ThreadId,
    seq: Seq,
) -> Result<Option<ThreadRow>, RowError> {
    let mut row = state(views, &ThreadKey { thread_id: thread_id.clone() }, seq)?;
    let after = row.as_ref().map_or(Seq::ZERO, |row| Seq::new(row.last_seq));
    let mut started = HashSet::new();
    for_each(&views.0.log, &Source::Thread(thread_id), after, seq, |event| {
        let mut new_run = None;
        if let Some(run_id) = started_run(event) {
            // A run is new with the event that made its row; of one without a row this is the first.
            let first = views.run(thread_id, run_id)?.map_or(event.seq, |run| run.first_seq);
            new_run = (first == event.seq && started.insert(run_id.clone())).then_some(run_id);
        }
        row = Some(ThreadRow::fold(row.take(), event, new_run));
        Ok(())
    })?;
    Ok(row)
}

/// Runs of the thread as they were then, newest first, those before the run whose `first_seq` is
/// `before`.
pub fn runs_as_of(
    views: &Projections,
    thread_id: &ThreadId,
    seq: Seq,
    before: Option<Seq>,
    limit: usize,
) -> Result<Vec<RunRow>, RowError> {
    let last = before.map_or(u64::MAX, |before| before.get().saturating_sub(1)).min(seq.get());
    let range = RunOrderKey::of_thread(thread_id).range_within(0, last);
    let order = views.0.store.snapshot().page::<RunOrderKey>(&range, Direction::Backward, limit)?;
    let mut runs = Vec::with_capacity(order.len());
    for (_, run_id) in order {
        runs.extend(run_as_of(views, thread_id, &run_id, seq)?);
    }
    Ok(runs)
}

/// The run as it was then.
pub fn run_as_of(
    views: &Projections,
    thread_id: &ThreadId,
    run_id: &RunId,
    seq: Seq,
) -> Result<Option<RunRow>, RowError> {
    let mut row = state(views, &RunKey::new(thread_id, run_id), seq)?;
    let after = row.as_ref().map_or(Seq::ZERO, |row| Seq::new(row.last_seq));
    let source = Source::Run(thread_id, run_id, EventFilter::default());
    for_each(&views.0.log, &source, after, seq, |event| {
        if RunRow::check(event).is_ok() {
            row = RunRow::fold(row.take(), event);
        }
        Ok(())
    })?;
    Ok(row)
}

/// The ledger of the thread, or of one of its runs, as it was then.
pub fn ledger_as_of(
    views: &Projections,
    thread_id: &ThreadId,
    run_id: Option<&RunId>,
    seq: Seq,
) -> Result<Vec<LedgerEntry>, RowError> {
    let part = Listing { as_of: Some(seq), ..Listing::WHOLE };
    Ok(views.ledger_part(thread_id, run_id, part)?.rows)
}

/// An entry of the ledger as it was then.
pub(crate) fn entry_as_of(
    views: &Projections,
    now: LedgerEntry,
    thread_id: &ThreadId,
    seq: Seq,
) -> Result<Option<LedgerEntry>, RowError> {
    if now.last_seq <= seq.get() {
        return Ok(Some(now));
    }
    let head = head_as_of(views, thread_id, &now.run_id, now.delegation_id, seq)?;
    Ok(head.map(|head| head.entry))
}

/// What is known of one delegation of a run, without its steps, receipts and caps, as it was then.
pub fn card_head_as_of(
    views: &Projections,
    thread_id: &ThreadId,
    run_id: &RunId,
    task: &TaskRef,
    seq: Seq,
) -> Result<Option<CardHead>, RowError> {
    let named = delegation_named(&views.0.store.snapshot(), thread_id, run_id, task, seq)?;
    let Some(delegation_id) = named else { return Ok(None) };
    let head = head_as_of(views, thread_id, run_id, delegation_id, seq)?;
    Ok(head.filter(|head| head.entry.run_id == *run_id))
}

/// The card of one delegation of a run, as it was then.
pub fn card_as_of(
    views: &Projections,
    thread_id: &ThreadId,
    run_id: &RunId,
    task: &TaskRef,
    seq: Seq,
) -> Result<Option<Card>, RowError> {
    let Some(head) = card_head_as_of(views, thread_id, run_id, task, seq)? else { return Ok(None) };
    let parts = parts_until(&views.0.store.snapshot(), thread_id, head.entry.delegation_id, seq)?;
    Ok(Some(Card::assemble(head, parts)))
}

fn head_as_of(
    views: &Projections,
    thread_id: &ThreadId,
    run_id: &RunId,
    delegation_id: DelegationId,
    seq: Seq,
) -> Result<Option<CardHead>, RowError> {
    let key = CardHeadKey { thread_id: thread_id.clone(), delegation_id };
    let mut head = state(views, &key, seq)?;
    let after = head.as_ref().map_or(Seq::ZERO, |head| Seq::new(head.entry.last_seq));
    let filter = EventFilter { delegation_id: Some(delegation_id), ..EventFilter::default() };
    for_each(&views.0.log, &Source::Run(thread_id, run_id, filter), after, seq, |event| {
        if delegation_of(event) == Some(delegation_id) {
            head = CardHead::fold(head.take(), event);
        }
        Ok(())
    })?;
    Ok(head)
}

/// The delegation that this name meant then. A task's name may have come to mean a newer one since.
fn delegation_named(
    snapshot: &Snapshot<'_>,
    thread_id: &ThreadId,
    run_id: &RunId,
    task: &TaskRef,
    seq: Seq,
) -> Result<Option<DelegationId>, RowError> {
    let task_id: &ToolCallId = match task {
        TaskRef::DelegationId(id) => return Ok(Some(*id)),
        TaskRef::TaskId(task_id) => task_id,
    };
    let Some(newest) = snapshot.get(&CardOfTaskKey::new(thread_id, run_id, task_id))? else {
        return Ok(None);
    };
    let entry = |delegation_id| snapshot.get(&LedgerEntryKey { thread_id: thread_id.clone(), delegation_id });
    if entry(newest)?.is_some_and(|entry| entry.first_seq <= seq.get()) {
        return Ok(Some(newest));
    }
    let all = delegations(snapshot, thread_id, Some(run_id), (0, seq.get()), usize::MAX)?;
    for (_, delegation_id) in all.into_iter().rev() {
        if entry(delegation_id)?.is_some_and(|entry| entry.task_id == *task_id) {
            return Ok(Some(delegation_id));
        }
    }
    Ok(None)
}

/// Whose events are folded.
pub(crate) enum Source<'a> {
    Thread(&'a ThreadId),
    Run(&'a ThreadId, &'a RunId, EventFilter),
}

impl Source<'_> {
    fn page(&self, log: &EventLog, after: Seq) -> Result<Vec<RecordedEvent>, RowError> {
        let page = match self {
            Self::Thread(thread_id) => {
                log.read_stream(&StreamId::Thread((*thread_id).clone()), after, PAGE_EVENTS)
            }
            Self::Run(thread_id, run_id, filter) => {
                log.read_run(thread_id, run_id, filter, after, PAGE_EVENTS)
            }
        };
        page.map_err(RowError::Log)
    }
}

/// Shows each decodable event after one seq and up to another, in order.
pub(crate) fn for_each(
    log: &EventLog,
    source: &Source<'_>,
    mut after: Seq,
    last: Seq,
    mut show: impl FnMut(&Logged) -> Result<(), RowError>,
) -> Result<(), RowError> {
    loop {
        let page = source.page(log, after)?;
        for event in page.iter().take_while(|event| event.seq <= last).filter(|event| !event.is_erased()) {
            if let Ok(event) = eventlog::decode(event) {
                show(&event)?;
            }
        }
        match page.last() {
            Some(newest) if newest.seq < last => after = newest.seq,
            Some(_) | None => return Ok(()),
        }
    }
}
