//! One subagent from its place in the queue to its recorded end.
//!
//! It works in a tokio task of its own, which outlives a lead that is stopped: so every delegation
//! that was requested gets its one end, whoever goes first.

mod listed;
mod queue;
mod trail;
mod work;

use domain::{
    agent::{Agent, AgentEvent, AgentRole, Conclusion, Conversation, Effect},
    delegation::{Delegation, DelegationCommand, DelegationEnding},
    event::{CancelReason, DelegationRequested, Event, RefusalReason, Scope, SubagentEnded, SubagentEvent},
    guard::GuardLimits,
    status_contract::TaskOutcome,
};
use tokio::{sync::oneshot, time::Instant};

pub(crate) use self::{listed::Listed, trail::Trail};
use crate::{
    admission::Entry,
    cancellation::{StopCause, StopSignal},
    run_context::{ResumableDelegation, RunContext},
    run_owner::{Decision, Record, RecordError},
};

/// A delegation to work on.
pub(crate) struct Work {
    pub(crate) scope: Scope,
    pub(crate) request: DelegationRequested,
    pub(crate) listed: Listed,
    pub(crate) start: Start,
    /// What was recorded of it before a restart.
    pub(crate) history: Vec<AgentEvent>,
}

/// Where the work stands.
pub(crate) enum Start {
    /// It has a slot or a place in the queue, and has not begun.
    Enter(Entry),
    /// It had begun before a restart, and takes a slot again.
    GoOn(Entry),
    /// It had ended before a restart, and is only to be delivered.
    Over(Box<SubagentEnded>),
}

/// How it came out.
pub(crate) enum Ended {
    /// It has its recorded end.
    Over { outcome: TaskOutcome, trail: Trail },
    /// It got no slot; the refusal is still to be recorded.
    Refused { reason: RefusalReason, message: String },
    /// Nothing can be recorded any more.
    Unrecorded(RecordError),
}

/// What is left to do for a delegation from before a restart; `None` when nothing is.
pub(crate) fn resume(context: &RunContext, resumable: ResumableDelegation) -> Option<Work> {
    let ResumableDelegation { scope, state, history } = resumable;
    let enter = || context.services.admission.enter();
    let (request, start) = match state {
        Delegation::Waiting { request, .. } => (*request, Start::Enter(enter())),
        Delegation::Running(running) => (running.request, Start::GoOn(enter())),
        Delegation::Ended { request, end, is_delivered: false } => (*request, Start::Over(end)),
        Delegation::Absent | Delegation::Refused(_) | Delegation::Ended { is_delivered: true, .. } => {
            return None;
        }
    };
    let listed = Listed::enter(context, &scope);
    Some(Work { scope, request, listed, start, history })
}

/// Starts the work. The signal stops it; the receiver gets its end.
pub(crate) fn spawn(context: &RunContext, work: Work) -> (StopSignal, oneshot::Receiver<Ended>) {
    let (done, ended) = oneshot::channel();
    let Work { scope, request, listed, start, history } = work;
    let stop = listed.stop.clone();
    let subagent = Subagent { context: context.clone(), scope, request, stop: stop.clone() };
    context.delegations.spawn(async move {
        let came = subagent.work(start, history).await;
        drop(listed);
        // A lead that was stopped takes no answer; the end of the run closes what is left open.
        drop(done.send(came));
    });
    (stop, ended)
}

struct Subagent {
    context: RunContext,
    scope: Scope,
    request: DelegationRequested,
    stop: StopSignal,
}

impl Subagent {
    async fn work(&self, start: Start, history: Vec<AgentEvent>) -> Ended {
        let agent = self.agent(history);
        let worked = match start {
            Start::Over(end) => return self.over(&end, &agent),
            Start::Enter(entry) => self.enter(entry, agent).await,
            Start::GoOn(entry) => self.go_on(entry, agent).await,
        };
        worked.unwrap_or_else(Ended::Unrecorded)
    }

    fn agent(&self, history: Vec<AgentEvent>) -> Agent {
        let limits = GuardLimits::of_subagent(&self.context.settings, &self.request);
        let agent = Agent::new(AgentRole::Subagent, self.request.max_turns, Conversation::default());
        let mut agent = agent.guarded_by(limits);
        history.into_iter().for_each(|event| agent.evolve(event));
        agent
    }

    async fn enter(&self, entry: Entry, agent: Agent) -> Result<Ended, RecordError> {
        let since = Instant::now();
        let slot = match self.slot(entry).await {
            Ok(slot) => slot,
            Err(None) => return self.stopped(&agent).await,
            Err(Some((reason, message))) => return Ok(Ended::Refused { reason, message }),
        };
        let waited_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.decide(DelegationCommand::Admit { waited_ms }).await?;
        self.run(slot, agent).await
    }

    async fn go_on(&self, entry: Entry, agent: Agent) -> Result<Ended, RecordError> {
        match self.slot(entry).await {
            Ok(slot) => self.run(slot, agent).await,
            Err(None) => self.stopped(&agent).await,
            // It had a slot before the restart, so a refusal would be a lie: it failed.
            Err(Some((_, error))) => {
                self.end(DelegationEnding::Failed { error, stop_reason: None }, &agent).await
            }
        }
    }

    /// Ends work that was stopped, in the words of whoever stopped it. A shutdown ends nothing:
    /// the work goes on at the next start.
    async fn stopped(&self, agent: &Agent) -> Result<Ended, RecordError> {
        match self.stop.cause() {
            Some(StopCause::ShuttingDown) => Err(RecordError::OwnerGone),
            Some(StopCause::WaitRanOut) => {
                let error = "the lead's own wait for the result ran out".to_owned();
                self.end(DelegationEnding::TimedOut { error }, agent).await
            }
            Some(StopCause::Cancelled(reason)) => self.end(DelegationEnding::Cancelled(reason), agent).await,
            None => self.end(DelegationEnding::Cancelled(CancelReason::ParentEnded), agent).await,
        }
    }

    async fn end(&self, ending: DelegationEnding, agent: &Agent) -> Result<Ended, RecordError> {
        let recorded = self.decide(DelegationCommand::End(ending)).await?;
        let end = recorded.iter().find_map(|event| match event {
            Event::Subagent(SubagentEvent::Ended(end)) => Some(end),
            Event::Subagent(_)
            | Event::Thread(_)
            | Event::Run(_)
            | Event::Model(_)
            | Event::Tool(_)
            | Event::Delegation(_)
            | Event::Registry(_)
            | Event::Foreign(_) => None,
        });
        end.map(|end| self.over(end, agent)).ok_or(RecordError::OwnerGone)
    }

    /// What the lead is told, from the recorded end. The end holds a cut result; the whole one is
    /// what the agent concluded.
    fn over(&self, end: &SubagentEnded, agent: &Agent) -> Ended {
        let whole = match agent.next_effect() {
            Effect::Finish(Conclusion::Completed { text, .. }) => Some(text),
            Effect::Finish(Conclusion::Failed { .. })
            | Effect::Compact(_)
            | Effect::CallModel
            | Effect::RunTools(_) => None,
        };
        let detail = end.error.clone().or(whole).or_else(|| end.result.clone());
        let mut outcome = TaskOutcome::new(end.status.into(), detail);
        outcome.stop_reason = end.stop_reason;
        outcome.model_name.clone_from(&end.model_name);
        outcome.usage = end.usage;
        Ended::Over { outcome, trail: Trail::of(&self.scope, end) }
    }

    async fn decide(&self, command: DelegationCommand) -> Result<Vec<Event>, RecordError> {
        let decision = Decision::Delegation(self.scope.clone(), Box::new(command));
        self.context.owner.record(Record { decision, facts: Vec::new() }).await
    }
}
