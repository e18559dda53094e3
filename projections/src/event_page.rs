//! Pages of events as the log holds them.
//!
//! They need no rows of their own: the log keeps events in the order in which they are read and
//! indexes them by run, task and delegation, so a copy could only be older than it. A page needs
//! no waiting either: what is acknowledged is in it.

use domain::ids::{RunId, ThreadId};
use eventlog::{EventFilter, EventLog, ReadError, RecordedEvent, Seq, StreamId};

/// Events that are read at once while a thread is filtered.
const SCAN_EVENTS: usize = 512;

/// A page of a run's or a thread's events, ascending by seq.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventQuery {
    /// The thread.
    pub thread_id: ThreadId,
    /// The run; none for the whole thread.
    pub run_id: Option<RunId>,
    /// Which events.
    pub filter: EventFilter,
    /// Exclusive: the last seq that the reader has.
    pub after: Seq,
    /// Events at most, counted after the filter.
    pub limit: usize,
}

/// The page, without what was erased. Fewer events than the limit mean that there were no more when it was read.
pub fn event_page(log: &EventLog, query: &EventQuery) -> Result<Vec<RecordedEvent>, ReadError> {
    match &query.run_id {
        Some(run_id) => run_page(log, query, run_id),
        None => thread_page(log, query),
    }
}

/// The log's own pages are bounded by bytes too: only an empty one is the end.
fn run_page(log: &EventLog, query: &EventQuery, run_id: &RunId) -> Result<Vec<RecordedEvent>, ReadError> {
    let (mut page, mut after) = (Vec::new(), query.after);
    while page.len() < query.limit {
        let read = log.read_run(&query.thread_id, run_id, &query.filter, after, query.limit - page.len())?;
        let Some(last) = read.last() else { break };
        after = last.seq;
        page.extend(read);
    }
    Ok(page)
}

fn thread_page(log: &EventLog, query: &EventQuery) -> Result<Vec<RecordedEvent>, ReadError> {
    let stream = StreamId::Thread(query.thread_id.clone());
    let (mut page, mut after) = (Vec::new(), query.after);
    while page.len() < query.limit {
        let scanned = log.read_stream(&stream, after, SCAN_EVENTS)?;
        let Some(last) = scanned.last() else { break };
        after = last.seq;
        let room = query.limit - page.len();
        page.extend(
            scanned.into_iter().filter(|event| !event.is_erased() && query.filter.matches(event)).take(room),
        );
    }
    Ok(page)
}
