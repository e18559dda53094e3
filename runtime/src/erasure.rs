//! Erasures, as the registry tells of them.

use domain::{
    event::{ErasureReason, ErasureRequested, Event, RegistryEvent},
    ids::{ErasureId, RunHash, ThreadId},
};
use eventlog::{EventLog, Position, RecordedEvent, Sealer, Seq, StreamId};
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

/// The erasure of one thread, or of one run on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// The erasure.
    pub erasure_id: ErasureId,
    /// The thread.
    pub thread_id: ThreadId,
    /// The run; none for the whole thread.
    pub run: Option<RunHash>,
    /// What was asked for.
    pub reason: ErasureReason,
    /// How far it has got.
    pub state: ErasureState,
    /// Events that it takes, or took, from everybody: none that an earlier erasure took.
    pub events: u64,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// When it was done.
    pub done_at: Option<Timestamp>,
}

impl Erasure {
    /// One that has only been asked for.
    pub(crate) fn begun(requested: ErasureRequested) -> Self {
        Self {
            erasure_id: requested.erasure_id,
            thread_id: requested.thread_id,
            run: requested.run_hash,
            reason: requested.reason,
            state: ErasureState::Requested,
            events: requested.events,
            requested_at: requested.requested_at,
            done_at: None,
        }
    }

    /// Whether it has its end and its key is there all the same: an older copy of the keys was put
    /// back.
    fn is_revived(&self, sealer: &Sealer) -> bool {
        self.state == ErasureState::Done && !self.is_key_destroyed(sealer)
    }

    fn is_key_destroyed(&self, sealer: &Sealer) -> bool {
        sealer.is_erased(&self.thread_id) || self.run.is_some_and(|run| sealer.is_run_erased(run))
    }
}

/// All erasures, in the order in which they were asked for. A key that is destroyed says by itself
/// that an erasure has got so far.
pub(crate) fn read_all(log: &EventLog) -> Result<Vec<Erasure>, HistoryError> {
    let mut erasures = read_until(log, Position::new(u64::MAX))?;
    let sealer = log.sealer();
    for erasure in &mut erasures {
        if erasure.state == ErasureState::Requested && erasure.is_key_destroyed(&sealer) {
            erasure.state = ErasureState::Erasing;
        }
    }
    Ok(erasures)
}

/// The erasures as the registry told of them up to a position. When keys were destroyed is not recorded, so
/// that none is known to be on its way then.
pub(crate) fn read_until(log: &EventLog, last: Position) -> Result<Vec<Erasure>, HistoryError> {
    let (mut erasures, mut after) = (Vec::new(), Seq::ZERO);
    loop {
        let page = log.read_stream(&StreamId::Registry, after, PAGE)?;
        let Some(newest) = page.last() else { return Ok(erasures) };
        after = newest.seq;
        for recorded in &page {
            if recorded.position > last {
                return Ok(erasures);
            }
            take(&mut erasures, recorded)?;
        }
    }
}

/// Events of a thread that erasures of its runs took, as far as those have their end.
pub(crate) fn erased_by_runs(erasures: &[Erasure], thread_id: &ThreadId) -> u64 {
    let of_runs = ended_on(erasures, thread_id).filter(|one| one.run.is_some());
    of_runs.map(|one| one.events).sum()
}

/// Whether an erasure of the whole thread has its end.
pub(crate) fn is_thread_erased(erasures: &[Erasure], thread_id: &ThreadId) -> bool {
    ended_on(erasures, thread_id).any(|one| one.run.is_none())
}

fn ended_on<'a>(erasures: &'a [Erasure], thread_id: &ThreadId) -> impl Iterator<Item = &'a Erasure> {
    erasures.iter().filter(move |one| one.state == ErasureState::Done && one.thread_id == *thread_id)
}

/// The erasures of a log that have their end and whose keys are there all the same.
pub(crate) fn revived_in(log: &EventLog) -> Result<Vec<Erasure>, HistoryError> {
    let (mut erasures, sealer) = (read_all(log)?, log.sealer());
    erasures.retain(|erasure| erasure.is_revived(&sealer));
    Ok(erasures)
}

/// The erasures that have their end in these events of the registry and whose keys are there all the
/// same: somebody put an older copy of the keys back.
pub fn revived(registry: &[RecordedEvent], sealer: &Sealer) -> Result<Vec<Erasure>, HistoryError> {
    let mut erasures = Vec::new();
    for recorded in registry {
        take(&mut erasures, recorded)?;
    }
    erasures.retain(|erasure| erasure.is_revived(sealer));
    Ok(erasures)
}

fn take(erasures: &mut Vec<Erasure>, recorded: &RecordedEvent) -> Result<(), HistoryError> {
    match recorded.fact()? {
        Event::Registry(RegistryEvent::ErasureRequested(requested)) => {
            erasures.push(Erasure::begun(requested));
        }
        Event::Registry(RegistryEvent::ThreadErased(erased)) => {
            done(erasures, erased.erasure_id, erased.events, recorded.recorded_at);
        }
        Event::Registry(RegistryEvent::RunErased(erased)) => {
            done(erasures, erased.erasure_id, erased.events, recorded.recorded_at);
        }
        Event::Registry(
            RegistryEvent::ErasureRepeated(_)
            | RegistryEvent::DefinitionCreated(_)
            | RegistryEvent::DefinitionUpdated(_)
            | RegistryEvent::DefinitionEnabled(_)
            | RegistryEvent::DefinitionDisabled(_)
            | RegistryEvent::DefinitionDeleted(_)
            | RegistryEvent::DefinitionRolledBack(_),
        )
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

fn done(erasures: &mut [Erasure], erasure_id: ErasureId, events: u64, at: Timestamp) {
    let mut newest_first = erasures.iter_mut().rev();
    if let Some(erasure) = newest_first.find(|erasure| erasure.erasure_id == erasure_id) {
        erasure.events = events;
        erasure.state = ErasureState::Done;
        erasure.done_at.get_or_insert(at);
    }
}
