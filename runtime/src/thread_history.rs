//! What a thread's stream says to the runtime: the conversation so far, and runs without an end.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use domain::{
    agent::{AgentEvent, Conversation},
    event::{Event, Logged, ModelEvent, RunEvent, RunSettings, RunStatus, Scope, ThreadEvent},
    ids::{DelegationId, RunId, ThreadId, UserId},
    run::Run,
};
use eventlog::{EventLog, FOREIGN_SCHEMA_VERSION, Seq, StreamId};

use crate::{journal::Fact, request::HistoryError, run_context::ResumableDelegation, run_owner::RunState};

/// Events that are read at once: enough to read fast, little enough to hold in memory even when
/// each carries a long message.
const PAGE: usize = 256;

/// A thread, as far as its stream tells.
#[derive(Debug, Default)]
pub(crate) struct ThreadHistory {
    /// The workspace that a person chose.
    pub(crate) workspace: Option<PathBuf>,
    /// Whose thread it is.
    pub(crate) owner: Option<UserId>,
    /// The conversation of the runs that have ended.
    pub(crate) conversation: Conversation,
    /// How the runs that have ended did.
    pub(crate) ended: BTreeMap<RunId, RunStatus>,
    /// Runs of ours that have not ended.
    pub(crate) open: BTreeMap<RunId, RunHistory>,
    /// Runs that somebody else recorded here. They are shown, and never worked on.
    foreign: BTreeSet<RunId>,
}

/// A run without an end.
#[derive(Debug, Default)]
pub(crate) struct RunHistory {
    pub(crate) state: RunState,
    pub(crate) settings: Option<RunSettings>,
    pub(crate) lead: Vec<AgentEvent>,
    subagents: BTreeMap<DelegationId, Vec<AgentEvent>>,
}

impl ThreadHistory {
    /// Reads the whole stream; `None` when there is no such thread, or nothing of it can be read.
    pub(crate) fn read(log: &EventLog, thread_id: &ThreadId) -> Result<Option<Self>, HistoryError> {
        if log.is_erased(thread_id) {
            return Ok(None);
        }
        let stream = StreamId::Thread(thread_id.clone());
        let (mut history, mut after) = (Self::default(), Seq::ZERO);
        loop {
            let page = log.read_stream(&stream, after, PAGE)?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            // The lead no longer sees a run that was erased.
            for recorded in page.iter().filter(|recorded| !recorded.is_erased()) {
                history.owner.get_or_insert_with(|| recorded.owner.clone());
                if recorded.schema_version == FOREIGN_SCHEMA_VERSION {
                    history.foreign.extend(recorded.scope.run_id.clone());
                } else {
                    history.take(eventlog::decode(recorded)?);
                }
            }
        }
        Ok(history.owner.is_some().then_some(history))
    }

    /// Whether the thread has a run of this id.
    pub(crate) fn names(&self, run_id: &RunId) -> bool {
        self.ended.contains_key(run_id) || self.open.contains_key(run_id) || self.foreign.contains(run_id)
    }

    fn take(&mut self, logged: Logged) {
        if let Event::Thread(ThreadEvent::Created(created)) = &logged.event {
            self.workspace = created.workspace.as_ref().map(PathBuf::from);
        }
        let Some(run_id) = logged.scope.run_id.clone() else { return };
        if self.ended.contains_key(&run_id) {
            return;
        }
        let run = self.open.entry(run_id.clone()).or_default();
        run.take(logged);
        match &run.state.run {
            Run::Ended(status) => {
                self.ended.insert(run_id.clone(), *status);
                self.close(&run_id);
            }
            Run::Absent | Run::Open(_) => {}
        }
    }

    /// Keeps only what is left of what was said in a run that has ended.
    fn close(&mut self, run_id: &RunId) {
        let Some(run) = self.open.remove(run_id) else { return };
        run.lead.into_iter().for_each(|event| self.conversation.take(event));
    }
}

impl RunHistory {
    fn take(&mut self, logged: Logged) {
        let Logged { scope, event, .. } = logged;
        if let Event::Run(RunEvent::Started(settings)) = &event {
            self.settings = Some(settings.clone());
        }
        self.remember(&scope, &event);
        self.state.evolve(&Fact { scope, event });
    }

    /// A tool that a subagent started is not the lead's; a delegation that was requested is.
    fn remember(&mut self, scope: &Scope, event: &Event) {
        let is_own = scope.delegation_id.is_none()
            || matches!(event, Event::Delegation(_) | Event::Model(ModelEvent::ToolResult(_)));
        if is_own {
            self.lead.extend(AgentEvent::of_lead(event));
        }
        if let Some(id) = scope.delegation_id {
            self.subagents.entry(id).or_default().extend(AgentEvent::of_subagent(event));
        }
    }

    /// The delegations whose result the lead does not have, oldest first.
    pub(crate) fn resumable(&mut self) -> Vec<ResumableDelegation> {
        let mut subagents = std::mem::take(&mut self.subagents);
        let delegations = self.state.delegations.iter();
        delegations
            .map(|(id, (scope, state))| ResumableDelegation {
                scope: scope.clone(),
                state: state.clone(),
                history: subagents.remove(id).unwrap_or_default(),
            })
            .filter(|one| one.is_undelivered())
            .collect()
    }
}
