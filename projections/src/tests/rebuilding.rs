//! Views that are made again while they answer.

use std::{ops::ControlFlow, sync::atomic::Ordering, time::Duration};

use eventlog::{Position, engine::Batch};
use proptest::prelude::*;

use super::{
    failures::{raised_ledger, work},
    history::{Op, World, all_threads, ops, thread_id},
    model::{of_list, of_views},
    open, store,
};
use crate::{
    Projections, RebuildError, RebuildOutcome, RebuildPhase, RebuildRequest,
    checkpoint::{Checkpoint, Role},
    keys::{KeyKind, KeyWriter, checkpoint::CheckpointKey, ledger::LedgerOrderKey},
    store::{Side, Store},
    view::Registered,
    views,
};

fn all() -> RebuildRequest {
    RebuildRequest::default()
}

fn check() -> RebuildRequest {
    RebuildRequest { check: true, ..all() }
}

fn rebuild(views: &Projections, request: &RebuildRequest) -> RebuildOutcome {
    views.rebuild(request, &mut |_| ControlFlow::Continue(())).expect("the views are made again")
}

/// Views whose pages are small, so that a short log has many.
fn open_with(store: &Store, world: &World, views: Vec<Registered>, page: usize) -> Projections {
    Projections::with_store(store.clone(), world.log.clone(), views).unwrap().with_page(page)
}

#[track_caller]
fn check_answers(views: &Projections, world: &World) {
    let facts = world.facts(views.position());
    for thread in all_threads() {
        assert_eq!(of_views(views, world, &thread), of_list(&facts, world, &thread), "{thread}");
    }
}

/// What the store holds on a side, of any view.
fn rows_on(store: &Store, side: Side) -> usize {
    let snapshot = store.snapshot();
    let kinds = views::all().into_iter().flat_map(|view| view.kinds.iter().copied());
    let kinds = kinds.chain([KeyKind::Checkpoint, KeyKind::Parked]);
    kinds.map(|kind| snapshot.keys(side, &KeyWriter::new(kind).range(), 9_999).unwrap().len()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    // The views are made again while things happen: they answer throughout, as of where they are,
    // and what was made answers the same. A stop on the way costs nothing.
    #[test]
    fn views_answer_while_they_are_made_again(ops in ops(60), page in 1_usize..9, stop_after in 0_usize..12) {
        let (mut world, store) = (World::of(&ops), store());
        let mut views = open_with(&store, &world, views::all(), page);
        views.catch_up().unwrap();
        let mut more = ops.iter().copied();
        let mut pages = 0;
        let outcome = views.rebuild(&all(), &mut |_| {
            if let Some(op) = more.next() {
                world.happen(op);
            }
            views.step(page).unwrap();
            check_answers(&views, &world);
            pages += 1;
            if pages > stop_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if let RebuildOutcome::Stopped { position } = outcome.unwrap() {
            // As after a crash: what was made is found again, and gone on with.
            views = open_with(&store, &world, views::all(), page);
            let mut first = None;
            views.rebuild(&all(), &mut |progress| {
                first.get_or_insert(progress.position);
                ControlFlow::Continue(())
            }).unwrap();
            let goes_on = first.is_none_or(|first| first > position || position == Position::ZERO);
            prop_assert!(goes_on, "it began at {first:?} and had got to {position}");
        }
        check_answers(&views, &world);
        views.catch_up().unwrap();
        check_answers(&views, &world);
        prop_assert_eq!(rows_on(&store, Side::First), 0, "what no longer answers is deleted");
        prop_assert_eq!(rebuild(&views, &check()), RebuildOutcome::Same { position: world.log.head() });
        prop_assert_eq!(rows_on(&store, Side::First), 0, "what was only compared is deleted");
        drop(views);
        let views = open(&store, &world.log);
        check_answers(&views, &world);
        prop_assert_eq!(views.position(), world.log.head());
    }

    // A commit fails at any moment, the swap and the deleting among them: nothing is lost and
    // nothing doubled, for those who carry on and for those who start again.
    #[test]
    fn a_rebuild_that_fails_anywhere_changes_no_answer(ops in ops(40), commits in 0_u64..24) {
        let (world, store) = (World::of(&ops), store());
        let views = open_with(&store, &world, views::all(), 5);
        views.catch_up().unwrap();
        store.commits_until_fault.store(commits, Ordering::SeqCst);
        let failed = views.rebuild(&all(), &mut |_| ControlFlow::Continue(())).is_err();
        store.commits_until_fault.store(u64::MAX, Ordering::SeqCst);
        check_answers(&views, &world);
        let reopened = open_with(&store, &world, views::all(), 5);
        check_answers(&reopened, &world);
        prop_assert_eq!(reopened.position(), world.log.head());
        reopened.renew().unwrap();
        check_answers(&reopened, &world);
        let sides = Side::BOTH.map(|side| rows_on(&store, side));
        prop_assert!(sides.contains(&0), "one side is empty: {sides:?}, failed: {failed}");
        prop_assert_eq!(rebuild(&reopened, &check()), RebuildOutcome::Same { position: world.log.head() });
    }
}

#[test]
fn a_raised_version_answers_from_its_old_rows_until_it_is_made_again() {
    let (world, store) = (work(), store());
    open(&store, &world.log).catch_up().unwrap();
    let views = open_with(&store, &world, raised_ledger(true), 3);
    let version = |name: &str| views.health().unwrap().iter().find(|view| view.name == name).unwrap().version;
    let (ledger, runs) = (version("ledger"), version("runs"));
    check_answers(&views, &world);
    views.renew().unwrap();
    assert_eq!((version("ledger"), version("runs")), (ledger + 1, runs));
    check_answers(&views, &world);
    assert_eq!(views.position(), world.log.head());
}

#[test]
fn the_first_difference_is_shown_with_both_rows_and_nothing_is_changed() {
    let (world, store) = (work(), store());
    let views = open(&store, &world.log);
    views.catch_up().unwrap();
    let position = world.log.head();
    let of_ledger = RebuildRequest { view: Some("ledger".into()), check: true };
    assert_eq!(rebuild(&views, &of_ledger), RebuildOutcome::Same { position });
    let key = LedgerOrderKey { thread_id: thread_id(0), first_seq: 99 };
    let mut batch = Batch::new();
    let row = uuid::Uuid::nil().to_string().parse().unwrap();
    views.0.store.put(&mut batch, Side::First, &key, &row).unwrap();
    store.commit(batch).unwrap();
    let RebuildOutcome::Different { difference, position: at } = rebuild(&views, &of_ledger) else {
        panic!("they differ")
    };
    assert_eq!(at, position);
    assert_eq!((difference.view, difference.key.as_str()), ("ledger", "LedgerOrder t0 0000000000000063"));
    let nil = "\"00000000-0000-0000-0000-000000000000\"".to_owned();
    assert_eq!((difference.answering, difference.rebuilt), (Some(nil), None));
    assert_eq!(rebuild(&views, &check()), rebuild(&views, &of_ledger), "the other views are the same");
    let last = views.health().unwrap().into_iter().find(|view| view.name == "ledger").unwrap().last_rebuild;
    assert!(matches!(last.unwrap().outcome, Ok(RebuildOutcome::Different { .. })));
    rebuild(&views, &all());
    assert_eq!(rebuild(&views, &check()), RebuildOutcome::Same { position });
}

#[test]
fn one_rebuild_at_a_time_and_its_progress_is_seen() {
    let (world, store) = (work(), store());
    let views = open_with(&store, &world, views::all(), 2);
    views.catch_up().unwrap();
    let (mut phases, head) = (Vec::new(), world.log.head());
    let request = RebuildRequest { view: Some("runs".into()), check: false };
    views
        .rebuild(&request, &mut |progress| {
            phases.push((progress.phase, progress.position));
            assert_eq!((progress.views.as_slice(), progress.head), (&["runs"][..], head));
            let busy = views.begin_rebuild(&all()).err().expect("it is busy");
            assert!(matches!(&busy, RebuildError::Busy { views } if views == &["runs"]), "{busy}");
            let health = views.health().unwrap();
            let shown: Vec<_> = health.iter().filter_map(|view| view.rebuild.as_ref()).collect();
            assert_eq!(shown, [progress], "the health of the view shows it");
            ControlFlow::Continue(())
        })
        .unwrap();
    let folded = phases.iter().filter(|(phase, _)| *phase == RebuildPhase::Folding).count();
    assert!(folded >= 3 && phases.is_sorted_by_key(|(_, position)| *position), "{phases:?}");
    assert_eq!(phases.last(), Some(&(RebuildPhase::Deleting, head)));
    assert!(views.health().unwrap().iter().all(|view| view.rebuild.is_none()));
    let error = views.begin_rebuild(&RebuildRequest { view: Some("x".into()), check: false }).err().unwrap();
    assert!(
        error.to_string().starts_with("there is no view x; the views are threads, runs, ledger"),
        "{error}"
    );
}

#[test]
fn what_an_older_log_cannot_have_made_is_not_gone_on_with() {
    let (world, store) = (work(), store());
    let views = open_with(&store, &world, views::all(), 2);
    views.catch_up().unwrap();
    let stop_at_once = &mut |_: &_| ControlFlow::Break(());
    assert!(matches!(views.rebuild(&all(), stop_at_once), Ok(RebuildOutcome::Stopped { .. })));
    // As if the log had been restored from before that.
    let made = CheckpointKey { view: "cards".into() };
    let mut checkpoint = store.snapshot().get_on(Side::Second, &made).unwrap().expect("it was begun");
    assert_eq!(checkpoint.role, Role::Successor);
    checkpoint = Checkpoint { position: world.log.head().get() + 1, ..checkpoint };
    let mut batch = Batch::new();
    store.put(&mut batch, Side::Second, &made, &checkpoint).unwrap();
    store.commit(batch).unwrap();
    let views = open_with(&store, &world, views::all(), 2);
    rebuild(&views, &all());
    check_answers(&views, &world);
    assert_eq!(rebuild(&views, &check()), RebuildOutcome::Same { position: world.log.head() });
}

#[tokio::test(flavor = "multi_thread")]
async fn following_goes_on_with_what_was_not_finished() {
    let (store, log) = (store(), {
        let world = tokio::task::spawn_blocking(work).await.unwrap();
        let log = world.log.clone();
        tokio::task::spawn_blocking(move || drop(world)).await.unwrap();
        log
    });
    let views = Projections::with_store(store.clone(), log.clone(), views::all()).unwrap().with_page(2);
    views.catch_up().unwrap();
    drop(views.rebuild(&all(), &mut |_| ControlFlow::Break(())).unwrap());
    let views = Projections::with_store(store.clone(), log, views::all()).unwrap().with_page(2);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let following = views.follow(async move { drop(stopped.await) });
    let is_replaced = || {
        let health = views.health().unwrap();
        let replaced =
            |last: &crate::LastRebuild| matches!(last.outcome, Ok(RebuildOutcome::Replaced { .. }));
        health.iter().all(|view| view.last_rebuild.as_ref().is_some_and(replaced))
    };
    tokio::time::timeout(Duration::from_secs(20), async {
        while !is_replaced() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await
    .expect("it is finished");
    assert_eq!(rows_on(&store, Side::First), 0);
    drop(stop);
    following.await.unwrap();
}

/// A thread that is erased before its rows are compared is no difference.
#[test]
fn erased_threads_are_not_compared() {
    let (mut world, store) = (work(), store());
    world.happen(Op { kind: 1, pick: 1, variant: 0 });
    let views = open(&store, &world.log);
    views.catch_up().unwrap();
    let outcome = views.rebuild(&check(), &mut |progress| {
        if progress.phase == RebuildPhase::Comparing {
            world.erase(&thread_id(0));
        }
        ControlFlow::Continue(())
    });
    assert_eq!(outcome.unwrap(), RebuildOutcome::Same { position: world.log.head() });
}
