use std::{collections::VecDeque, time::Duration};

use domain::ids::DelegationId;
use futures::FutureExt;
use tokio::time::{advance, pause};
use uuid::Uuid;

use super::{gate::Waiting, *};

fn gate(max_running: u32, queue_capacity: u32) -> Admission {
    Admission::new(AdmissionLimits { max_running, queue_capacity })
}

fn new_id() -> DelegationId {
    DelegationId::from_uuid(Uuid::now_v7())
}

fn slot(gate: &Admission) -> Slot {
    let Entry::Admitted(slot) = gate.enter(new_id()) else { panic!("no slot") };
    slot
}

fn waiting(gate: &Admission) -> Waiting {
    let Entry::Waiting(waiting) = gate.enter(new_id()) else { panic!("not waiting") };
    waiting
}

#[track_caller]
fn check(gate: &Admission, running: u32, queued: u32) {
    let capacity = gate.capacity();
    assert_eq!((capacity.running, capacity.queued), (running, queued));
}

#[test]
fn slots_are_given_in_the_order_of_asking() {
    let gate = gate(1, 2);
    let first = slot(&gate);
    let (second, third) = (waiting(&gate), waiting(&gate));
    assert_eq!((second.place(), third.place()), (1, 2));
    assert!(matches!(gate.enter(new_id()), Entry::Full));
    check(&gate, 1, 2);
    let (mut second, mut third) = (Box::pin(second.admitted()), Box::pin(third.admitted()));
    assert!(second.as_mut().now_or_never().is_none());
    drop(first);
    assert!(third.as_mut().now_or_never().is_none());
    let second = second.now_or_never().expect("the slot came");
    check(&gate, 1, 1);
    drop(second);
    drop(third.now_or_never().expect("the slot came"));
    check(&gate, 0, 0);
}

#[test]
fn a_waiter_that_leaves_gives_its_place_back() {
    let gate = gate(1, 1);
    let first = slot(&gate);
    drop(waiting(&gate));
    check(&gate, 1, 0);
    drop(waiting(&gate).admitted());
    check(&gate, 1, 0);
    drop(first);
    check(&gate, 0, 0);
}

#[test]
fn a_slot_that_was_granted_and_never_taken_comes_back() {
    let gate = gate(1, 2);
    let first = slot(&gate);
    let (leaves, stays) = (waiting(&gate), waiting(&gate));
    drop(first);
    check(&gate, 1, 1);
    drop(leaves);
    check(&gate, 1, 0);
    drop(stays.admitted().now_or_never().expect("the slot came"));
    check(&gate, 0, 0);
}

// Field report 5: a slot is free again on every way out.
#[tokio::test]
async fn a_panic_and_a_cancel_free_the_slot() {
    let gate = gate(3, 0);
    for _ in 0..10 {
        let slot = slot(&gate);
        let task = tokio::spawn(async move {
            let _slot = slot;
            panic!("the step after the reservation failed");
        });
        assert!(task.await.is_err());
    }
    let held = slot(&gate);
    let task = tokio::spawn(async move {
        let _slot = held;
        std::future::pending::<()>().await;
    });
    task.abort();
    assert!(task.await.is_err());
    check(&gate, 0, 0);
}

// A place that is known, and a wait that is guessed from what ended last.
#[tokio::test]
async fn places_and_waits_are_told() {
    pause();
    let gate = gate(2, 8);
    let slots = [slot(&gate), slot(&gate)];
    let ids = [new_id(), new_id(), new_id()];
    let told = |id| gate.place(id).map(|place| (place.place, place.estimated_wait));
    let mut waiters: Vec<Waiting> = Vec::new();
    for id in ids {
        let Entry::Waiting(waiting) = gate.enter(id) else { panic!("not waiting") };
        waiters.push(waiting);
    }
    assert_eq!(ids.map(told), [Some((1, None)), Some((2, None)), Some((3, None))], "nothing has ended yet");
    assert_eq!((gate.capacity().estimated_wait, told(new_id())), (None, None));
    advance(Duration::from_secs(10)).await;
    drop(slots);
    // Two slots were held for ten seconds each, and the first two have them now.
    assert_eq!(ids.map(told), [None, None, Some((1, Some(Duration::from_secs(5))))]);
    assert_eq!(gate.capacity().estimated_wait, Some(Duration::from_secs(10)));
    assert_eq!(gate.capacity().queue.len(), 1);
    drop(waiters);
    assert_eq!(gate.capacity().estimated_wait, Some(Duration::ZERO));
}

// Who was let in before a restart is let in again, however small the queue has become.
#[test]
fn who_was_there_before_is_never_one_too_many() {
    let gate = gate(1, 0);
    let first = slot(&gate);
    assert!(matches!(gate.enter(new_id()), Entry::Full));
    let Entry::Waiting(again) = gate.enter_again(new_id()) else { panic!("not waiting") };
    check(&gate, 1, 1);
    drop(first);
    drop(again.admitted().now_or_never().expect("the slot came"));
    assert!(matches!(gate.enter_again(new_id()), Entry::Admitted(_)));
    check(&gate, 0, 0);
}

proptest::proptest! {
    // The obvious model: a count and a list.
    #[test]
    fn the_gate_agrees_with_a_plain_model(steps in proptest::collection::vec(0_u8..3, 1..80)) {
        let gate = gate(2, 3);
        let (mut slots, mut waiters) = (Vec::new(), VecDeque::new());
        for step in steps {
            match step {
                0 => match gate.enter(new_id()) {
                    Entry::Admitted(slot) => slots.push(slot),
                    Entry::Waiting(waiting) => waiters.push_back(Box::pin(waiting.admitted())),
                    Entry::Full => proptest::prop_assert!(slots.len() == 2 && waiters.len() == 3),
                },
                1 => drop(slots.pop()),
                _ => drop(waiters.pop_back()),
            }
            while let Some(slot) = waiters.front_mut().and_then(|waiter| waiter.as_mut().now_or_never()) {
                slots.push(slot);
                drop(waiters.pop_front());
            }
            proptest::prop_assert!(waiters.is_empty() || slots.len() == 2);
            let capacity = gate.capacity();
            proptest::prop_assert_eq!((capacity.running as usize, capacity.queued as usize), (slots.len(), waiters.len()));
        }
    }
}
