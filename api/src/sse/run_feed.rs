//! The events of one run: first those that are there, by the run's own index, then those that
//! come, by a subscription to its thread.

use std::collections::VecDeque;

use domain::{
    event::RunStatusChanged,
    ids::{RunId, ThreadId},
};
use eventlog::{
    EventFilter, EventLog, Position, ReadError, RecordedEvent, Seq, StreamId, SubscribeFrom, Subscription,
};

use crate::error::{Answer, ApiError};

/// Events that are held for one client at most. Bodies may have megabytes, and a client that does
/// not read holds its page until it is dropped.
const PAGE: usize = 16;
/// States of one run: pending, running and one ending, with room for foreign ones of the same type.
const STATUS_EVENTS_MAX: usize = 64;
/// The event that carries a run's state.
const RUN_STATUS: &str = "run.status";

/// Reads one run's events in order, each once.
pub(crate) struct RunFeed {
    log: EventLog,
    pub(super) thread_id: ThreadId,
    pub(super) run_id: RunId,
    /// The last seq that was given out or passed over.
    after: Seq,
    /// The run's terminal status, where it had one when the feed was opened.
    ended_at: Option<Seq>,
    page: VecDeque<RecordedEvent>,
    live: Option<Subscription>,
}

impl RunFeed {
    /// Opens the feed after a position of the log. A run that is not there is a 404.
    pub(crate) fn open(log: &EventLog, thread_id: ThreadId, run_id: RunId, after: Position) -> Answer<Self> {
        let stream = StreamId::Thread(thread_id.clone());
        let tail = log.stream_tail(&stream)?.ok_or_else(|| ApiError::no_thread(&thread_id))?;
        if log.read_run(&thread_id, &run_id, &EventFilter::default(), Seq::ZERO, 1)?.is_empty() {
            return Err(ApiError::no_run(&run_id));
        }
        let after = seq_at(log, &stream, tail, after)?;
        let ended_at = ended_at(log, &thread_id, &run_id)?;
        Ok(Self { log: log.clone(), thread_id, run_id, after, ended_at, page: VecDeque::new(), live: None })
    }

    /// Whether there is nothing more to come: the reader has the run's terminal status.
    pub(crate) fn is_over(&self) -> bool {
        self.ended_at.is_some_and(|ended_at| self.after >= ended_at)
    }

    /// The next event; waits until there is one. None when the run was erased meanwhile. Nothing is
    /// lost when the call is cancelled.
    pub(crate) async fn next(&mut self) -> Result<Option<RecordedEvent>, ReadError> {
        loop {
            if let Some(event) = self.page.pop_front() {
                self.after = event.seq;
                if is_terminal(&event) {
                    self.ended_at.get_or_insert(event.seq);
                }
                return Ok(Some(event));
            }
            if self.log.is_run_erased(&self.thread_id, &self.run_id) {
                return Ok(None);
            }
            self.page = match &mut self.live {
                None => self.next_of_history()?,
                Some(live) => live.next_page(PAGE).await?.into(),
            };
            // The thread's other runs are not this reader's business.
            self.page.retain(|event| event.scope.run_id.as_ref() == Some(&self.run_id));
        }
    }

    /// The tail is read before the page: when the page is empty, everything of this run up to the
    /// tail has been given out, and the subscription may begin there.
    fn next_of_history(&mut self) -> Result<VecDeque<RecordedEvent>, ReadError> {
        let stream = StreamId::Thread(self.thread_id.clone());
        let tail = self.log.stream_tail(&stream)?.unwrap_or(Seq::ZERO);
        let page =
            self.log.read_run(&self.thread_id, &self.run_id, &EventFilter::default(), self.after, PAGE)?;
        if page.is_empty() {
            let after = self.after.max(tail);
            self.live = Some(self.log.subscribe(SubscribeFrom::Stream { id: stream, after }));
        }
        Ok(page.into())
    }
}

/// Whether the event is the run's terminal status.
pub(super) fn is_terminal(event: &RecordedEvent) -> bool {
    event.event_type == RUN_STATUS
        && event.content.deserialize::<RunStatusChanged>().is_ok_and(|changed| changed.status.is_terminal())
}

fn ended_at(log: &EventLog, thread_id: &ThreadId, run_id: &RunId) -> Result<Option<Seq>, ReadError> {
    let filter = EventFilter { event_types: Some(vec![RUN_STATUS.to_owned()]), ..EventFilter::default() };
    let states = log.read_run(thread_id, run_id, &filter, Seq::ZERO, STATUS_EVENTS_MAX)?;
    Ok(states.iter().find(|event| is_terminal(event)).map(|event| event.seq))
}

/// The last seq of a thread at a position of the log, found by halving: both grow together.
fn seq_at(log: &EventLog, stream: &StreamId, tail: Seq, position: Position) -> Result<Seq, ReadError> {
    let (mut low, mut high) = (0, if position == Position::ZERO { 0 } else { tail.get() });
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let found = log.read_stream(stream, Seq::new(middle - 1), 1)?;
        if found.first().is_some_and(|event| event.position <= position) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Ok(Seq::new(low))
}

#[cfg(test)]
mod tests;
