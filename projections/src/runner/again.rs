//! Rows that several runs had a part in are made again when one of the runs is erased: the thread is
//! folded from its beginning, without what can no longer be read. So the view is as one that never
//! saw the run, which is what a view that is made anew will be.

use domain::ids::ThreadId;
use eventlog::{EventLog, Seq, StreamId};

use super::page::{Origins, apply_with_care};
use crate::{rows::Rows, store::RowError, view::Registered};

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
    let made = fold_thread(log, view, thread_id, before)?;
    rows.replace(view.shared_kinds, thread_id, made)
}

fn fold_thread(
    log: &EventLog,
    view: &Registered,
    thread_id: &ThreadId,
    before: u64,
) -> Result<Rows<'static>, RowError> {
    let stream = StreamId::Thread(thread_id.clone());
    let (mut rows, mut origins, mut after) = (Rows::empty(), Origins::default(), Seq::ZERO);
    loop {
        let page = log.read_stream(&stream, after, PAGE_EVENTS).map_err(RowError::Log)?;
        let Some(last) = page.last() else { return Ok(rows) };
        after = last.seq;
        for event in page.iter().filter(|event| !event.is_erased()) {
            if event.position.get() >= before {
                return Ok(rows);
            }
            // What cannot be taken was parked when it came.
            if let Ok(fact) = eventlog::decode(event) {
                let origin = origins.of(thread_id, event.scope.run_id.as_ref());
                apply_with_care(view, &fact, origin, &mut rows)?;
            }
        }
    }
}
