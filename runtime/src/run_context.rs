//! What everything in one run shares.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use domain::{
    agent::AgentEvent,
    definition::{Registry, SubagentsSettings},
    delegation::Delegation,
    event::{RunSettings, Scope},
    ids::{DelegationId, ThreadId, ToolCallId},
};
use eventlog::BlobScope;
use tokio_util::task::TaskTracker;

use crate::{
    admission::Entry, cancellation::StopSignal, recorder::call_id, run_owner::OwnerHandle,
    sandbox::ThreadFolders, services::Services, tool_work::WorkList, tools::OutputKeeper,
};

/// What everything in one run shares. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RunContext {
    pub(crate) services: Arc<Services>,
    pub(crate) thread_id: ThreadId,
    pub(crate) settings: Arc<RunSettings>,
    /// The subagent types as they were when the run started.
    pub(crate) registry: Arc<Registry>,
    pub(crate) folders: ThreadFolders,
    /// Where the run's tools are listed while they are at work.
    pub(crate) tool_work: WorkList,
    pub(crate) owner: OwnerHandle,
    pub(crate) stop: StopSignal,
    /// The run's delegations, so that the run ends after the last of them.
    pub(crate) delegations: TaskTracker,
    /// The stop signal of each live delegation, oldest first.
    pub(crate) live: Arc<Mutex<BTreeMap<DelegationId, (ToolCallId, StopSignal)>>>,
    /// Delegations that were under way when the process before this one ended, oldest first.
    pub(crate) resumable: Arc<Mutex<Vec<ResumableDelegation>>>,
}

/// A delegation that the log holds without a delivered result.
#[derive(Debug)]
pub(crate) struct ResumableDelegation {
    pub(crate) scope: Scope,
    pub(crate) state: Delegation,
    pub(crate) history: Vec<AgentEvent>,
    /// How much of its limit it has used up: of the wait, or of its own time once it is at work.
    pub(crate) spent: Duration,
    /// The position of its last fact about the gate, which orders those who come back.
    pub(crate) position: u64,
    /// Its slot or place, once it has taken it again.
    pub(crate) entry: Option<Entry>,
}

impl ResumableDelegation {
    /// Whether the lead still waits for its result.
    pub(crate) fn is_undelivered(&self) -> bool {
        match &self.state {
            Delegation::Waiting { .. } | Delegation::Running(_) => true,
            Delegation::Ended { is_delivered, .. } => !is_delivered,
            Delegation::Absent | Delegation::Refused(_) => false,
        }
    }
}

/// The subagent types that a run was started with; the process's own for a run that did not note
/// them.
pub(crate) fn frozen_registry(services: &Services, settings: &RunSettings) -> Arc<Registry> {
    let frozen = |subagents: &SubagentsSettings| {
        let registry = Registry::new(subagents.clone(), settings.summarization_enabled);
        Arc::new(registry.with_managed(settings.managed_subagents.as_deref()))
    };
    settings.subagents.as_deref().map_or_else(|| Arc::new(services.registry.clone()), frozen)
}

impl RunContext {
    /// The scope of the run itself.
    pub(crate) fn run_scope(&self) -> Scope {
        Scope { run_id: Some(self.settings.run_id.clone()), ..Scope::default() }
    }

    /// Keeps large outputs, for events of this run.
    pub(crate) fn output_keeper(&self) -> OutputKeeper {
        let scope =
            BlobScope { thread_id: self.thread_id.clone(), run_id: Some(self.settings.run_id.clone()) };
        OutputKeeper::new(self.services.log.clone(), scope)
    }

    /// The scope of a new delegation for a `task` call.
    pub(crate) fn new_delegation(&self, tool_call_id: &str) -> Scope {
        Scope {
            task_id: Some(call_id(tool_call_id).unwrap_or_else(|| self.unnamed_call())),
            delegation_id: Some(self.services.ids.delegation_id()),
            ..self.run_scope()
        }
    }

    /// Stands for the id that a provider left out.
    #[expect(clippy::expect_used, reason = "a UUID has 36 characters")]
    pub(crate) fn unnamed_call(&self) -> ToolCallId {
        ToolCallId::new(self.services.ids.uuid().to_string()).expect("a UUID is a tool call id")
    }

    /// The undelivered delegation of a `task` call from before a restart, taken once.
    pub(crate) fn take_resumable(&self, tool_call_id: &str) -> Option<ResumableDelegation> {
        let wanted = call_id(tool_call_id);
        let mut resumable = self.resumable.lock().unwrap_or_else(PoisonError::into_inner);
        let at = resumable.iter().position(|one| one.scope.task_id == wanted)?;
        Some(resumable.remove(at))
    }
}
