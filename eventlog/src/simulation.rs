//! The log under faults: histories that a seed makes up, against a log that is a list.
//!
//! A history (`history`) has several writers, readers and subscribers, and a process that fails or
//! dies at named points (`world`) and is started again on what survived. The same seed makes the same
//! history: the writer is held between groups (`gate`). The store under test is a parameter: the log on
//! real segments (`segment_world`), whose index is made anew by every start or is what the last process
//! left of it; and stores that are broken on purpose (`defect`), to show that the checks would notice.
//!
//! What is checked: nothing that was acknowledged is lost or changed; no position and no seq is left
//! out or given out twice; an unanswered append is there as a whole or not at all; keys, expectations
//! and erasures answer as they must; chains and indexes verify; who follows sees every event once.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use self::{
    defect::Defect,
    history::{History, Lived, Tally},
    seed::Seed,
    segment_world::SegmentWorld,
    world::{Point, World},
};

mod defect;
mod files;
mod gate;
mod history;
mod model;
mod requests;
mod seed;
mod segment_world;
mod world;

/// Says how many histories a test lives, in place of the numbers below.
const HISTORIES_VARIABLE: &str = "REMIT_SIMULATED_HISTORIES";
/// Four crash points or more in each.
const HISTORIES: usize = 520;
/// Here every start opens the index on its files.
const HISTORIES_WITH_INDEX: usize = 40;
/// So many times more are lived until every point was met.
const MORE: usize = 10;
/// The number of no defect.
const SOUND: usize = usize::MAX;
/// A defect shows up in one of so many.
const HISTORIES_UNTIL_CAUGHT: u64 = 300;

/// Lives one history.
fn live<W: World>(seed: u64) -> Result<Lived, String> {
    let seed = Seed::new(seed);
    History::<W>::new(&seed).run().map_err(|wrong| format!("{wrong}\n{}", seed.hint()))
}

/// Lives so many histories, on all cores, and adds up which points were met: each of them, if there
/// are as many histories as there should be; more are lived until it is so.
fn live_all<W: World>(count: usize) {
    if let Some(seed) = Seed::named() {
        live::<W>(seed).unwrap_or_else(|wrong| panic!("{wrong}"));
        return;
    }
    let asked = std::env::var(HISTORIES_VARIABLE).ok().and_then(|text| text.parse().ok());
    let histories = asked.unwrap_or(count);
    let (first, next, tally) = (Seed::any(), AtomicUsize::new(0), Mutex::new(Tally::new()));
    let is_done = |at: usize| {
        let is_met = |point: &Point| tally.lock().unwrap().contains_key(point);
        // A rare point may need more histories than there should be.
        at >= histories && (histories < count || at >= histories * MORE || Point::ALL.iter().all(is_met))
    };
    let one_after_the_other = || {
        for at in std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)) {
            if is_done(at) {
                break;
            }
            let met = live::<W>(first.wrapping_add(at as u64)).unwrap_or_else(|wrong| panic!("{wrong}"));
            let mut tally = tally.lock().unwrap();
            met.tally.into_iter().for_each(|(point, times)| *tally.entry(point).or_default() += times);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(one_after_the_other);
        }
    });
    let tally = tally.into_inner().unwrap();
    println!("{} crash points: {tally:?}", tally.values().sum::<usize>());
    for point in Point::ALL {
        assert!(histories < count || tally.contains_key(&point), "{point:?} was not met: {tally:?}");
    }
}

#[test]
fn thousands_of_crashes_lose_and_change_nothing() {
    live_all::<SegmentWorld<false, SOUND>>(HISTORIES);
}

#[test]
fn crashes_with_an_index_on_disk_lose_and_change_nothing() {
    live_all::<SegmentWorld<true, SOUND>>(HISTORIES_WITH_INDEX);
}

#[test]
fn a_history_is_the_same_each_time() {
    let lived = |seed| live::<SegmentWorld<false, SOUND>>(seed).unwrap();
    let histories: Vec<_> = (0..20).map(lived).collect();
    for (seed, one) in (0..).zip(&histories) {
        assert_eq!(lived(seed), *one, "seed {seed}");
        assert!(one.trace.len() > 20, "{one:?}");
    }
    let first = histories.first();
    assert!(histories.iter().skip(1).all(|one| Some(one) != first), "another seed makes another history");
}

/// Lives histories on a broken store until one of them is found wrong, and gives what was found.
fn caught<const DEFECT: usize>() -> String {
    let mut seeds = 0..HISTORIES_UNTIL_CAUGHT;
    let wrong = seeds.find_map(|seed| live::<SegmentWorld<false, DEFECT>>(seed).err());
    wrong.unwrap_or_else(|| panic!("nobody noticed that the store {:?}", Defect::ALL[DEFECT]))
}

#[test]
fn a_broken_store_is_found_out() {
    let all = [caught::<0>, caught::<1>, caught::<2>, caught::<3>, caught::<4>, caught::<5>];
    for (catch, defect) in all.into_iter().zip(Defect::ALL) {
        println!("{defect:?}: {}", catch());
    }
}
