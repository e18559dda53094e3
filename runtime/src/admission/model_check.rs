//! The gate under a scheduler that tries one interleaving after another: slots leak on none, nobody
//! overtakes, and nobody is forgotten.

/// The gate itself, on the scheduler's locks.
#[path = "gate.rs"]
#[expect(clippy::duplicate_mod, reason = "what is checked is the very code, on other locks")]
mod gate;

/// Every lock is a place where the scheduler may go on with somebody else.
mod sync {
    pub(super) use shuttle::sync::{Arc, Mutex, MutexGuard};
}

use domain::ids::DelegationId;
use shuttle::{
    future,
    scheduler::{PctScheduler, RandomScheduler},
    sync::{Arc, Mutex},
    thread,
};
use uuid::Uuid;

use self::gate::{Admission, Entry, Slot};
use super::{AdmissionLimits, Capacity, QueuePlace};

/// Interleavings that are tried for each history and kind of scheduler: some seconds in a debug build.
const SCHEDULES: usize = 3_000;
/// Points at which the one scheduler forces a change; most defects need two or three.
const DEPTH: usize = 3;

const SLOTS: u32 = 2;

#[track_caller]
fn check(history: fn()) {
    shuttle::Runner::new(RandomScheduler::new(SCHEDULES), Default::default()).run(history);
    shuttle::Runner::new(PctScheduler::new(DEPTH, SCHEDULES), Default::default()).run(history);
}

fn gate(queue_capacity: u32) -> Admission {
    Admission::new(AdmissionLimits { max_running: SLOTS, queue_capacity })
}

fn named(number: u128) -> DelegationId {
    DelegationId::from_uuid(Uuid::from_u128(number))
}

#[track_caller]
fn assert_empty(gate: &Admission) {
    let capacity = gate.capacity();
    assert_eq!((capacity.running, capacity.queue), (0, Vec::new()), "slots or places have leaked");
}

/// Counts who works, and never finds more than there are slots.
fn work(at_work: &Mutex<u32>, slot: Slot) {
    let now = {
        let mut at_work = at_work.lock().unwrap();
        *at_work += 1;
        *at_work
    };
    assert!(now <= SLOTS, "{now} at work");
    thread::yield_now();
    *at_work.lock().unwrap() -= 1;
    drop(slot);
}

#[test]
fn nothing_leaks_while_some_work_and_some_leave() {
    check(|| {
        let (gate, at_work) = (gate(2), Arc::new(Mutex::new(0)));
        let people = (0..5).map(|number| {
            let (gate, at_work) = (gate.clone(), Arc::clone(&at_work));
            thread::spawn(move || match gate.enter(named(number)) {
                Entry::Admitted(slot) => work(&at_work, slot),
                // The odd ones leave, as after a cancel or a timeout: maybe with a slot in their hands.
                Entry::Waiting(waiting) if number % 2 == 1 => drop(waiting),
                Entry::Waiting(waiting) => work(&at_work, future::block_on(waiting.admitted())),
                Entry::Full => {}
            })
        });
        people.collect::<Vec<_>>().into_iter().for_each(|person| person.join().unwrap());
        assert_empty(&gate);
    });
}

#[test]
fn a_waiter_that_is_dropped_while_it_is_granted_passes_the_slot_on() {
    check(|| {
        let gate = gate(2);
        let slots = [gate.enter(named(1)), gate.enter(named(2))];
        let (Entry::Waiting(leaves), Entry::Waiting(stays)) = (gate.enter(named(3)), gate.enter(named(4)))
        else {
            panic!("both wait");
        };
        let gives = thread::spawn(move || drop(slots));
        let gives_up = thread::spawn(move || drop(leaves));
        drop(future::block_on(stays.admitted()));
        gives.join().unwrap();
        gives_up.join().unwrap();
        assert_empty(&gate);
    });
}

#[test]
fn those_who_wait_are_admitted_in_order() {
    check(|| {
        let gate = gate(3);
        let slots = [gate.enter(named(1)), gate.enter(named(2))];
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiters = (0..3_u32).map(|number| {
            let id = named(u128::from(number) + 3);
            let Entry::Waiting(waiting) = gate.enter_again(id) else { panic!("all wait") };
            assert_eq!(gate.place(id).map(|place| place.place), Some(waiting.place()));
            let (gate, order) = (gate.clone(), Arc::clone(&order));
            thread::spawn(move || {
                let slot = future::block_on(waiting.admitted());
                // Whoever came before has left the queue by now, and whoever came later may still be there.
                let still_waiting = gate.capacity().queue.len();
                order.lock().unwrap().push((number, still_waiting));
                drop(slot);
            })
        });
        let waiters: Vec<_> = waiters.collect();
        let late = {
            let gate = gate.clone();
            thread::spawn(move || match gate.enter(named(9)) {
                Entry::Admitted(slot) => {
                    assert!(gate.capacity().queue.is_empty(), "somebody was overtaken");
                    drop(slot);
                }
                Entry::Waiting(waiting) => drop(future::block_on(waiting.admitted())),
                Entry::Full => {}
            })
        };
        drop(slots);
        waiters.into_iter().chain([late]).for_each(|person| person.join().unwrap());
        for (number, still_waiting) in order.lock().unwrap().iter() {
            assert!(*still_waiting <= 3 - *number as usize, "{number} was admitted before its turn");
        }
        assert_empty(&gate);
    });
}
