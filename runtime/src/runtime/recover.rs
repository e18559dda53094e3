//! Going on with the runs that a crash or a shutdown left without an end, or ending them.

use domain::{
    event::{RunStopReason, Scope},
    ids::{RunId, ThreadId, UserId},
    run::{Run, RunCommand, RunEnding},
};
use eventlog::StreamId;

use super::{
    Runtime,
    start::{Beginning, lead_agent},
};
use crate::{
    config::Recovery,
    request::{HistoryError, RecoverError, StartRunError},
    run_owner::{self, Decision, Record, RecordError},
    thread_history::{RunHistory, ThreadHistory},
};

/// Streams that are listed at once while unfinished runs are looked for.
const STREAMS_PAGE: usize = 256;

impl Runtime {
    /// Destroys again what an older copy of the keys has brought back, and carries on the erasures
    /// that were cut off; then goes on with every run that has no end, or
    /// ends it where the configuration says so. Gives the runs that go on.
    pub async fn recover(&self, recovery: Recovery) -> Result<Vec<(ThreadId, RunId)>, RecoverError> {
        self.resume_erasures().await?;
        let (mut resumed, mut after) = (Vec::new(), None::<StreamId>);
        loop {
            let page = self.services.log.streams(after.as_ref(), STREAMS_PAGE)?;
            let Some(last) = page.last() else { return Ok(resumed) };
            after = Some(last.stream.clone());
            for thread_id in page.iter().filter_map(|summary| summary.stream.thread_id()) {
                match self.recover_thread(thread_id, recovery).await {
                    Ok(runs) => resumed.extend(runs),
                    // One thread that cannot be read does not keep the others from going on.
                    Err(error) => {
                        tracing::error!(%thread_id, error = &error as &dyn std::error::Error, "a thread's runs cannot go on")
                    }
                }
            }
        }
    }

    async fn recover_thread(
        &self,
        thread_id: &ThreadId,
        recovery: Recovery,
    ) -> Result<Vec<(ThreadId, RunId)>, HistoryError> {
        // A shutdown waits for it, and so for the runs that it starts.
        let _among_the_runs = self.runs.token();
        let _one_at_a_time = self.starting.lock(thread_id).await;
        if self.stop.cause().is_some() {
            return Ok(Vec::new());
        }
        let Some(mut history) = self.history(thread_id).await? else { return Ok(Vec::new()) };
        let mut resumed = Vec::new();
        for (run_id, run) in std::mem::take(&mut history.open) {
            if self.live(thread_id, &run_id).is_some() {
                continue;
            }
            match recovery {
                Recovery::Resume => match self.resume(thread_id, &history, run) {
                    Ok(()) => resumed.push((thread_id.clone(), run_id)),
                    Err(error) => {
                        tracing::error!(%thread_id, %run_id, error = &error as &dyn std::error::Error, "a run cannot go on")
                    }
                },
                Recovery::Fail => {
                    if let Err(error) = self.end_orphan(thread_id, &history, &run_id, run).await {
                        tracing::error!(%thread_id, %run_id, error = &error as &dyn std::error::Error, "an interrupted run has no recorded end");
                    }
                }
            }
        }
        Ok(resumed)
    }

    fn resume(
        &self,
        thread_id: &ThreadId,
        history: &ThreadHistory,
        mut run: RunHistory,
    ) -> Result<(), StartRunError> {
        // Only what began with settings is open.
        let Some(settings) = run.settings.take() else { return Ok(()) };
        let resumable = run.resumable();
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
