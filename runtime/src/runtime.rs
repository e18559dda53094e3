//! The runtime as everybody sees it: threads and runs, started, stopped and waited for.

mod cancel;
mod erase;
mod manage;
mod recover;
mod start;
mod thread;

pub use self::{
    erase::{Erase, Erasing, enforce as enforce_erasures},
    manage::{ManageOrder, Managed},
};

use std::{path::PathBuf, sync::Arc, time::Duration};

use domain::{
    definition::Registry,
    event::RunStatus,
    ids::{DelegationId, RunId, ThreadId},
    run::Run,
};
use eventlog::{EventLog, ReadError};
use tokio_util::task::TaskTracker;

use crate::{
    admission::{Admission, AdmissionLimits, Capacity, QueuePlace},
    cancellation::{StopCause, StopSignal},
    clock::Clock,
    config::{Config, limit_problems},
    id_source::IdSource,
    live_runs::LiveRuns,
    locks::Locks,
    managed_registry::ManagedRegistry,
    models::{
        Models,
        circuit::Circuits,
        retry::{Pauses, RetryPolicy, SystemPauses},
    },
    request::{CancelError, HistoryError, LimitsOutOfRange},
    run_context::RunContext,
    run_lookup,
    sandbox::{self, Confinement, NoConfinement},
    services::Services,
    thread_history::ThreadHistory,
    tool_work::ToolWork,
    tools::Toolbox,
    upkeep::Upkeep,
};

/// What a runtime is made of.
pub struct RuntimeParts {
    /// Where facts go.
    pub log: EventLog,
    /// What the operator wrote; frozen here.
    pub config: Config,
    /// The models.
    pub models: Models,
    /// Where threads have their folders.
    pub data_folder: PathBuf,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn IdSource>,
}

/// Runs leads and their subagents. Cheap to clone; all clones are one runtime.
#[derive(Clone)]
pub struct Runtime {
    services: Arc<Services>,
    /// Shutting down stops everything.
    stop: StopSignal,
    runs: TaskTracker,
    /// One start at a time on each thread, so that two cannot find it idle.
    starting: Locks<ThreadId>,
    /// One request at a time for each thread, so that two erasures of the same are one.
    erasing: Locks<ThreadId>,
    jobs: erase::Jobs,
    upkeep: Upkeep,
}

impl Runtime {
    /// A runtime with nothing to do, over a data folder that it alone uses: what an earlier one left at
    /// work there when it died is ended first. Blocks for some milliseconds: processes are searched, and
    /// it is probed how shell lines can be confined.
    ///
    /// A limit out of its range is an error here, whoever made the configuration: nothing clamps it
    /// later.
    pub fn new(parts: RuntimeParts) -> Result<Self, LimitsOutOfRange> {
        let retry_policy = parts.config.llm_call.retry_policy();
        Self::with_pauses(parts, retry_policy, Arc::new(SystemPauses))
    }

    /// The same, with retries and waits of one's own.
    pub fn with_pauses(
        parts: RuntimeParts,
        retry_policy: RetryPolicy,
        pauses: Arc<dyn Pauses>,
    ) -> Result<Self, LimitsOutOfRange> {
        let problems = limit_problems(&parts.config);
        if !problems.is_empty() {
            return Err(LimitsOutOfRange(problems));
        }
        Ok(Self::with_toolbox(parts, retry_policy, pauses, Toolbox::builtin()))
    }

    /// The same, with tools of one's own.
    pub(crate) fn with_toolbox(
        parts: RuntimeParts,
        retry_policy: RetryPolicy,
        pauses: Arc<dyn Pauses>,
        toolbox: Toolbox,
    ) -> Self {
        let config = parts.config;
        let left = sandbox::end_leftovers(&parts.data_folder);
        if left > 0 {
            tracing::warn!(processes = left, "ended what a server that died had left at work");
        }
        let upkeep = Upkeep::new(
            parts.log.clone(),
            &parts.data_folder,
            config.backups_folder(),
            config.log.signing_key.clone(),
            Arc::clone(&parts.clock),
            Arc::clone(&parts.ids),
        );
        let gate = config.subagent_runtime;
        let limits = AdmissionLimits { max_running: gate.max_running, queue_capacity: gate.queue_capacity };
        let max_total_per_run = config.subagents.max_total_per_run;
        let context_tokens = parts.models.context_tokens();
        let compaction = config.summarization.settings(context_tokens);
        let services = Services {
            log: parts.log,
            data_folder: parts.data_folder,
            models: parts.models.gated(config.llm_call.max_concurrent_calls),
            circuits: Circuits::new(config.circuit_breaker.policy()),
            retry_policy,
            pauses,
            registry: Registry::new(config.subagents, config.summarization.enabled),
            managed: ManagedRegistry::default(),
            receipts_enabled: config.verification.receipts_enabled,
            admission: Admission::new(limits),
            queue_timeout: Duration::from_secs(gate.queue_timeout_seconds),
            confinement: Confinement::probe(config.sandbox).map(Arc::new),
            toolbox,
            clock: parts.clock,
            ids: parts.ids,
            max_total_per_run,
            token_budget: config
                .token_budget
                .map(|written| written.resolve())
                .filter(|budget| budget.enabled),
            compaction,
            loop_limits: config.loop_detection.limits(),
            model_retries_max: config.llm_call.retry_max_per_run,
            progress_limits: config.tool_progress.limits(),
            live_runs: LiveRuns::default(),
            tool_work: ToolWork::default(),
        };
        Self {
            services: Arc::new(services),
            stop: StopSignal::root(),
            runs: TaskTracker::new(),
            starting: Locks::default(),
            erasing: Locks::default(),
            jobs: erase::Jobs::default(),
            upkeep,
        }
    }

    /// Backups and verifications of the log in use.
    pub const fn upkeep(&self) -> &Upkeep {
        &self.upkeep
    }

    /// How full the gate for subagents is.
    pub fn capacity(&self) -> Capacity {
        self.services.admission.capacity()
    }

    /// Where a delegation is in the queue of the gate; `None` when it is not there.
    pub fn queue_place(&self, delegation_id: DelegationId) -> Option<QueuePlace> {
        self.services.admission.place(delegation_id)
    }

    /// The names of the models, the default one first.
    pub fn models(&self) -> Vec<String> {
        self.services.models.names()
    }

    /// How shell lines are confined here, or why there are none.
    pub fn confinement(&self) -> Result<&'static str, &NoConfinement> {
        self.services.confinement.as_ref().map(|confinement| confinement.name())
    }

    /// Waits until the run has its end.
    pub async fn wait(&self, thread_id: &ThreadId, run_id: &RunId) -> Result<RunStatus, CancelError> {
        let Some(live) = self.live(thread_id, run_id) else { return self.recorded(thread_id, run_id).await };
        let mut status = live.owner.status();
        drop(live);
        match status.wait_for(|status| status.is_terminal()).await.map(|status| *status) {
            Ok(status) => Ok(status),
            Err(_) => self.recorded(thread_id, run_id).await,
        }
    }

    /// Stops everything without an end: unfinished runs go on at the next start. Answers when
    /// nothing runs any more, and no run starts after it.
    pub async fn shutdown(&self) {
        // Whoever starts something is among the runs before it looks at this.
        self.stop.stop(StopCause::ShuttingDown);
        self.runs.close();
        self.runs.wait().await;
        self.upkeep.shutdown().await;
    }

    /// The run, if this process works on it.
    fn live(&self, thread_id: &ThreadId, run_id: &RunId) -> Option<RunContext> {
        self.services.live_runs.get(thread_id, run_id)
    }

    /// What the log says of a run that this process does not work on.
    async fn recorded(&self, thread_id: &ThreadId, run_id: &RunId) -> Result<RunStatus, CancelError> {
        let (thread, run) = (thread_id.clone(), run_id.clone());
        match self.read(move |log| run_lookup::run(log, &thread, &run)).await? {
            Run::Ended(status) => Ok(status),
            Run::Open(_) => Err(CancelError::NotLive(run_id.clone())),
            Run::Absent => Err(CancelError::UnknownRun(run_id.clone())),
        }
    }

    async fn history(&self, thread_id: &ThreadId) -> Result<Option<ThreadHistory>, HistoryError> {
        let thread_id = thread_id.clone();
        self.read(move |log| ThreadHistory::read(log, &thread_id)).await
    }

    /// Reads the log where blocking does no harm to others.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&EventLog) -> Result<T, HistoryError> + Send + 'static,
    ) -> Result<T, HistoryError> {
        let log = self.services.log.clone();
        match tokio::task::spawn_blocking(move || read(&log)).await {
            Ok(read) => read,
            Err(failure) if failure.is_panic() => std::panic::resume_unwind(failure.into_panic()),
            // The process is going down.
            Err(_) => Err(HistoryError::Read(ReadError::Closed)),
        }
    }
}

#[cfg(test)]
mod tests;
