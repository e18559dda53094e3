//! Going on with the runs that a crash or a shutdown left without an end, or ending them.

use domain::{
    delegation::Delegation,
    event::{RunStopReason, Scope},
    ids::{RunId, ThreadId, UserId},
    run::{Run, RunCommand, RunEnding},
};
use eventlog::StreamId;
use tokio::sync::OwnedMutexGuard;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{
    Runtime,
    start::{Beginning, lead_agent},
};
use crate::{
    config::Recovery,
    request::{HistoryError, RecoverError, StartRunError},
    run_context::ResumableDelegation,
    run_owner::{self, Decision, Record, RecordError},
    thread_history::{RunHistory, ThreadHistory},
};

/// Streams that are listed at once while unfinished runs are looked for.
const STREAMS_PAGE: usize = 256;

/// A thread with runs that have no end.
struct Unfinished {
    thread_id: ThreadId,
    history: ThreadHistory,
    runs: Vec<(RunId, RunHistory, Vec<ResumableDelegation>)>,
    /// A shutdown waits for it, and so for the runs that it starts.
    among_the_runs: TaskTrackerToken,
    /// Nobody else starts a run on the thread meanwhile.
    one_at_a_time: OwnedMutexGuard<()>,
}

impl Runtime {
    /// Destroys again what an older copy of the keys has brought back, and carries on the erasures
    /// that were cut off; then goes on with every run that has no end, or
    /// ends it where the configuration says so. Gives the runs that go on.
    pub async fn recover(&self, recovery: Recovery) -> Result<Vec<(ThreadId, RunId)>, RecoverError> {
        self.resume_erasures().await?;
        let (mut unfinished, mut after) = (Vec::new(), None::<StreamId>);
        loop {
            let page = self.services.log.streams(after.as_ref(), STREAMS_PAGE)?;
            let Some(last) = page.last() else { break };
            after = Some(last.stream.clone());
            for thread_id in page.iter().filter_map(|summary| summary.stream.thread_id()) {
                match self.unfinished(thread_id).await {
                    Ok(found) => unfinished.extend(found),
                    // One thread that cannot be read does not keep the others from going on.
                    Err(error) => {
                        tracing::error!(%thread_id, error = &error as &dyn std::error::Error, "a thread's runs cannot go on")
                    }
                }
            }
        }
        if recovery == Recovery::Resume {
            self.take_places(&mut unfinished);
        }
        let mut resumed = Vec::new();
        for thread in unfinished {
            resumed.extend(self.go_on(thread, recovery).await);
        }
        Ok(resumed)
    }

    /// What the thread has to go on with.
    async fn unfinished(&self, thread_id: &ThreadId) -> Result<Option<Unfinished>, HistoryError> {
        let among_the_runs = self.runs.token();
        let one_at_a_time = self.starting.lock(thread_id).await;
        if self.stop.cause().is_some() {
            return Ok(None);
        }
        let Some(mut history) = self.history(thread_id).await? else { return Ok(None) };
        let open = std::mem::take(&mut history.open).into_iter();
        let open = open.filter(|(run_id, _)| self.live(thread_id, run_id).is_none());
        let runs: Vec<_> = open
            .map(|(run_id, mut run)| {
                let resumable = run.resumable();
                (run_id, run, resumable)
            })
            .collect();
        let thread_id = thread_id.clone();
        let found = Unfinished { thread_id, history, runs, among_the_runs, one_at_a_time };
        Ok((!found.runs.is_empty()).then_some(found))
    }

    /// Slots and places are taken again in the order in which they were got, those who were at work
    /// first, whatever threads they are of and before anybody goes on.
    fn take_places(&self, unfinished: &mut [Unfinished]) {
        let runs = unfinished.iter_mut().flat_map(|thread| &mut thread.runs);
        let delegations = runs.flat_map(|(_, _, resumable)| resumable);
        let mut open: Vec<_> = delegations.filter(|one| one.state.is_open()).collect();
        open.sort_by_key(|one| (matches!(one.state, Delegation::Waiting { .. }), one.position));
        for one in open {
            one.entry = one.scope.delegation_id.map(|id| self.services.admission.enter_again(id));
        }
    }

    /// Goes on with the thread's runs, or ends them. Gives those that go on.
    async fn go_on(&self, thread: Unfinished, recovery: Recovery) -> Vec<(ThreadId, RunId)> {
        let Unfinished { thread_id, history, runs, among_the_runs: _held, one_at_a_time: _locked } = thread;
        let mut resumed = Vec::new();
        for (run_id, run, resumable) in runs {
            match recovery {
                Recovery::Resume => match self.resume(&thread_id, &history, run, resumable) {
                    Ok(()) => resumed.push((thread_id.clone(), run_id)),
                    Err(error) => {
                        tracing::error!(%thread_id, %run_id, error = &error as &dyn std::error::Error, "a run cannot go on")
                    }
                },
                Recovery::Fail => {
                    if let Err(error) = self.end_orphan(&thread_id, &history, &run_id, run).await {
                        tracing::error!(%thread_id, %run_id, error = &error as &dyn std::error::Error, "an interrupted run has no recorded end");
                    }
                }
            }
        }
        resumed
    }

    fn resume(
        &self,
        thread_id: &ThreadId,
        history: &ThreadHistory,
        mut run: RunHistory,
        resumable: Vec<ResumableDelegation>,
    ) -> Result<(), StartRunError> {
        // Only what began with settings is open.
        let Some(settings) = run.settings.take() else { return Ok(()) };
        let is_begun = matches!(&run.state.run, Run::Open(open) if open.is_begun);
        let owner = history.owner.clone().unwrap_or_else(UserId::unowned);
        let beginning = Beginning { settings, state: run.state, owner, resumable };
        let context = self.context(thread_id, history, beginning)?;
        let mut agent = lead_agent(&context.settings, history.conversation.clone());
        run.lead.into_iter().for_each(|event| agent.evolve(event));
        self.spawn(context, agent, is_begun);
        Ok(())
    }

    /// Ends a run that nobody works on.
    pub(super) async fn end_orphan(
        &self,
        thread_id: &ThreadId,
        history: &ThreadHistory,
        run_id: &RunId,
        run: RunHistory,
    ) -> Result<(), RecordError> {
        let owner = history.owner.clone().unwrap_or_else(UserId::unowned);
        let scope = Scope { run_id: Some(run_id.clone()), ..Scope::default() };
        let journal = self.journal(thread_id, owner, Some(run_id.to_string()));
        let handle = run_owner::spawn(run.state, journal, scope);
        let error = "interrupted: the process that worked on the run stopped before the run had ended, and it was not resumed";
        let stop_reason = Some(RunStopReason::OrphanRecovered);
        let ending = RunEnding::Failed { error: error.to_owned(), stop_reason };
        let record = Record { decision: Decision::Run(RunCommand::End(ending)), facts: Vec::new() };
        handle.record(record).await.map(drop)
    }
}
