//! Admission: how many subagents run at once in this process, and who is next.
//!
//! First in, first out, with a bounded queue. A slot is a guard: dropping it, on whatever way out,
//! hands it to the next in line, so that it cannot leak. A waiter holds no thread, and dropping it
//! gives its place back.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::oneshot;

/// The gate. Clones are one gate.
#[derive(Debug, Clone)]
pub(crate) struct Admission(Arc<Mutex<Gate>>);

/// What the gate allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// Subagents that run at once.
    pub max_running: u32,
    /// Delegations that wait at once.
    pub queue_capacity: u32,
}

/// How full the gate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// What it allows.
    pub limits: AdmissionLimits,
    /// Subagents that run now.
    pub running: u32,
    /// Delegations that wait now.
    pub queued: u32,
}

#[derive(Debug)]
struct Gate {
    limits: AdmissionLimits,
    running: u32,
    queue: VecDeque<(u64, oneshot::Sender<Slot>)>,
    next_ticket: u64,
}

/// The answer to somebody who wants in.
#[derive(Debug)]
pub(crate) enum Entry {
    /// There is a slot.
    Admitted(Slot),
    /// All slots are taken.
    Waiting(Waiting),
    /// The queue is full, too.
    Full,
}

/// The right to run one subagent. Dropping it passes it on.
#[derive(Debug)]
pub(crate) struct Slot(Admission);

/// A place in the queue. Dropping it leaves the queue.
#[derive(Debug)]
pub(crate) struct Waiting {
    admission: Admission,
    ticket: u64,
    place: u32,
    granted: oneshot::Receiver<Slot>,
}

impl Admission {
    /// A gate with nobody in it.
    pub(crate) fn new(limits: AdmissionLimits) -> Self {
        Self(Arc::new(Mutex::new(Gate { limits, running: 0, queue: VecDeque::new(), next_ticket: 0 })))
    }

    /// Asks for a slot. Nobody overtakes those who wait already.
    pub(crate) fn enter(&self) -> Entry {
        let mut gate = self.lock();
        if gate.running < gate.limits.max_running && gate.queue.is_empty() {
            gate.running += 1;
            return Entry::Admitted(Slot(self.clone()));
        }
        if gate.queued() >= gate.limits.queue_capacity {
            return Entry::Full;
        }
        let (grant, granted) = oneshot::channel();
        let ticket = gate.next_ticket;
        gate.next_ticket += 1;
        gate.queue.push_back((ticket, grant));
        Entry::Waiting(Waiting { admission: self.clone(), ticket, place: gate.queued(), granted })
    }

    /// How full the gate is.
    pub(crate) fn capacity(&self) -> Capacity {
        let gate = self.lock();
        Capacity { limits: gate.limits, running: gate.running, queued: gate.queued() }
    }

    /// Passes a slot to the next in line. The lock is released before the slot is handed over,
    /// because a slot that nobody takes is dropped right here and comes back.
    fn release(&self) {
        let next = {
            let mut gate = self.lock();
            let next = gate.queue.pop_front();
            if next.is_none() {
                gate.running -= 1;
            }
            next
        };
        if let Some((_, grant)) = next {
            drop(grant.send(Slot(self.clone())));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Gate> {
        // The gate is whole between any two statements that could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    fn queued(&self) -> u32 {
        u32::try_from(self.queue.len()).unwrap_or(u32::MAX)
    }
}

impl Waiting {
    /// The place in the queue when it was taken, from 1.
    pub(crate) const fn place(&self) -> u32 {
        self.place
    }

    /// Waits for the slot.
    pub(crate) async fn admitted(mut self) -> Slot {
        match (&mut self.granted).await {
            Ok(slot) => slot,
            // The gate keeps every sender until it grants or the waiter leaves.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.admission.lock().queue.retain(|(ticket, _)| *ticket != self.ticket);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests;
