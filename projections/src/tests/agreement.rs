//! All views agree with each other and with a plain model, over random histories with crashes, caps,
//! refusals, cancels, time-outs, retries, compactions, what comes late, what others record and what is
//! erased: live after every event, as of every earlier moment, made again from nothing, and rebuilt beside
//! the live ones.

mod rules;

use std::{env, ops::ControlFlow};

use domain::ids::ThreadId;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::{
    feeds,
    history::{Op, World, all_threads, ops_and_erasures},
    model, open, store, sums,
};
use crate::{Projections, RebuildOutcome, RebuildRequest};

/// Histories of one run of the test; [`CASES_VARIABLE`] asks for more.
const CASES: u32 = 16;
const CASES_VARIABLE: &str = "REMIT_AGREEMENT_CASES";
/// A number that makes the histories up; without it another one each time, which is printed.
const SEED_VARIABLE: &str = "REMIT_AGREEMENT_SEED";
/// Enough for several runs with their delegations.
const OPS: usize = 110;

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().expect("a whole number"))
}

/// Follows a history and compares after every event.
struct Follower {
    world: World,
    views: Projections,
}

impl Follower {
    fn new() -> Self {
        let world = World::new();
        let views = open(&store(), &world.log);
        Self { world, views }
    }

    fn happen(&mut self, op: Op) {
        self.world.happen(op);
        while self.views.position() < self.world.log.head() {
            self.views.step(1).unwrap();
            // Rows that several runs made are whole again when the views have met the erasure.
            if !self.world.is_being_erased(self.views.position()) {
                let thread = self.world.thread_at(self.views.position());
                thread.iter().for_each(|thread| self.check_now(&self.views, thread));
            }
        }
    }

    /// The newest answers, at whatever moment the views are at.
    fn check_now(&self, views: &Projections, thread: &ThreadId) {
        let facts = self.world.facts(views.position());
        assert_eq!(
            model::of_views(views, &self.world, thread),
            model::of_list(&facts, &self.world, thread),
            "{thread} at {}",
            views.position()
        );
        rules::check(views, &self.world, thread);
    }

    fn check_all(&self, views: &Projections) {
        for thread in all_threads() {
            self.check_now(views, &thread);
            let theirs = feeds::of_views(views, &self.world, &thread, None);
            assert_eq!(theirs, feeds::of_list(&self.world, &thread, None), "{thread}");
        }
        sums::check(views, &self.world);
    }

    /// Every earlier moment of every thread.
    fn check_then(&self) {
        let facts = self.world.facts(self.world.log.head());
        for thread in all_threads() {
            for seq in self.world.seqs(&thread) {
                let then: Vec<_> = facts.iter().filter(|fact| fact.seq <= seq.get()).cloned().collect();
                let answers = model::of_views_then(&self.views, &self.world, &thread, seq);
                assert_eq!(answers, model::of_list(&then, &self.world, &thread), "{thread} as of {seq}");
                let answers = feeds::of_views(&self.views, &self.world, &thread, Some(seq));
                assert_eq!(answers, feeds::of_list(&self.world, &thread, Some(seq)), "{thread} as of {seq}");
                rules::check_then(&self.views, &self.world, &thread, seq);
            }
        }
    }

    /// From nothing, beside the live ones, and compared row by row.
    fn check_again(&self) {
        let anew = Projections::in_memory(self.world.log.clone()).unwrap();
        anew.catch_up().unwrap();
        self.check_all(&anew);
        for check in [true, false] {
            let request = RebuildRequest { view: None, check };
            let outcome = self.views.rebuild(&request, &mut |_| ControlFlow::Continue(())).unwrap();
            let is_good = |outcome| match outcome {
                RebuildOutcome::Same { position } => check && position == self.world.log.head(),
                RebuildOutcome::Replaced { position } => !check && position == self.world.log.head(),
                RebuildOutcome::Different { .. } | RebuildOutcome::Stopped { .. } => false,
            };
            assert!(is_good(outcome.clone()), "{outcome:?}");
        }
        self.check_all(&self.views);
    }
}

fn follow(ops: Vec<Op>) {
    let mut follower = Follower::new();
    ops.into_iter().for_each(|op| follower.happen(op));
    follower.check_all(&follower.views);
    follower.check_then();
    follower.check_again();
}

// The read side's promise in one test: ledger, status, card, run, usage, caps, receipts and messages
// agree at every prefix, live, rebuilt and as of then. Field reports 14, 15, 16, 84 and 88.
#[test]
fn all_views_agree_at_every_moment_and_with_a_plain_model() {
    let cases = number(CASES_VARIABLE).map_or(CASES, |cases| u32::try_from(cases).unwrap());
    let seed = number(SEED_VARIABLE).unwrap_or_else(|| u64::from(std::process::id()) ^ now());
    println!("{SEED_VARIABLE}={seed} {CASES_VARIABLE}={cases}");
    let bytes: Vec<u8> = seed.to_le_bytes().repeat(4);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::with_cases(cases), rng);
    let outcome = runner.run(&ops_and_erasures(OPS), |ops| {
        follow(ops);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{SEED_VARIABLE}={seed}: {error}"));
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64
}
