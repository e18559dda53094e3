//! Moments of the whole log: what the views answered about all threads when an event was the log's
//! newest.

use domain::ids::ThreadId;
use eventlog::{EventLog, Position, ReadError, Seq, StreamId};

use super::thread_as_of;
use crate::{projections::Projections, store::RowError, views::thread::ThreadRow};

/// Threads that are looked at in one go when many of them may have come later.
const LOOK_THREADS: usize = 64;

/// The seq of a thread's newest event when the log ended at a position; none where the thread had no
/// event yet. It looks at a few events, however long the thread is.
pub fn seq_at(log: &EventLog, thread_id: &ThreadId, position: Position) -> Result<Option<Seq>, ReadError> {
    let stream = StreamId::Thread(thread_id.clone());
    let Some(tail) = log.stream_tail(&stream)? else { return Ok(None) };
    let was_there = |seq: u64| -> Result<bool, ReadError> {
        let found = log.read_stream(&stream, Seq::new(seq.saturating_sub(1)), 1)?;
        Ok(found.first().is_some_and(|event| event.position <= position))
    };
    if was_there(tail.get())? {
        return Ok(Some(tail));
    }
    // Positions rise with seqs: what was there comes before what was not.
    let (mut there, mut not_there) = (0, tail.get());
    while there + 1 < not_there {
        let middle = there + (not_there - there) / 2;
        if was_there(middle)? {
            there = middle;
        } else {
            not_there = middle;
        }
    }
    Ok((there > 0).then(|| Seq::new(there)))
}

/// Threads in the order of their ids, after one, as they were when the log ended at a position, each
/// with its newest seq then. The views must have got as far as that.
pub fn threads_as_of(
    views: &Projections,
    position: Position,
    after: Option<&ThreadId>,
    limit: usize,
) -> Result<Vec<(ThreadRow, Seq)>, RowError> {
    let (mut rows, mut after) = (Vec::new(), after.cloned());
    loop {
        let page = views.threads(after.as_ref(), LOOK_THREADS)?;
        let Some(last) = page.last() else { return Ok(rows) };
        after = Some(last.thread_id.clone());
        for now in &page {
            if rows.len() >= limit {
                return Ok(rows);
            }
            let then = seq_at(&views.0.log, &now.thread_id, position).map_err(RowError::Log)?;
            let Some(seq) = then else { continue };
            rows.extend(thread_as_of(views, &now.thread_id, seq)?.map(|row| (row, seq)));
        }
    }
}
