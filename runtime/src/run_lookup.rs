//! What the log says of one run or one delegation, by the indexes: nothing else of the thread is read.

use domain::{
    decider::Decider as _,
    delegation::Delegation,
    event::Event,
    ids::{RunId, ThreadId},
    run::Run,
};
use eventlog::{EventFilter, EventLog, FOREIGN_SCHEMA_VERSION, Seq};

use crate::{
    journal::Fact,
    request::{HistoryError, TaskRef},
    run_owner::RunState,
};

/// What a run's state is made of.
const RUN_TYPES: [&str; 2] = ["run.start", "run.status"];
/// Events that are read at once.
const PAGE: usize = 256;

/// The run; absent where there is none of ours, or no more.
pub(crate) fn run(log: &EventLog, thread_id: &ThreadId, run_id: &RunId) -> Result<Run, HistoryError> {
    let event_types = Some(RUN_TYPES.map(str::to_owned).to_vec());
    let filter = EventFilter { event_types, ..EventFilter::default() };
    let mut run = Run::default();
    for_each(log, thread_id, run_id, &filter, |fact| run.evolve(&fact.event))?;
    Ok(run)
}

/// The newest delegation of the run that has this name.
pub(crate) fn delegation(
    log: &EventLog,
    thread_id: &ThreadId,
    run_id: &RunId,
    task: &TaskRef,
) -> Result<Option<Delegation>, HistoryError> {
    let mut filter = EventFilter::default();
    match task {
        TaskRef::TaskId(task_id) => filter.task_id = Some(task_id.clone()),
        TaskRef::DelegationId(delegation_id) => filter.delegation_id = Some(*delegation_id),
    }
    let mut state = RunState::default();
    for_each(log, thread_id, run_id, &filter, |fact| state.evolve(&fact))?;
    Ok(state.delegations.into_values().next_back().map(|(_, delegation)| delegation))
}

/// Shows each of our own events of the run that the filter admits.
fn for_each(
    log: &EventLog,
    thread_id: &ThreadId,
    run_id: &RunId,
    filter: &EventFilter,
    mut show: impl FnMut(Fact),
) -> Result<(), HistoryError> {
    let mut after = Seq::ZERO;
    loop {
        let page = log.read_run(thread_id, run_id, filter, after, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        for recorded in page.iter().filter(|recorded| recorded.schema_version != FOREIGN_SCHEMA_VERSION) {
            let event: Event = recorded.fact()?;
            show(Fact { scope: recorded.scope.clone(), event });
        }
    }
}
