//! The gate: first in, first out, with a bounded queue.
//!
//! A slot is a guard: dropping it, on whatever way out, hands it to the next in line, so that it
//! cannot leak. A waiter holds no thread, and dropping it gives its place back.
//!
//! This file is compiled twice: over the standard library's locks, and over those of the model
//! check, which tries one interleaving after another.

use std::{collections::VecDeque, sync::PoisonError, time::Duration};

use domain::ids::DelegationId;
use tokio::{sync::oneshot, time::Instant};

use super::{
    AdmissionLimits, Capacity, QueuePlace,
    sync::{Arc, Mutex, MutexGuard},
};

/// Subagents whose time is remembered, to estimate a wait by: enough that one odd one does not
/// decide, few enough that yesterday does not.
const RECENT_MAX: usize = 32;

/// The gate. Clones are one gate.
#[derive(Debug, Clone)]
pub(crate) struct Admission(Arc<Mutex<Gate>>);

#[derive(Debug)]
struct Gate {
    limits: AdmissionLimits,
    running: u32,
    queue: VecDeque<(DelegationId, oneshot::Sender<Slot>)>,
    /// How long the last slots were held, the newest last.
    recent: VecDeque<Duration>,
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
pub(crate) struct Slot {
    admission: Admission,
    since: Instant,
}

/// A place in the queue. Dropping it leaves the queue.
#[derive(Debug)]
pub(crate) struct Waiting {
    admission: Admission,
    delegation_id: DelegationId,
    place: u32,
    granted: oneshot::Receiver<Slot>,
}

impl Admission {
    /// A gate with nobody in it.
    pub(crate) fn new(limits: AdmissionLimits) -> Self {
        let gate = Gate { limits, running: 0, queue: VecDeque::new(), recent: VecDeque::new() };
        Self(Arc::new(Mutex::new(gate)))
    }

    /// Asks for a slot. Nobody overtakes those who wait already.
    pub(crate) fn enter(&self, delegation_id: DelegationId) -> Entry {
        let mut gate = self.lock();
        if gate.has_room() {
            return Entry::Admitted(gate.admit(self));
        }
        if gate.queued() >= gate.limits.queue_capacity {
            return Entry::Full;
        }
        Entry::Waiting(gate.enqueue(self, delegation_id))
    }

    /// Asks for the slot or the place that the delegation had before a restart. The queue is never
    /// too full for it: it was let in once, and there are no more of those than there was room for.
    pub(crate) fn enter_again(&self, delegation_id: DelegationId) -> Entry {
        let mut gate = self.lock();
        if gate.has_room() {
            return Entry::Admitted(gate.admit(self));
        }
        Entry::Waiting(gate.enqueue(self, delegation_id))
    }

    /// How full the gate is.
    pub(crate) fn capacity(&self) -> Capacity {
        let gate = self.lock();
        let next = gate.queued().saturating_add(1);
        let estimated_wait = if gate.has_room() { Some(Duration::ZERO) } else { gate.estimate(next) };
        Capacity {
            limits: gate.limits,
            running: gate.running,
            queued: gate.queued(),
            queue: gate.places().collect(),
            estimated_wait,
        }
    }

    /// Where the delegation is in the queue; `None` when it is not there.
    pub(crate) fn place(&self, delegation_id: DelegationId) -> Option<QueuePlace> {
        self.lock().places().find(|place| place.delegation_id == delegation_id)
    }

    /// Passes a slot to the next in line. The lock is released before the slot is handed over,
    /// because a slot that nobody takes is dropped right here and comes back.
    fn release(&self, held: Duration) {
        let next = {
            let mut gate = self.lock();
            gate.remember(held);
            let next = gate.queue.pop_front();
            if next.is_none() {
                gate.running -= 1;
            }
            next
        };
        if let Some((_, grant)) = next {
            drop(grant.send(Slot { admission: self.clone(), since: Instant::now() }));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Gate> {
        // The gate is whole between any two statements that could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    fn queued(&self) -> u32 {
        u32::try_from(self.queue.len()).unwrap_or(u32::MAX)
    }

    fn has_room(&self) -> bool {
        self.running < self.limits.max_running && self.queue.is_empty()
    }

    fn admit(&mut self, admission: &Admission) -> Slot {
        self.running += 1;
        Slot { admission: admission.clone(), since: Instant::now() }
    }

    fn enqueue(&mut self, admission: &Admission, delegation_id: DelegationId) -> Waiting {
        let (grant, granted) = oneshot::channel();
        self.queue.push_back((delegation_id, grant));
        Waiting { admission: admission.clone(), delegation_id, place: self.queued(), granted }
    }

    fn remember(&mut self, held: Duration) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(held);
    }

    fn places(&self) -> impl Iterator<Item = QueuePlace> {
        let places = (1_u32..).zip(&self.queue);
        places.map(|(place, (delegation_id, _))| QueuePlace {
            delegation_id: *delegation_id,
            place,
            estimated_wait: self.estimate(place),
        })
    }

    /// With all slots taken, one of them is given back in each mean time over the number of slots.
    fn estimate(&self, place: u32) -> Option<Duration> {
        let held = u32::try_from(self.recent.len()).ok()?;
        let mean = self.recent.iter().sum::<Duration>().checked_div(held)?;
        mean.checked_mul(place)?.checked_div(self.limits.max_running)
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
        self.admission.lock().queue.retain(|(delegation_id, _)| *delegation_id != self.delegation_id);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.admission.release(self.since.elapsed());
    }
}
