//! The run: one invocation of a lead agent, from its start to its one terminal status.

use crate::{
    decider::Decider,
    event::{
        Cap, CapAction, CapAxis, DelegationEvent, Event, ModelEvent, ModelRetried, RunEnded, RunEvent,
        RunFailed, RunSettings, RunStatus, RunStatusChanged, RunStopReason, SubagentEvent,
    },
    limits::{END_TEXT_CHARS_MAX, STEP_TEXT_CHARS_MAX},
    message::Message,
    text,
    usage::Usage,
};

/// What may be asked of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunCommand {
    /// Record the request, with all that the run will obey.
    Start {
        /// What the run obeys.
        settings: Box<RunSettings>,
        /// What the person said.
        input: Vec<Message>,
    },
    /// Go to work.
    Begin,
    /// Try a model call again that failed, of the lead or of a subagent. Without retries left, the
    /// first that asks leaves the cap as an event, and the others are refused.
    Retry(ModelRetried),
    /// End it. The first ending wins.
    End(RunEnding),
}

/// How a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnding {
    /// The lead returned.
    Returned {
        /// Its last words, whole.
        result: String,
        /// The guard that made it return early.
        stop_reason: Option<RunStopReason>,
    },
    /// Something went wrong.
    Failed {
        /// What, and what to do.
        error: String,
        /// The guard that ended it.
        stop_reason: Option<RunStopReason>,
    },
    /// Somebody cancelled it.
    Interrupted,
}

/// Why a run refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunRejection {
    /// It was started before.
    #[error("the run has been started already")]
    AlreadyStarted,
    /// It is at work already.
    #[error("the run is at work already")]
    AlreadyBegun,
    /// It was never started.
    #[error("the run has not been started")]
    NotStarted,
    /// No model call of it may be tried again.
    #[error("the run has no retries of model calls left")]
    NoRetriesLeft,
    /// It has ended.
    #[error("the run has ended with status {}", .0.as_str())]
    AlreadyEnded(RunStatus),
}

/// A run, as far as its events tell.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Run {
    /// Not asked for.
    #[default]
    Absent,
    /// Asked for, and not ended.
    Open(Box<OpenRun>),
    /// Ended.
    Ended(RunStatus),
}

/// A run that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRun {
    /// What it obeys.
    pub settings: RunSettings,
    /// Whether it has begun.
    pub is_begun: bool,
    /// The lead's turns so far.
    pub turns: u32,
    /// Delegations requested so far; refused ones do not count.
    pub delegations: u32,
    /// Model calls that were tried again so far, of the lead and of its subagents.
    pub retries: u32,
    /// Whether it is recorded that none of them may be tried again.
    pub is_out_of_retries: bool,
    /// Tokens of the lead, its subagents and summaries of their histories so far.
    pub usage: Option<Usage>,
}

impl Decider for Run {
    type Command = RunCommand;
    type Event = Event;
    type Rejection = RunRejection;

    fn decide(&self, command: RunCommand) -> Result<Vec<Event>, RunRejection> {
        match (self, command) {
            (Self::Absent, RunCommand::Start { settings, input }) => Ok(started(*settings, input)),
            (Self::Open(_), RunCommand::Start { .. }) => Err(RunRejection::AlreadyStarted),
            (Self::Open(open), RunCommand::Begin) if open.is_begun => Err(RunRejection::AlreadyBegun),
            (Self::Open(_), RunCommand::Begin) => Ok(vec![status(RunStatus::Running, None, None)]),
            (Self::Open(open), RunCommand::Retry(retried)) => open.retry(retried),
            (Self::Open(open), RunCommand::End(ending)) => Ok(open.ended(ending)),
            (Self::Absent, RunCommand::Begin | RunCommand::Retry(_) | RunCommand::End(_)) => {
                Err(RunRejection::NotStarted)
            }
            (
                Self::Ended(status),
                RunCommand::Start { .. } | RunCommand::Begin | RunCommand::Retry(_) | RunCommand::End(_),
            ) => Err(RunRejection::AlreadyEnded(*status)),
        }
    }

    fn evolve(&mut self, event: &Event) {
        match (&mut *self, event) {
            (Self::Absent, Event::Run(RunEvent::Started(settings))) => {
                *self = Self::Open(Box::new(OpenRun::new(settings)))
            }
            (Self::Open(_), Event::Run(RunEvent::StatusChanged(changed))) if changed.status.is_terminal() => {
                *self = Self::Ended(changed.status);
            }
            (Self::Open(open), event) => open.evolve(event),
            (Self::Absent | Self::Ended(_), _) => {}
        }
    }
}

impl Run {
    /// Its status; an absent run is pending.
    pub fn status(&self) -> RunStatus {
        match self {
            Self::Absent => RunStatus::Pending,
            Self::Open(open) if open.is_begun => RunStatus::Running,
            Self::Open(_) => RunStatus::Pending,
            Self::Ended(status) => *status,
        }
    }

    /// Refuses what comes before its start or after its end.
    pub const fn check_open(&self) -> Result<(), RunRejection> {
        match self {
            Self::Absent => Err(RunRejection::NotStarted),
            Self::Open(_) => Ok(()),
            Self::Ended(status) => Err(RunRejection::AlreadyEnded(*status)),
        }
    }
}

impl OpenRun {
    fn new(settings: &RunSettings) -> Self {
        Self {
            settings: settings.clone(),
            is_begun: false,
            turns: 0,
            delegations: 0,
            retries: 0,
            is_out_of_retries: false,
            usage: None,
        }
    }

    fn evolve(&mut self, event: &Event) {
        match event {
            Event::Run(RunEvent::StatusChanged(changed)) => {
                self.is_begun = changed.status == RunStatus::Running
            }
            Event::Model(ModelEvent::AiResponse(reply)) => {
                self.turns += 1;
                self.add_usage(reply);
            }
            Event::Model(ModelEvent::Retried(_)) => self.retries = self.retries.saturating_add(1),
            Event::Run(RunEvent::Capped(cap)) if cap.axis == CapAxis::Retries => {
                self.is_out_of_retries = true;
            }
            Event::Subagent(SubagentEvent::Message(captured)) => self.add_usage(&captured.message),
            Event::Run(RunEvent::Compacted(compaction)) => {
                Usage::add_to(&mut self.usage, compaction.usage());
            }
            Event::Subagent(SubagentEvent::Compacted(compacted)) => {
                Usage::add_to(&mut self.usage, compacted.compaction.usage());
            }
            Event::Delegation(DelegationEvent::Requested(_)) => self.delegations += 1,
            Event::Thread(_)
            | Event::Run(_)
            | Event::Model(_)
            | Event::Tool(_)
            | Event::Delegation(_)
            | Event::Subagent(_)
            | Event::Registry(_)
            | Event::Foreign(_) => {}
        }
    }

    fn add_usage(&mut self, message: &Message) {
        Usage::add_to(&mut self.usage, message.as_assistant().and_then(|reply| reply.usage));
    }

    fn retry(&self, retried: ModelRetried) -> Result<Vec<Event>, RunRejection> {
        match self.settings.model_retries_max {
            Some(budget) if self.retries >= budget => {
                if self.is_out_of_retries {
                    return Err(RunRejection::NoRetriesLeft);
                }
                let (used, budget) = (self.retries.into(), budget.into());
                let cap = Cap { axis: CapAxis::Retries, action: CapAction::Stop, used, budget };
                Ok(vec![Event::Run(RunEvent::Capped(cap))])
            }
            Some(_) | None => Ok(vec![Event::Model(ModelEvent::Retried(retried))]),
        }
    }

    fn ended(&self, ending: RunEnding) -> Vec<Event> {
        match ending {
            RunEnding::Returned { result, stop_reason } => {
                let bounded = text::prefix(&result, STEP_TEXT_CHARS_MAX);
                let ended = RunEnded {
                    result: bounded.text,
                    result_truncated: bounded.is_truncated,
                    usage: self.usage,
                    turns: self.turns,
                    delegations: self.delegations,
                };
                vec![Event::Run(RunEvent::Ended(ended)), status(RunStatus::Success, stop_reason, None)]
            }
            RunEnding::Failed { error, stop_reason } => {
                let error = text::prefix(&error, END_TEXT_CHARS_MAX).text;
                let failed = RunFailed { error: error.clone() };
                vec![Event::Run(RunEvent::Failed(failed)), status(RunStatus::Error, stop_reason, Some(error))]
            }
            RunEnding::Interrupted => vec![status(RunStatus::Interrupted, None, None)],
        }
    }
}

fn started(settings: RunSettings, input: Vec<Message>) -> Vec<Event> {
    let mut events = vec![Event::Run(RunEvent::Started(settings)), status(RunStatus::Pending, None, None)];
    events.extend(input.into_iter().map(|message| Event::Model(ModelEvent::HumanInput(message))));
    events
}

fn status(status: RunStatus, stop_reason: Option<RunStopReason>, error: Option<String>) -> Event {
    Event::Run(RunEvent::StatusChanged(RunStatusChanged { status, stop_reason, error }))
}

#[cfg(test)]
mod tests;
