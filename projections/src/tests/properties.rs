//! Live, rebuilt, as of any moment, and by hand: four ways to one answer.

use std::collections::HashMap;

use domain::ledger::LedgerStatus;
use eventlog::{Position, Seq};
use proptest::prelude::*;

use super::{
    history::{Op, World, all_threads, ops},
    model::{of_list, of_views, of_views_then},
    open, store,
};
use crate::{Projections, RunRow};

/// Few enough that a case takes milliseconds, enough for several runs with their delegations.
const OPS: usize = 70;

fn check_views(views: &Projections, world: &World) {
    let facts = world.facts(views.position());
    for thread in all_threads() {
        assert_eq!(of_views(views, world, &thread), of_list(&facts, world, &thread), "{thread}");
    }
}

/// Steps over pages of changing size with a restart here and there, and compares after each.
fn follow(world: &World, store: &crate::store::Store, op: Op) {
    let mut views = open(store, &world.log);
    for turn in 0..op.pick % 4 {
        let before = views.position();
        let at = views.step(usize::from(op.variant % 7) + 1).unwrap();
        assert!(at > before || at == world.log.head(), "a step goes on");
        if (op.variant >> 4) & turn == 0 {
            drop(views);
            views = open(store, &world.log);
            assert_eq!(views.position(), at, "a restart goes on where the views were");
        }
    }
    check_views(&views, world);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn live_views_are_the_list_folded_at_every_moment(ops in ops(OPS)) {
        let (mut world, store) = (World::new(), store());
        for op in ops {
            world.happen(op);
            follow(&world, &store, op);
        }
        let views = open(&store, &world.log);
        prop_assert_eq!(views.catch_up().unwrap(), world.log.head());
        check_views(&views, &world);
    }

    #[test]
    fn rebuilt_views_are_the_live_ones(ops in ops(OPS)) {
        let world = World::of(&ops);
        let (live, rebuilt) = (open(&store(), &world.log), Projections::in_memory(world.log.clone()).unwrap());
        while live.position() < world.log.head() {
            live.step(3).unwrap();
        }
        rebuilt.catch_up().unwrap();
        for thread in all_threads() {
            prop_assert_eq!(of_views(&live, &world, &thread), of_views(&rebuilt, &world, &thread));
        }
        prop_assert_eq!(live.threads(None, 100).unwrap(), rebuilt.threads(None, 100).unwrap());
        prop_assert_eq!(live.health().unwrap(), rebuilt.health().unwrap());
    }

    #[test]
    fn as_of_answers_what_was_answered_then(ops in ops(OPS)) {
        let world = World::of(&ops);
        let facts = world.facts(world.log.head());
        let views = open(&store(), &world.log);
        views.catch_up().unwrap();
        for thread in all_threads() {
            let last = world.log.stream_tail(&thread.clone().into()).unwrap().unwrap_or(Seq::ZERO);
            for seq in 0..=last.get() + 1 {
                let then: Vec<_> = facts.iter().filter(|fact| fact.seq <= seq).cloned().collect();
                let answers = of_views_then(&views, &world, &thread, Seq::new(seq));
                prop_assert_eq!(answers, of_list(&then, &world, &thread), "{} at {}", thread, seq);
            }
        }
    }

    // Field reports 14 and 15.
    #[test]
    fn what_has_ended_stays_as_it_ended(ops in ops(OPS)) {
        let world = World::of(&ops);
        let views = open(&store(), &world.log);
        let (mut runs, mut delegations) = (HashMap::new(), HashMap::new());
        while views.position() < world.log.head() {
            views.step(1).unwrap();
            for thread in all_threads() {
                for run in views.runs(&thread, None, 100).unwrap().into_iter().filter(is_over) {
                    let now = (run.status, run.stop_reason, run.error.clone(), run.result, run.ended_at);
                    let then = runs.entry(run.run_id).or_insert_with(|| now.clone());
                    prop_assert_eq!(&now, then);
                }
                for entry in views.ledger(&thread, None).unwrap() {
                    let then = delegations.entry(entry.delegation_id).or_insert(entry.status);
                    let may_change = !then.is_terminal() || entry.status == LedgerStatus::PollingTimedOut;
                    prop_assert!(entry.status == *then || may_change, "{then:?} became {:?}", entry.status);
                    *then = entry.status;
                }
            }
        }
    }

    // A commit fails at any moment: rows and checkpoint are still of one moment, for those who
    // carry on and for those who start again.
    #[test]
    fn a_failed_commit_leaves_rows_and_checkpoint_together(ops in ops(OPS), commits in 0_u64..20) {
        let (world, store) = (World::of(&ops), store());
        let views = open(&store, &world.log);
        store.commits_until_fault.store(commits, std::sync::atomic::Ordering::SeqCst);
        let mut at = Position::ZERO;
        let failure = loop {
            match views.step(2) {
                Ok(now) if now == world.log.head() => break None,
                Ok(now) => at = now,
                Err(error) => break Some(error),
            }
        };
        if failure.is_some() {
            prop_assert_eq!(views.position(), at);
            check_views(&views, &world);
            prop_assert!(views.step(2).is_err(), "it fails until it can write again");
        }
        store.commits_until_fault.store(u64::MAX, std::sync::atomic::Ordering::SeqCst);
        check_views(&open(&store, &world.log), &world);
        prop_assert_eq!(views.catch_up().unwrap(), world.log.head());
        check_views(&views, &world);
    }
}

fn is_over(run: &RunRow) -> bool {
    run.status.is_terminal()
}
