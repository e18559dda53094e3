//! The one owner of a run: it alone decides and appends for the run and its delegations, so that
//! the first of several endings wins and every view agrees with it.
//!
//! Lead and subagents talk to it by message. An append is never cut short by whoever asked for it.
//! What several ask for at the same time, and does not depend on each other, is one append: subagents
//! that work side by side do not wait for each other's syncs.

mod together;

use std::collections::{BTreeMap, VecDeque};

use domain::{
    decider::Decider,
    delegation::{Delegation, DelegationCommand, DelegationEnding, DelegationRejection},
    event::{CancelReason, Event, ModelRetried, RunStatus, RunStopReason, Scope},
    ids::DelegationId,
    limits::EVENTS_PER_APPEND_MAX,
    run::{Run, RunCommand, RunEnding, RunRejection},
};
use eventlog::Expected;
use tokio::sync::{mpsc, oneshot, watch};

use crate::journal::{Fact, Journal, JournalError};

/// Requests that may wait for the owner: each agent of the run has at most one under way, and a
/// run has at most 50 delegations and their lead.
const INBOX_CAPACITY: usize = 64;

/// Something to decide, and facts to record with it, together or not at all.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) decision: Decision,
    pub(crate) facts: Vec<Fact>,
}

/// Something to decide.
#[derive(Debug)]
pub(crate) enum Decision {
    /// Nothing: the facts speak for themselves.
    None,
    /// About the run.
    Run(RunCommand),
    /// Whether a model call of whoever works in this scope is tried again.
    Retry(Scope, Box<ModelRetried>),
    /// About one delegation.
    Delegation(Scope, Box<DelegationCommand>),
}

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// The run said no.
    #[error("the run refused")]
    Run(#[from] RunRejection),
    /// The delegation said no.
    #[error("the delegation refused")]
    Delegation(#[from] DelegationRejection),
    /// The log failed.
    #[error("the log failed")]
    Journal(#[from] JournalError),
    /// The owner is gone: the process is shutting down.
    #[error("the run's owner is gone")]
    OwnerGone,
}

struct Request {
    record: Record,
    reply: Reply,
}

type Reply = oneshot::Sender<Result<Vec<Event>, RecordError>>;

/// What the log says of a run: nothing for a new one.
#[derive(Debug, Default)]
pub(crate) struct RunState {
    pub(crate) run: Run,
    /// By id, and so in the order in which they were made.
    pub(crate) delegations: BTreeMap<DelegationId, (Scope, Delegation)>,
}

/// Speaks to the owner.
#[derive(Clone)]
pub(crate) struct OwnerHandle {
    inbox: mpsc::Sender<Request>,
    status: watch::Receiver<RunStatus>,
}

struct RunOwner {
    state: RunState,
    journal: Journal,
    run_scope: Scope,
    inbox: mpsc::Receiver<Request>,
    status: watch::Sender<RunStatus>,
}

/// Starts the owner of a run. It ends when nobody can speak to it any more.
pub(crate) fn spawn(state: RunState, journal: Journal, run_scope: Scope) -> OwnerHandle {
    let (sender, inbox) = mpsc::channel(INBOX_CAPACITY);
    let (status, seen) = watch::channel(state.run.status());
    let owner = RunOwner { state, journal, run_scope, inbox, status };
    tokio::spawn(owner.serve());
    OwnerHandle { inbox: sender, status: seen }
}

impl OwnerHandle {
    /// Records, and answers with all that was recorded once it is durable.
    pub(crate) async fn record(&self, record: Record) -> Result<Vec<Event>, RecordError> {
        let (reply, answer) = oneshot::channel();
        self.inbox.send(Request { record, reply }).await.map_err(|_| RecordError::OwnerGone)?;
        answer.await.map_err(|_| RecordError::OwnerGone)?
    }

    /// The run's status, to look at or to wait for.
    pub(crate) fn status(&self) -> watch::Receiver<RunStatus> {
        self.status.clone()
    }
}

impl RunOwner {
    async fn serve(mut self) {
        while let Some(first) = self.inbox.recv().await {
            let mut waiting = VecDeque::from([first]);
            while let Ok(next) = self.inbox.try_recv() {
                waiting.push_back(next);
            }
            while !waiting.is_empty() {
                let requests = together::take(&mut waiting);
                self.record(requests).await;
            }
        }
    }

    /// Decides about requests that do not depend on each other, and records what came of it.
    async fn record(&mut self, requests: Vec<Request>) {
        let mut decided = Vec::with_capacity(requests.len());
        for Request { record, reply } in requests {
            match self.decide(record.decision) {
                Ok(mut facts) => {
                    facts.extend(record.facts);
                    decided.push((reply, facts));
                }
                Err(error) => answer(reply, Err(error)),
            }
        }
        let Err(rest) = self.append_together(decided).await else { return };
        // What one of them cannot have refuses no other.
        for (reply, facts) in rest {
            let appended = self.append(&facts).await;
            answer(reply, appended.map(|()| events(facts)));
        }
    }

    /// Records all in one append. Gives them back if they do not fit, or nothing was recorded.
    async fn append_together(&mut self, decided: Vec<Decided>) -> Result<(), Vec<Decided>> {
        let lengths: Vec<usize> = decided.iter().map(|(_, facts)| facts.len()).collect();
        if decided.len() < 2 || lengths.iter().sum::<usize>() > EVENTS_PER_APPEND_MAX {
            return Err(decided);
        }
        let (replies, facts): (Vec<Reply>, Vec<Vec<Fact>>) = decided.into_iter().unzip();
        let mut facts: Vec<Fact> = facts.into_iter().flatten().collect();
        let appended = self.append(&facts).await;
        let of_each = replies.into_iter().zip(lengths).map(|(reply, length)| {
            let later = facts.split_off(length);
            (reply, std::mem::replace(&mut facts, later))
        });
        if appended.is_err() {
            return Err(of_each.collect());
        }
        of_each.for_each(|(reply, facts)| answer(reply, Ok(events(facts))));
        Ok(())
    }

    async fn append(&mut self, facts: &[Fact]) -> Result<(), RecordError> {
        if let Err(error) = self.journal.append(facts, Expected::Any).await {
            tracing::error!(thread = %self.journal.thread_id, error = &error as &dyn std::error::Error, "a run cannot record");
            return Err(error.into());
        }
        for fact in facts {
            self.state.evolve(fact);
        }
        self.status.send_if_modified(|known| {
            let now = self.state.run.status();
            std::mem::replace(known, now) != now
        });
        Ok(())
    }

    fn decide(&self, decision: Decision) -> Result<Vec<Fact>, RecordError> {
        match decision {
            Decision::None => self.state.run.check_open().map(|()| Vec::new()).map_err(RecordError::Run),
            Decision::Run(command) => {
                let closing = closing(&command);
                let decided = scoped(&self.run_scope, self.state.run.decide(command)?);
                let closed = closing.map(|ending| self.state.close_delegations(&ending));
                let mut facts = closed.transpose()?.unwrap_or_default();
                facts.extend(decided);
                Ok(facts)
            }
            Decision::Retry(scope, retried) => {
                let events = self.state.run.decide(RunCommand::Retry(*retried))?;
                // The retry is its caller's, and that none is left is the run's.
                let is_of_run = |event: &Event| matches!(event, Event::Run(_));
                let scope_of = |event: &Event| if is_of_run(event) { &self.run_scope } else { &scope };
                Ok(events.into_iter().map(|event| Fact { scope: scope_of(&event).clone(), event }).collect())
            }
            Decision::Delegation(scope, command) => {
                self.state.run.check_open()?;
                let absent = Delegation::default();
                let known = scope.delegation_id.and_then(|id| self.state.delegations.get(&id));
                let events = known.map_or(&absent, |(_, delegation)| delegation).decide(*command)?;
                Ok(scoped(&scope, events))
            }
        }
    }
}

/// What was decided for one request, and whom it answers.
type Decided = (Reply, Vec<Fact>);

/// Whoever asked may have been stopped meanwhile; what was recorded stands.
fn answer(reply: Reply, answer: Result<Vec<Event>, RecordError>) {
    drop(reply.send(answer));
}

fn events(facts: Vec<Fact>) -> Vec<Event> {
    facts.into_iter().map(|fact| fact.event).collect()
}

/// How a run's end ends the delegations that are still open; `None` for what ends nothing. One that a
/// crash interrupted, and nobody goes on with, was cancelled by nobody: it failed as its run did.
fn closing(command: &RunCommand) -> Option<DelegationEnding> {
    match command {
        RunCommand::Start { .. } | RunCommand::Begin | RunCommand::Retry(_) => None,
        RunCommand::End(RunEnding::Interrupted) => {
            Some(DelegationEnding::Cancelled(CancelReason::ParentInterrupted))
        }
        RunCommand::End(RunEnding::Failed { error, stop_reason: Some(RunStopReason::OrphanRecovered) }) => {
            Some(DelegationEnding::Failed { error: error.clone(), stop_reason: None })
        }
        RunCommand::End(RunEnding::Returned { .. } | RunEnding::Failed { .. }) => {
            Some(DelegationEnding::Cancelled(CancelReason::ParentEnded))
        }
    }
}

fn scoped(scope: &Scope, events: Vec<Event>) -> Vec<Fact> {
    events.into_iter().map(|event| Fact { scope: scope.clone(), event }).collect()
}

impl RunState {
    /// Takes one fact of the run into the state.
    pub(crate) fn evolve(&mut self, fact: &Fact) {
        self.run.evolve(&fact.event);
        if let Some(id) = fact.scope.delegation_id {
            let known =
                self.delegations.entry(id).or_insert_with(|| (fact.scope.clone(), Delegation::default()));
            known.1.evolve(&fact.event);
        }
    }

    /// The end of every delegation that has none: a run never ends before its delegations.
    fn close_delegations(&self, ending: &DelegationEnding) -> Result<Vec<Fact>, DelegationRejection> {
        let open = self.delegations.values().filter(|(_, delegation)| delegation.is_open());
        let mut facts = Vec::new();
        for (scope, delegation) in open {
            facts.extend(scoped(scope, delegation.decide(DelegationCommand::End(ending.clone()))?));
        }
        Ok(facts)
    }
}
