//! What the views answered at an earlier moment: the log folded up to a `seq` of the thread, by the
//! functions that fold it live. Events that a view would have parked are left out here too.

use std::collections::{BTreeMap, HashSet};

use domain::{
    card::{Card, CardHead, CardPart},
    event::Logged,
    ids::{DelegationId, RunId, ThreadId},
    ledger::LedgerEntry,
};
use eventlog::{EventFilter, EventLog, ReadError, Seq, StreamId};

use crate::views::{
    card::TaskRef,
    ledger::delegation_of,
    run::{RunRow, started_run},
    thread::ThreadRow,
};

/// Events that are read at once. More saves little and holds more memory.
const PAGE_EVENTS: usize = 512;

/// Whose events are folded.
enum Source<'a> {
    Thread(&'a ThreadId),
    Run(&'a ThreadId, &'a RunId, EventFilter),
}

/// The thread as it was when its newest event was `seq`.
pub fn thread_as_of(log: &EventLog, thread_id: &ThreadId, seq: Seq) -> Result<Option<ThreadRow>, ReadError> {
    let (mut row, mut known) = (None, HashSet::new());
    for_each(log, &Source::Thread(thread_id), seq, |event| {
        let new_run = started_run(event).filter(|run_id| known.insert((*run_id).clone()));
        row = Some(ThreadRow::fold(row.take(), event, new_run));
    })?;
    Ok(row)
}

/// All runs of the thread, newest first, as they were then.
pub fn runs_as_of(log: &EventLog, thread_id: &ThreadId, seq: Seq) -> Result<Vec<RunRow>, ReadError> {
    let mut runs = BTreeMap::new();
    for_each(log, &Source::Thread(thread_id), seq, |event| {
        if let Some(run_id) = &event.scope.run_id {
            fold_run(runs.entry(run_id.clone()).or_default(), event);
        }
    })?;
    let mut runs: Vec<RunRow> = runs.into_values().flatten().collect();
    runs.sort_by_key(|row| std::cmp::Reverse(row.first_seq));
    Ok(runs)
}

/// The run as it was then.
pub fn run_as_of(
    log: &EventLog,
    thread_id: &ThreadId,
    run_id: &RunId,
    seq: Seq,
) -> Result<Option<RunRow>, ReadError> {
    let mut row = None;
    let source = Source::Run(thread_id, run_id, EventFilter::default());
    for_each(log, &source, seq, |event| fold_run(&mut row, event))?;
    Ok(row)
}

/// The ledger of the thread, or of one of its runs, as it was then.
pub fn ledger_as_of(
    log: &EventLog,
    thread_id: &ThreadId,
    run_id: Option<&RunId>,
    seq: Seq,
) -> Result<Vec<LedgerEntry>, ReadError> {
    let source = match run_id {
        Some(run_id) => Source::Run(thread_id, run_id, EventFilter::default()),
        None => Source::Thread(thread_id),
    };
    let mut entries = BTreeMap::<DelegationId, Option<LedgerEntry>>::new();
    for_each(log, &source, seq, |event| {
        if let Some(delegation_id) = delegation_of(event) {
            let entry = entries.entry(delegation_id).or_default();
            *entry = LedgerEntry::fold(entry.take(), event);
        }
    })?;
    let mut entries: Vec<LedgerEntry> = entries.into_values().flatten().collect();
    entries.sort_by_key(|entry| entry.first_seq);
    Ok(entries)
}

/// The card of one delegation of a run, as it was then.
pub fn card_as_of(
    log: &EventLog,
    thread_id: &ThreadId,
    run_id: &RunId,
    task: &TaskRef,
    seq: Seq,
) -> Result<Option<Card>, ReadError> {
    let mut filter = EventFilter::default();
    match task {
        TaskRef::TaskId(task_id) => filter.task_id = Some(task_id.clone()),
        TaskRef::DelegationId(delegation_id) => filter.delegation_id = Some(*delegation_id),
    }
    let mut cards = BTreeMap::<DelegationId, (Option<CardHead>, Vec<CardPart>)>::new();
    for_each(log, &Source::Run(thread_id, run_id, filter), seq, |event| {
        if let Some(delegation_id) = delegation_of(event) {
            let (head, parts) = cards.entry(delegation_id).or_default();
            *head = CardHead::fold(head.take(), event);
            parts.extend(CardPart::of(event));
        }
    })?;
    let cards = cards.into_values().filter_map(|(head, parts)| Some((head?, parts)));
    let newest = cards.max_by_key(|(head, _)| head.entry.first_seq);
    Ok(newest.map(|(head, parts)| Card::assemble(head, parts)))
}

fn fold_run(row: &mut Option<RunRow>, event: &Logged) {
    if RunRow::check(event).is_ok() {
        *row = RunRow::fold(row.take(), event);
    }
}

/// Shows each decodable event up to a seq, in order. An erased thread has none.
fn for_each(
    log: &EventLog,
    source: &Source<'_>,
    last: Seq,
    mut show: impl FnMut(&Logged),
) -> Result<(), ReadError> {
    let (Source::Thread(thread_id) | Source::Run(thread_id, ..)) = source;
    if log.is_erased(thread_id) {
        return Ok(());
    }
    let mut after = Seq::ZERO;
    loop {
        let page = match source {
            Source::Thread(thread_id) => {
                log.read_stream(&StreamId::Thread((*thread_id).clone()), after, PAGE_EVENTS)?
            }
            Source::Run(thread_id, run_id, filter) => {
                log.read_run(thread_id, run_id, filter, after, PAGE_EVENTS)?
            }
        };
        for event in page.iter().take_while(|event| event.seq <= last).filter(|event| !event.is_erased()) {
            if let Ok(event) = eventlog::decode(event) {
                show(&event);
            }
        }
        match page.last() {
            Some(newest) if newest.seq < last => after = newest.seq,
            Some(_) | None => return Ok(()),
        }
    }
}
