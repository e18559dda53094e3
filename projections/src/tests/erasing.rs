//! What was said on a thread is in no row in plain, and in none at all after its erasure.

use std::{fs, path::Path};

use domain::{
    event::{Event, RunEvent},
    ids::{RunId, ThreadId},
};
use eventlog::{
    Position,
    engine::{Batch, Durability, Engine},
};

use super::{
    failures::{run_scope, work},
    history::{Op, World, all_threads, thread_id},
    model::{of_list, of_views, of_views_then},
    open,
    payloads::settings,
    store,
};
use crate::{
    Projections,
    keys::{RowKey as _, checkpoint::CheckpointKey, run::RunKey},
    store::ROWS,
};

/// Work on all threads, an event that a view cannot take, and one that nobody can read.
fn busy() -> World {
    let mut world = work();
    for number in 0..3 {
        world.happen(Op { kind: 0, pick: number, variant: number });
        world.happen(Op { kind: 1, pick: number, variant: number });
    }
    world.append_unreadable(thread_id(0), run_scope());
    let other = RunId::new("secret-run").unwrap();
    let oddity = vec![Event::Run(RunEvent::Started(settings(&other, 0)))];
    world.append(thread_id(0), run_scope(), oddity);
    world
}

fn parked(views: &Projections, view: &str) -> usize {
    views.parked(view, Position::ZERO, 10).unwrap().len()
}

fn names(views: &Projections, after: Option<&ThreadId>, limit: usize) -> Vec<ThreadId> {
    views.threads(after, limit).unwrap().into_iter().map(|row| row.thread_id).collect()
}

#[test]
fn an_erased_thread_is_gone_from_every_answer_and_the_others_are_not() {
    let (mut world, store) = (busy(), store());
    let views = open(&store, &world.log);
    views.catch_up().unwrap();
    assert_eq!((parked(&views, "runs"), parked(&views, "cards")), (2, 1));
    let before: Vec<_> = all_threads().map(|thread| of_views(&views, &world, &thread)).collect();
    let (gone, seq) = (thread_id(0), eventlog::Seq::new(9_999));
    world.erase(&gone);
    world.happen(Op { kind: 1, pick: 1, variant: 7 });
    let nothing = of_list(&[], &world, &gone);
    for (views, what) in [(views, "live"), (open(&super::store(), &world.log), "made again")] {
        views.catch_up().unwrap();
        assert_eq!(of_views(&views, &world, &gone), nothing, "{what}");
        assert_eq!(
            of_views(&views, &world, &thread_id(2)),
            of_views_then(&views, &world, &thread_id(2), seq),
            "{what}"
        );
        assert_eq!(
            of_views(&views, &world, &thread_id(1)),
            of_views_then(&views, &world, &thread_id(1), seq),
            "{what}"
        );
        assert_eq!(names(&views, None, 1), [thread_id(1)], "{what}");
        assert_eq!(names(&views, None, 9), [thread_id(1), thread_id(2)], "{what}");
        assert_eq!(names(&views, Some(&thread_id(1)), 1), [thread_id(2)], "{what}");
        assert_eq!((parked(&views, "runs"), parked(&views, "cards")), (0, 0), "{what}");
        assert_eq!(of_views_then(&views, &world, &gone, seq), nothing, "{what}");
    }
    assert_ne!(before[0], nothing);
}

#[test]
fn an_erasure_between_two_pages_leaves_nothing_behind() {
    for page in [1, 3, 5] {
        let mut world = busy();
        let views = open(&store(), &world.log);
        for _ in 0..4 {
            views.step(page).unwrap();
        }
        world.erase(&thread_id(0));
        while views.position() < world.log.head() {
            views.step(page).unwrap();
        }
        assert_eq!(of_views(&views, &world, &thread_id(0)), of_list(&[], &world, &thread_id(0)), "{page}");
        let seq = eventlog::Seq::new(9_999);
        assert_eq!(
            of_views(&views, &world, &thread_id(1)),
            of_views_then(&views, &world, &thread_id(1), seq),
            "{page}"
        );
    }
}

/// Two runs on one thread with delegations of their own, and another thread.
fn two_runs() -> World {
    let mut world = World::new();
    for (kind, pick, variant) in [
        (0, 0, 1),
        (1, 0, 1),
        (3, 0, 0),
        (6, 0, 1),
        (9, 0, 0),
        (11, 0, 3),
        (14, 0, 3),
        (4, 0, 2),
        (1, 0, 2),
        (3, 1, 0),
        (6, 1, 2),
        (9, 1, 0),
        (11, 1, 1),
        (1, 1, 0),
    ] {
        world.happen(Op { kind, pick, variant });
    }
    let other = RunId::new("secret-run").unwrap();
    for run in world.runs().map(|(_, run)| run.clone()).take(2).collect::<Vec<_>>() {
        let scope = eventlog::Scope { run_id: Some(run), ..eventlog::Scope::default() };
        world.append_unreadable(thread_id(0), scope.clone());
        world.append(thread_id(0), scope, vec![Event::Run(RunEvent::Started(settings(&other, 0)))]);
    }
    let of: Vec<_> = world.runs().map(|(thread, _)| thread.clone()).collect();
    assert_eq!(of, [thread_id(0), thread_id(0), thread_id(1)]);
    world
}

/// Live, made anew, as of now and by hand: nothing of the run, and everything of all others.
#[track_caller]
fn check_without_erased(views: &Projections, world: &World, what: &str) {
    let made_anew = open(&store(), &world.log);
    for views in [views, &made_anew] {
        views.catch_up().unwrap();
        for thread in all_threads() {
            let facts = world.facts(world.log.head());
            assert_eq!(of_views(views, world, &thread), of_list(&facts, world, &thread), "{what}, {thread}");
            let tail = world.log.stream_tail(&thread.clone().into()).unwrap().map_or(0, eventlog::Seq::get);
            for seq in 0..=tail + 1 {
                let then: Vec<_> = facts.iter().filter(|fact| fact.seq <= seq).cloned().collect();
                let answers = of_views_then(views, world, &thread, eventlog::Seq::new(seq));
                assert_eq!(answers, of_list(&then, world, &thread), "{what}, {thread} at {seq}");
            }
        }
    }
}

#[test]
fn an_erased_run_is_gone_from_every_answer_and_the_others_are_not() {
    for (erased, page) in [(0, 512), (1, 512), (0, 1), (1, 3)] {
        let mut world = two_runs();
        let views = open(&store(), &world.log);
        views.catch_up().unwrap();
        let thread = thread_id(0);
        let run = RunId::new(format!("r{erased}")).unwrap();
        assert!(views.run(&thread, &run).unwrap().is_some());
        let (ledger, parked_before) = (views.ledger(&thread, None).unwrap().len(), parked(&views, "runs"));
        assert!(!views.ledger(&thread, Some(&run)).unwrap().is_empty());
        world.destroy_run(&thread, &run);
        // Its own rows go with its key, before any view is told.
        assert_eq!(views.run(&thread, &run).unwrap(), None);
        assert!(views.ledger(&thread, None).unwrap().len() < ledger);
        assert_eq!(views.runs(&thread, None, 9).unwrap().len(), 1);
        assert_eq!(parked(&views, "runs"), parked_before - 2, "what was parked quotes it");
        world.record_run_erased(&thread, &run);
        while views.position() < world.log.head() {
            views.step(page).unwrap();
        }
        let row = views.thread(&thread).unwrap().unwrap();
        assert_eq!((row.runs, row.last_run_id.as_ref() == Some(&run)), (1, false));
        check_without_erased(&views, &world, &format!("run {erased} in pages of {page}"));
        for variant in 0..3 {
            world.happen(Op { kind: 1, pick: 0, variant });
        }
        check_without_erased(&views, &world, "with more runs");
    }
}

/// A crash may come between any two steps of an erasure, and a view be anywhere then.
#[test]
fn an_erasure_of_a_run_meets_views_that_are_behind() {
    for steps in 0..8 {
        let mut world = two_runs();
        let views = open(&store(), &world.log);
        for _ in 0..steps {
            views.step(3).unwrap();
        }
        let (thread, run) = (thread_id(0), RunId::new("r1").unwrap());
        world.destroy_run(&thread, &run);
        views.step(3).unwrap();
        world.record_run_erased(&thread, &run);
        check_without_erased(&views, &world, &format!("after {steps} steps"));
    }
}

#[test]
fn a_thread_of_erased_runs_alone_is_not_listed() {
    let mut world = World::new();
    world.happen(Op { kind: 1, pick: 0, variant: 1 });
    let (thread, run) = (thread_id(0), RunId::new("r0").unwrap());
    let views = open(&store(), &world.log);
    views.catch_up().unwrap();
    assert_eq!(names(&views, None, 9).len(), 1);
    world.destroy_run(&thread, &run);
    world.record_run_erased(&thread, &run);
    check_without_erased(&views, &world, "all of it");
    assert_eq!(names(&views, None, 9), []);
}

#[test]
fn a_thread_whose_only_run_was_erased_is_listed_again_with_its_next_run() {
    let mut world = World::new();
    world.happen(Op { kind: 1, pick: 0, variant: 1 });
    let (thread, run) = (thread_id(0), RunId::new("r0").unwrap());
    let views = open(&store(), &world.log);
    views.catch_up().unwrap();
    world.destroy_run(&thread, &run);
    world.record_run_erased(&thread, &run);
    // In one page with the erasure.
    world.happen(Op { kind: 1, pick: 0, variant: 2 });
    check_without_erased(&views, &world, "all of one");
    assert_eq!(names(&views, None, 9).len(), 1);
}

/// Whether a file below the folder holds the text.
fn holds(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, text);
        }
        fs::read(&path).unwrap().windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn no_row_is_on_disk_in_plain() {
    let (world, folder) = (busy(), tempfile::tempdir().unwrap());
    let views = Projections::open(folder.path(), world.log.clone()).unwrap();
    views.catch_up().unwrap();
    assert_eq!(names(&views, None, 9).len(), 3);
    drop(views);
    for text in ["look around", "said ", "variant", "secret-run", "call_0", "call_1", "call_2", "call_3"] {
        assert!(!holds(folder.path(), text), "{text}");
    }
    // What a checkpoint says is about no thread, and shows that the search would have found it.
    assert!(holds(folder.path(), "parked"));
}

#[test]
fn views_that_were_not_sealed_are_thrown_away_with_their_files() {
    let (world, folder) = (busy(), tempfile::tempdir().unwrap());
    let engine = Engine::open(folder.path(), &[ROWS]).unwrap();
    let mut batch = Batch::new();
    let old = br#"{"version":1,"position":1,"hash":[],"parked":0}"#;
    let old = String::from_utf8_lossy(old).replace("[]", &serde_json::to_string(&[0_u8; 32]).unwrap());
    batch.put(ROWS, CheckpointKey { view: "runs".into() }.encode(), old.into_bytes());
    let key = RunKey::new(&thread_id(0), &RunId::new("r0").unwrap());
    batch.put(ROWS, key.encode(), b"in plain".to_vec());
    engine.commit(batch, Durability::Buffered).unwrap();
    drop(engine);
    assert!(holds(folder.path(), "in plain"));
    let views = Projections::open(folder.path(), world.log.clone()).unwrap();
    assert!(!holds(folder.path(), "in plain"));
    views.catch_up().unwrap();
    assert_eq!(names(&views, None, 9).len(), 3);
}

#[test]
fn a_row_that_does_not_open_is_damaged_and_not_gone() {
    let (world, store) = (busy(), store());
    let views = open(&store, &world.log);
    views.catch_up().unwrap();
    let (thread_id, run_id) = (thread_id(0), RunId::new("r0").unwrap());
    let mut batch = Batch::new();
    batch.put(ROWS, RunKey::new(&thread_id, &run_id).encode(), vec![1; 80]);
    store.commit(batch).unwrap();
    let error = views.run(&thread_id, &run_id).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("does not open"), "{error}");
}

#[test]
fn events_beside_the_threads_are_passed_over() {
    let mut world = busy();
    world.append_to_registry();
    let views = open(&store(), &world.log);
    views.catch_up().unwrap();
    assert_eq!(views.position(), world.log.head());
    assert_eq!(parked(&views, "threads"), 1, "only what nobody can read");
}
