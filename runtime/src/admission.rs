//! Admission: how many subagents run at once in this process, and who is next.

mod gate;
#[cfg(test)]
mod model_check;

use std::time::Duration;

use domain::ids::DelegationId;

pub(crate) use self::gate::{Admission, Entry, Slot};

/// What the gate is built on. The model check builds it on another one.
mod sync {
    pub(super) use std::sync::{Arc, Mutex, MutexGuard};
}

/// What the gate allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// Subagents that run at once.
    pub max_running: u32,
    /// Delegations that wait at once.
    pub queue_capacity: u32,
}

/// How full the gate is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    /// What it allows.
    pub limits: AdmissionLimits,
    /// Subagents that run now.
    pub running: u32,
    /// Delegations that wait now.
    pub queued: u32,
    /// Who waits, the next one first.
    pub queue: Vec<QueuePlace>,
    /// How long whoever asks now would wait, judged by what ended last; `None` while nothing has.
    pub estimated_wait: Option<Duration>,
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePlace {
    /// Who waits.
    pub delegation_id: DelegationId,
    /// The place now, from 1.
    pub place: u32,
    /// How long the wait will be, judged by what ended last; `None` while nothing has.
    pub estimated_wait: Option<Duration>,
}

#[cfg(test)]
mod tests;
