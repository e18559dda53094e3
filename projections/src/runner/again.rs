//! Rows that several runs had a part in are made again when one of the runs is erased: the thread is
//! folded from its beginning, without what can no longer be read. So the view is as one that never
//! saw the run, which is what a view that is made anew will be.

use std::collections::BTreeSet;

use domain::ids::ThreadId;
use eventlog::{EventLog, Seq, StreamId};

use super::page::Origins;
use crate::{
    rows::Rows,
    store::RowError,
    view::{FoldError, Registered},
};

/// Events that are read at once.
const PAGE_EVENTS: usize = 512;

/// Folds the thread up to a position into the rows, as far as they are shared.
pub(super) fn fold(
    log: &EventLog,
    view: &Registered,
    thread_id: &ThreadId,
    before: u64,
    rows: &mut Rows<'_>,
) -> Result<(), RowError> {
    if view.shared_kinds.is_empty() {
        return Ok(());
    }
    let mut skipped = BTreeSet::new();
    loop {
        match try_fold(log, view, thread_id, before, &skipped) {
            Ok(made) => return rows.replace(view.shared_kinds, thread_id, made),
            Err((_, FoldError::Row(error))) => return Err(error),
            // Nothing of half an event stays: without it, from the beginning.
            Err((position, FoldError::Contradiction(_))) => drop(skipped.insert(position)),
        }
    }
}

fn try_fold(
    log: &EventLog,
    view: &Registered,
    thread_id: &ThreadId,
    before: u64,
    skipped: &BTreeSet<u64>,
) -> Result<Rows<'static>, (u64, FoldError)> {
    let stream = StreamId::Thread(thread_id.clone());
    let (mut rows, mut origins, mut after) = (Rows::empty(), Origins::default(), Seq::ZERO);
    loop {
        let page = log.read_stream(&stream, after, PAGE_EVENTS);
        let page = page.map_err(|source| (0, FoldError::Row(RowError::Log(source))))?;
        let Some(last) = page.last() else { return Ok(rows) };
        after = last.seq;
        for event in page.iter().filter(|event| !event.is_erased()) {
            let position = event.position.get();
            if position >= before {
                return Ok(rows);
            }
            // What cannot be decoded was parked when it came.
            let Ok(fact) = eventlog::decode(event) else { continue };
            if !skipped.contains(&position) {
                rows.next_event(origins.of(thread_id, event.scope.run_id.as_ref()));
                (view.apply)(&fact, &mut rows).map_err(|error| (position, error))?;
            }
        }
    }
}
