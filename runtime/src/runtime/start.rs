//! Starting runs.

use std::sync::{Arc, Mutex};

use domain::{
    agent::{Agent, AgentEvent, AgentRole, Conversation},
    event::{Event, RunSettings, Scope},
    guard::GuardLimits,
    ids::{RunId, ThreadId, UserId},
    message::{HumanMessage, Message},
    run::RunCommand,
};
use tokio_util::task::TaskTracker;

use super::Runtime;
use crate::{
    live_runs::LiveRuns,
    request::{RunRequest, StartRunError},
    run_context::{ResumableDelegation, RunContext, frozen_registry},
    run_owner::{self, Decision, Record, RecordError, RunState},
    run_settings, run_task,
    thread_history::ThreadHistory,
};

/// A run about to be worked on.
pub(super) struct Beginning {
    pub(super) settings: RunSettings,
    pub(super) state: RunState,
    pub(super) owner: UserId,
    pub(super) resumable: Vec<ResumableDelegation>,
}

impl Runtime {
    /// Starts a run. Answers when its start is durable. A caller that goes away meanwhile does not
    /// leave a run behind that nobody works on.
    pub async fn start_run(&self, thread_id: &ThreadId, request: RunRequest) -> Result<RunId, StartRunError> {
        if self.stop.cause().is_some() {
            return Err(StartRunError::ShuttingDown);
        }
        run_settings::check_input(&request.input)?;
        let (runtime, thread_id) = (self.clone(), thread_id.clone());
        let started = self.runs.spawn(async move { runtime.start(&thread_id, request).await });
        match started.await {
            Ok(started) => started,
            Err(failure) if failure.is_panic() => std::panic::resume_unwind(failure.into_panic()),
            Err(_) => Err(StartRunError::ShuttingDown),
        }
    }

    async fn start(&self, thread_id: &ThreadId, request: RunRequest) -> Result<RunId, StartRunError> {
        let _one_at_a_time = self.starting.lock(thread_id).await;
        if self.stop.cause().is_some() {
            return Err(StartRunError::ShuttingDown);
        }
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

    /// The history of a thread on which nothing runs. What an earlier process left open here is
    /// ended first.
    async fn idle_thread(
        &self,
        thread_id: &ThreadId,
        request: &RunRequest,
    ) -> Result<ThreadHistory, StartRunError> {
        let failed = |source| StartRunError::History { thread_id: thread_id.clone(), source };
        if let Some(active) = self.services.live_runs.active(thread_id) {
            return Err(StartRunError::ActiveRun(active));
        }
        if self.services.log.is_erased(thread_id) {
            return Err(StartRunError::Erased(thread_id.clone()));
        }
        let is_erased = |run_id: &&RunId| self.services.log.is_run_erased(thread_id, run_id);
        if let Some(run_id) = request.run_id.as_ref().filter(is_erased) {
            return Err(StartRunError::RunErased(run_id.clone()));
        }
        let unknown = || StartRunError::UnknownThread(thread_id.clone());
        let mut history = self.history(thread_id).await.map_err(failed)?.ok_or_else(unknown)?;
        if let Some(run_id) = request.run_id.as_ref().filter(|run_id| history.names(run_id)) {
            return Err(StartRunError::RunExists(run_id.clone()));
        }
        if history.open.is_empty() {
            return Ok(history);
        }
        for (run_id, run) in std::mem::take(&mut history.open) {
            self.end_orphan(thread_id, &history, &run_id, run).await.map_err(unstarted)?;
        }
        self.history(thread_id).await.map_err(failed)?.ok_or_else(unknown)
    }

    pub(super) fn context(
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
            registry: frozen_registry(&self.services, &beginning.settings),
            settings: Arc::new(beginning.settings),
            folders,
            tool_work: self.services.tool_work.of(thread_id, &run_id),
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
        context.owner.record(record).await.map_err(unstarted)
    }

    pub(super) fn spawn(&self, context: RunContext, agent: Agent, is_begun: bool) {
        self.runs.spawn(run_task::work(LiveRuns::enter(context), agent, is_begun));
    }
}

/// A new run on an idle thread, and the end of one that nobody works on, are refused by nothing
/// but the log.
fn unstarted(error: RecordError) -> StartRunError {
    match error {
        RecordError::Journal(source) => StartRunError::Journal(source),
        RecordError::Run(_) | RecordError::Delegation(_) | RecordError::OwnerGone => {
            StartRunError::ShuttingDown
        }
    }
}

pub(super) fn lead_agent(settings: &RunSettings, conversation: Conversation) -> Agent {
    let agent = Agent::new(AgentRole::Lead, settings.max_turns, conversation);
    agent.guarded_by(GuardLimits::of_lead(settings))
}
