//! The delegation: one `task` call, from its request to its delivered result.
//!
//! | state     | may become                    | by                  |
//! |-----------|-------------------------------|---------------------|
//! | absent    | requested, refused            | the lead's call     |
//! | requested | queued, running, refused, ended | admission, cancel |
//! | queued    | running, refused, ended       | admission, cancel   |
//! | running   | ended                         | the subagent, a limit, a cancel: the first one wins |
//! | ended     | delivered                     | the lead's turn     |

mod command;
mod running;

pub use self::{
    command::{DelegationCommand, DelegationEnding, ReceiptDraft},
    running::RunningDelegation,
};
use crate::{
    decider::Decider,
    event::{
        DelegationAdmitted, DelegationEvent, DelegationQueued, DelegationRequested, EndStatus, Event,
        RefusalReason, SubagentEnded, SubagentEvent, SubagentStarted, ToolEvent,
    },
};

/// Why a delegation refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DelegationRejection {
    /// It was requested or refused before.
    #[error("the delegation has been requested already")]
    AlreadyRequested,
    /// It was never requested.
    #[error("the delegation has not been requested")]
    NotRequested,
    /// It is in the queue already.
    #[error("the delegation is in the queue already")]
    AlreadyQueued,
    /// It has a slot already.
    #[error("the delegation is running already")]
    AlreadyRunning,
    /// It has no slot yet.
    #[error("the delegation is not running yet")]
    NotRunning,
    /// It was refused.
    #[error("the delegation was refused: {}", .0.as_str())]
    AlreadyRefused(RefusalReason),
    /// It has ended.
    #[error("the delegation has ended")]
    AlreadyEnded(EndStatus),
    /// It has not ended.
    #[error("the delegation has not ended yet")]
    NotEnded,
    /// The lead has its answer already.
    #[error("the result has been delivered already")]
    AlreadyDelivered,
}

/// A delegation, as far as its events tell.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Delegation {
    /// Not asked for.
    #[default]
    Absent,
    /// Refused.
    Refused(RefusalReason),
    /// Accepted; has no slot yet.
    Waiting {
        /// What was asked.
        request: Box<DelegationRequested>,
        /// Whether it is in the queue.
        is_queued: bool,
    },
    /// At work.
    Running(Box<RunningDelegation>),
    /// Over.
    Ended {
        /// What was asked.
        request: Box<DelegationRequested>,
        /// How.
        end: Box<SubagentEnded>,
        /// Whether the lead has its answer.
        is_delivered: bool,
    },
}

impl Decider for Delegation {
    type Command = DelegationCommand;
    type Event = Event;
    type Rejection = DelegationRejection;

    fn decide(&self, command: DelegationCommand) -> Result<Vec<Event>, DelegationRejection> {
        use DelegationCommand as C;
        match self {
            Self::Absent => decide_absent(command),
            Self::Refused(reason) => Err(DelegationRejection::AlreadyRefused(*reason)),
            Self::Waiting { request, is_queued } => decide_waiting(request, *is_queued, command),
            Self::Running(running) => running.decide(command),
            Self::Ended { end, is_delivered, .. } => match command {
                C::Deliver(_) if *is_delivered => Err(DelegationRejection::AlreadyDelivered),
                C::Deliver(delivered) => Ok(vec![Event::Delegation(DelegationEvent::Delivered(delivered))]),
                C::Request(_) => Err(DelegationRejection::AlreadyRequested),
                C::Refuse(_)
                | C::Queue { .. }
                | C::Admit { .. }
                | C::Record { .. }
                | C::Cap(_)
                | C::Compact(_)
                | C::End(_) => Err(DelegationRejection::AlreadyEnded(end.status)),
            },
        }
    }

    fn evolve(&mut self, event: &Event) {
        match event {
            Event::Delegation(event) => self.evolve_delegation(event),
            Event::Subagent(event) => self.evolve_subagent(event),
            Event::Tool(ToolEvent::Started(started)) => {
                if let Self::Running(running) = self {
                    running.evolve_started(started);
                }
            }
            Event::Thread(_) | Event::Run(_) | Event::Model(_) | Event::Registry(_) | Event::Foreign(_) => {}
        }
    }
}

impl Delegation {
    fn evolve_delegation(&mut self, event: &DelegationEvent) {
        match (&mut *self, event) {
            (Self::Absent, DelegationEvent::Requested(request)) => {
                *self = Self::Waiting { request: Box::new(request.clone()), is_queued: false };
            }
            (Self::Absent | Self::Waiting { .. }, DelegationEvent::Refused(refused)) => {
                *self = Self::Refused(refused.reason);
            }
            (Self::Waiting { is_queued, .. }, DelegationEvent::Queued(_)) => *is_queued = true,
            (Self::Waiting { request, .. }, DelegationEvent::Admitted(_)) => {
                *self = Self::Running(Box::new(RunningDelegation::new(request)));
            }
            (Self::Ended { is_delivered, .. }, DelegationEvent::Delivered(_)) => *is_delivered = true,
            (
                Self::Absent
                | Self::Refused(_)
                | Self::Waiting { .. }
                | Self::Running(_)
                | Self::Ended { .. },
                DelegationEvent::Requested(_)
                | DelegationEvent::Refused(_)
                | DelegationEvent::Queued(_)
                | DelegationEvent::Admitted(_)
                | DelegationEvent::Delivered(_),
            ) => {}
        }
    }

    fn evolve_subagent(&mut self, event: &SubagentEvent) {
        match (&mut *self, event) {
            (Self::Waiting { request, .. }, SubagentEvent::Ended(end)) => {
                *self = Self::ended(request.clone(), end);
            }
            (Self::Running(running), SubagentEvent::Ended(end)) => {
                *self = Self::ended(Box::new(running.request.clone()), end);
            }
            (Self::Running(running), event) => running.evolve(event),
            (Self::Absent | Self::Refused(_) | Self::Waiting { .. } | Self::Ended { .. }, _) => {}
        }
    }

    fn ended(request: Box<DelegationRequested>, end: &SubagentEnded) -> Self {
        Self::Ended { request, end: Box::new(end.clone()), is_delivered: false }
    }

    /// Whether it was requested and still has to end.
    pub const fn is_open(&self) -> bool {
        match self {
            Self::Waiting { .. } | Self::Running(_) => true,
            Self::Absent | Self::Refused(_) | Self::Ended { .. } => false,
        }
    }
}

fn decide_absent(command: DelegationCommand) -> Result<Vec<Event>, DelegationRejection> {
    use DelegationCommand as C;
    match command {
        C::Request(request) => Ok(vec![Event::Delegation(DelegationEvent::Requested(*request))]),
        C::Refuse(refused) => Ok(vec![Event::Delegation(DelegationEvent::Refused(refused))]),
        C::Queue { .. }
        | C::Admit { .. }
        | C::Record { .. }
        | C::Cap(_)
        | C::Compact(_)
        | C::End(_)
        | C::Deliver(_) => Err(DelegationRejection::NotRequested),
    }
}

fn decide_waiting(
    request: &DelegationRequested,
    is_queued: bool,
    command: DelegationCommand,
) -> Result<Vec<Event>, DelegationRejection> {
    use DelegationCommand as C;
    match command {
        C::Queue { .. } if is_queued => Err(DelegationRejection::AlreadyQueued),
        C::Queue { place } => {
            let task_id = request.task_id.clone();
            Ok(vec![Event::Delegation(DelegationEvent::Queued(DelegationQueued { task_id, place }))])
        }
        C::Admit { waited_ms } => Ok(admitted(request, waited_ms)),
        C::Refuse(refused) => Ok(vec![Event::Delegation(DelegationEvent::Refused(refused))]),
        C::End(ending) => Ok(RunningDelegation::new(request).ended(ending)),
        C::Request(_) => Err(DelegationRejection::AlreadyRequested),
        C::Record { .. } | C::Cap(_) | C::Compact(_) => Err(DelegationRejection::NotRunning),
        C::Deliver(_) => Err(DelegationRejection::NotEnded),
    }
}

fn admitted(request: &DelegationRequested, waited_ms: u64) -> Vec<Event> {
    let task_id = request.task_id.clone();
    let started = SubagentStarted {
        task_id: task_id.clone(),
        description: request.description.clone(),
        subagent_type: request.subagent_type.to_string(),
        model_name: request.model_name.clone(),
    };
    vec![
        Event::Delegation(DelegationEvent::Admitted(DelegationAdmitted { task_id, waited_ms })),
        Event::Subagent(SubagentEvent::Started(started)),
    ]
}

#[cfg(test)]
mod tests;
