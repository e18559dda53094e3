//! Starting runs, and going on with those that a crash or a shutdown left without an end.

use std::sync::{Arc, Mutex, PoisonError};

use domain::{
    agent::{Agent, AgentEvent, AgentRole},
    event::{Event, RunSettings, RunStopReason, Scope},
    ids::{RunId, ThreadId, UserId},
    message::{HumanMessage, Message},
    run::{Run, RunCommand, RunEnding},
};
use eventlog::StreamId;
use tokio_util::task::TaskTracker;

use super::Runtime;
use crate::{
    config::Recovery,
    request::{HistoryError, RunRequest, StartRunError},
    run_context::{ResumableDelegation, RunContext},
    run_owner::{self, Decision, Record, RecordError, RunState},
    run_settings, run_task,
    thread_history::{RunHistory, ThreadHistory},
};

/// Streams that are listed at once while unfinished runs are looked for.
const STREAMS_PAGE: usize = 256;

/// A run about to be worked on.
struct Beginning {
    settings: RunSettings,
    state: RunState,
    owner: UserId,
    resumable: Vec<ResumableDelegation>,
}

impl Runtime {
    /// Starts a run. Answers when its start is durable.
    pub async fn start_run(&self, thread_id: &ThreadId, request: RunRequest) -> Result<RunId, StartRunError> {
        if self.stop.cause().is_some() {
            return Err(StartRunError::ShuttingDown);
        }
        run_settings::check_input(&request.input)?;
        let _one_at_a_time = self.starting.lock().await;
        let mut history = self.idle_thread(thread_id, &request).await?;
        let settings = run_settings::resolve(&self.services, &request)?;
        let run_id = settings.run_id.clone();
        let owner = history.owner.clone().unwrap_or_else(UserId::unowned);
        let beginning = Beginning { settings, state: RunState::default(), owner, resumable: Vec::new() };
        let context = self.context(thread_id, &history, beginning)?;
        let recorded = self.record_start(&context, request.input).await?;
        let mut agent = lead_agent(&context.settings, std::mem::take(&mut history.conversation));
        recorded.iter().filter_map(AgentEvent::of_lead).for_each(|event| agent.evolve(event));
        self.spawn(context, agent, false);
        Ok(run_id)
    }

    /// Goes on with every run that has no end, or ends it where the configuration says so. Gives
    /// the runs that go on.
    pub async fn recover(&self, recovery: Recovery) -> Result<Vec<(ThreadId, RunId)>, HistoryError> {
        let (mut resumed, mut after) = (Vec::new(), None::<StreamId>);
        loop {
            let page = self.services.log.streams(after.as_ref(), STREAMS_PAGE)?;
            let Some(last) = page.last() else { return Ok(resumed) };
            after = Some(last.stream.clone());
            for thread_id in page.iter().filter_map(|summary| summary.stream.thread_id()) {
                resumed.extend(self.recover_thread(thread_id, recovery).await?);
            }
        }
    }

    async fn recover_thread(
        &self,
        thread_id: &ThreadId,
        recovery: Recovery,
    ) -> Result<Vec<(ThreadId, RunId)>, HistoryError> {
        let Some(mut history) = self.history(thread_id)? else { return Ok(Vec::new()) };
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
                Recovery::Fail => self.end_orphan(thread_id, &history, &run_id, run).await,
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
        // A run that was recorded by somebody else has no settings of ours, and nothing to resume.
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
    async fn end_orphan(
        &self,
        thread_id: &ThreadId,
        history: &ThreadHistory,
        run_id: &RunId,
        run: RunHistory,
    ) {
        let owner = history.owner.clone().unwrap_or_else(UserId::unowned);
        let scope = Scope { run_id: Some(run_id.clone()), ..Scope::default() };
        let journal = self.journal(thread_id, owner, Some(run_id.to_string()));
        let handle = run_owner::spawn(run.state, journal, scope);
        let error = "interrupted: the server stopped before the run had ended, and was told not to resume it";
        let stop_reason = Some(RunStopReason::OrphanRecovered);
        let ending = RunEnding::Failed { error: error.to_owned(), stop_reason };
        let record = Record { decision: Decision::Run(RunCommand::End(ending)), facts: Vec::new() };
        if let Err(error) = handle.record(record).await {
            tracing::error!(%thread_id, %run_id, error = &error as &dyn std::error::Error, "an interrupted run has no recorded end");
        }
    }

    /// The history of a thread on which nothing runs. What an earlier process left open here is
    /// ended first.
    async fn idle_thread(
        &self,
        thread_id: &ThreadId,
        request: &RunRequest,
    ) -> Result<ThreadHistory, StartRunError> {
        let failed = |source| StartRunError::History { thread_id: thread_id.clone(), source };
        if let Some(active) = self.active(thread_id) {
            return Err(StartRunError::ActiveRun(active));
        }
        let unknown = || StartRunError::UnknownThread(thread_id.clone());
        let mut history = self.history(thread_id).map_err(failed)?.ok_or_else(unknown)?;
        let known = |run_id: &&RunId| history.ended.contains_key(run_id) || history.open.contains_key(run_id);
        if let Some(run_id) = request.run_id.as_ref().filter(known) {
            return Err(StartRunError::RunExists(run_id.clone()));
        }
        if history.open.is_empty() {
            return Ok(history);
        }
        for (run_id, run) in std::mem::take(&mut history.open) {
            self.end_orphan(thread_id, &history, &run_id, run).await;
        }
        self.history(thread_id).map_err(failed)?.ok_or_else(unknown)
    }

    fn active(&self, thread_id: &ThreadId) -> Option<RunId> {
        let live = self.services.live_runs.lock().unwrap_or_else(PoisonError::into_inner);
        live.get(thread_id).map(|context| context.settings.run_id.clone())
    }

    fn context(
        &self,
        thread_id: &ThreadId,
        history: &ThreadHistory,
        beginning: Beginning,
    ) -> Result<RunContext, StartRunError> {
        let folders = self.folders(thread_id, history.workspace.as_deref());
        let folders =
            folders.map_err(|source| StartRunError::Folders { thread_id: thread_id.clone(), source })?;
        let run_id = beginning.settings.run_id.clone();
        let scope = Scope { run_id: Some(run_id.clone()), ..Scope::default() };
        let journal = self.journal(thread_id, beginning.owner, Some(run_id.to_string()));
        Ok(RunContext {
            services: self.services.clone(),
            thread_id: thread_id.clone(),
            settings: Arc::new(beginning.settings),
            folders,
            owner: run_owner::spawn(beginning.state, journal, scope),
            stop: self.stop.child(),
            delegations: TaskTracker::new(),
            live: Arc::default(),
            resumable: Arc::new(Mutex::new(beginning.resumable)),
        })
    }

    async fn record_start(
        &self,
        context: &RunContext,
        input: Vec<HumanMessage>,
    ) -> Result<Vec<Event>, StartRunError> {
        let command = RunCommand::Start {
            settings: Box::new((*context.settings).clone()),
            input: input.into_iter().map(Message::Human).collect(),
        };
        let record = Record { decision: Decision::Run(command), facts: Vec::new() };
        context.owner.record(record).await.map_err(|error| match error {
            RecordError::Journal(source) => StartRunError::Journal(source),
            // A new run on an idle thread refuses nothing.
            RecordError::Run(_) | RecordError::Delegation(_) | RecordError::OwnerGone => {
                StartRunError::ShuttingDown
            }
        })
    }

    fn spawn(&self, context: RunContext, agent: Agent, is_begun: bool) {
        let thread_id = context.thread_id.clone();
        let mut live = self.services.live_runs.lock().unwrap_or_else(PoisonError::into_inner);
        live.insert(thread_id, context.clone());
        drop(live);
        self.runs.spawn(run_task::work(context, agent, is_begun));
    }
}

fn lead_agent(settings: &RunSettings, conversation: Vec<Message>) -> Agent {
    Agent::new(AgentRole::Lead, settings.max_turns, conversation)
}
