//! Erasures, as the registry tells of them.

use domain::{
    event::{ErasureReason, ErasureRequested, Event, RegistryEvent, ThreadErased},
    ids::{ErasureId, ThreadId},
};
use eventlog::{EventLog, RecordedEvent, Seq, StreamId};
use jiff::Timestamp;

use crate::request::HistoryError;

/// Events of the registry that are read at once; each is a few hundred bytes.
const PAGE: usize = 256;

/// How far an erasure has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErasureState {
    /// It is recorded; runs are being stopped.
    Requested,
    /// The keys are destroyed: nothing can be read any more. What is left is being removed.
    Erasing,
    /// Nothing is left.
    Done,
}

/// The erasure of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// The erasure.
    pub erasure_id: ErasureId,
    /// The thread.
    pub thread_id: ThreadId,
    /// What was asked for.
    pub reason: ErasureReason,
    /// How far it has got.
    pub state: ErasureState,
    /// Events that it takes, or took, from everybody.
    pub events: u64,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// When it was done.
    pub done_at: Option<Timestamp>,
}

/// All erasures, in the order in which they were asked for. A key that is destroyed says by itself
/// that an erasure has got so far.
pub(crate) fn read_all(log: &EventLog) -> Result<Vec<Erasure>, HistoryError> {
    let (mut erasures, mut after) = (Vec::new(), Seq::ZERO);
    loop {
        let page = log.read_stream(&StreamId::Registry, after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for recorded in &page {
            take(&mut erasures, recorded)?;
        }
    }
    for erasure in &mut erasures {
        if erasure.state == ErasureState::Requested && log.is_erased(&erasure.thread_id) {
            erasure.state = ErasureState::Erasing;
        }
    }
    Ok(erasures)
}

fn take(erasures: &mut Vec<Erasure>, recorded: &RecordedEvent) -> Result<(), HistoryError> {
    match recorded.fact()? {
        Event::Registry(RegistryEvent::ErasureRequested(requested)) => erasures.push(begun(requested)),
        Event::Registry(RegistryEvent::ThreadErased(ThreadErased { erasure_id, events, .. })) => {
            let mut newest_first = erasures.iter_mut().rev();
            if let Some(erasure) = newest_first.find(|erasure| erasure.erasure_id == erasure_id) {
                erasure.events = events;
                erasure.state = ErasureState::Done;
                erasure.done_at.get_or_insert(recorded.recorded_at);
            }
        }
        Event::Registry(RegistryEvent::RunErased(_) | RegistryEvent::ErasureRepeated(_))
        | Event::Thread(_)
        | Event::Run(_)
        | Event::Model(_)
        | Event::Tool(_)
        | Event::Delegation(_)
        | Event::Subagent(_)
        | Event::Foreign(_) => {}
    }
    Ok(())
}

pub(crate) fn begun(requested: ErasureRequested) -> Erasure {
    Erasure {
        erasure_id: requested.erasure_id,
        thread_id: requested.thread_id,
        reason: requested.reason,
        state: ErasureState::Requested,
        events: requested.events,
        requested_at: requested.requested_at,
        done_at: None,
    }
}
