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
    /// The page as it was when this was the thread's newest event; `None` is now.
    pub as_of: Option<Seq>,
    /// Events at most, counted after the filter.
    pub limit: usize,
}

/// The page, without what was erased. Fewer events than the limit mean that there were no more when it was read.
/// It is held whole: [`EventPieces`] does not.
pub fn event_page(log: &EventLog, query: &EventQuery) -> Result<Vec<RecordedEvent>, ReadError> {
    let (mut page, mut pieces) = (Vec::new(), EventPieces::new(log, query.clone()));
    loop {
        let piece = pieces.next_piece()?;
        if piece.is_empty() {
            return Ok(page);
        }
        page.extend(piece);
    }
}

/// A page piece by piece, so that no more than a piece is held, however large the events are.
pub struct EventPieces {
    log: EventLog,
    /// What is still to be read.
    rest: EventQuery,
}

impl EventPieces {
    /// Before the first piece.
    pub fn new(log: &EventLog, query: EventQuery) -> Self {
        Self { log: log.clone(), rest: query }
    }

    /// The next events, about `PAGE_BYTES_MAX` bytes of them; none at the end of the page.
    pub fn next_piece(&mut self) -> Result<Vec<RecordedEvent>, ReadError> {
        let last = self.rest.as_of.unwrap_or(Seq::new(u64::MAX));
        while self.rest.limit > 0 && self.rest.after < last {
            let read = self.read()?;
            let Some(newest) = read.last() else { break };
            self.rest.after = newest.seq;
            let wanted = |event: &RecordedEvent| event.seq <= last && self.wants(event);
            let piece: Vec<_> = read.into_iter().filter(wanted).take(self.rest.limit).collect();
            if !piece.is_empty() {
                self.rest.limit -= piece.len();
                return Ok(piece);
            }
        }
        Ok(Vec::new())
    }

    /// The log's own pages are bounded by bytes too: only an empty one is the end.
    fn read(&self) -> Result<Vec<RecordedEvent>, ReadError> {
        let EventQuery { thread_id, run_id, filter, after, limit, .. } = &self.rest;
        match run_id {
            Some(run_id) => self.log.read_run(thread_id, run_id, filter, *after, *limit),
            None => self.log.read_stream(&StreamId::Thread(thread_id.clone()), *after, SCAN_EVENTS),
        }
    }

    /// Of a run the log gives out only what is wanted.
    fn wants(&self, event: &RecordedEvent) -> bool {
        self.rest.run_id.is_some() || (!event.is_erased() && self.rest.filter.matches(event))
    }
}
