//! What cannot be taken, read or trusted, and what becomes of it.

use std::{fs, path::Path};

use domain::{
    event::{Event, RunEvent},
    ids::{RunId, ThreadId},
};
use eventlog::{EventLog, Position, Scope, engine::Batch};

use super::{
    history::{Op, World, all_threads, thread_id},
    model::{of_list, of_views},
    open,
    payloads::{cap, settings},
    store,
};
use crate::{
    Projections, ViewHealth,
    keys::{
        KeyKind, RowKey as _,
        checkpoint::CheckpointKey,
        run::{RunKey, RunOrderKey},
    },
    store::{ROWS, Store},
    view::{FoldError, Registered},
    views,
};

/// A run with two delegations, one of which ended.
const WORK: [(u8, u8, u8); 10] = [
    (1, 0, 1),
    (3, 0, 0),
    (6, 0, 1),
    (9, 0, 0),
    (11, 0, 3),
    (11, 0, 1),
    (14, 0, 3),
    (6, 0, 2),
    (8, 16, 0),
    (4, 0, 2),
];

pub(super) fn work() -> World {
    let ops: Vec<Op> = WORK.iter().map(|&(kind, pick, variant)| Op { kind, pick, variant }).collect();
    World::of(&ops)
}

#[track_caller]
fn check_whole(views: &Projections, world: &World) {
    assert_eq!(views.position(), world.log.head());
    for thread in all_threads() {
        let by_hand = of_list(&world.facts(world.log.head()), world, &thread);
        assert_eq!(of_views(views, world, &thread), by_hand);
    }
}

pub(super) fn run_scope() -> Scope {
    Scope { run_id: Some(RunId::new("r0").unwrap()), ..Scope::default() }
}

#[track_caller]
fn health_of(views: &Projections, name: &str) -> ViewHealth {
    views.health().unwrap().into_iter().find(|view| view.name == name).expect("there is such a view")
}

#[test]
fn an_event_that_nobody_can_read_is_parked_for_every_view() {
    let mut world = work();
    world.append_unreadable(thread_id(0), run_scope());
    let position = world.log.head();
    world.happen(Op { kind: 4, pick: 0, variant: 5 });
    let views = open(&store(), &world.log);
    views.catch_up().unwrap();
    check_whole(&views, &world);
    for ViewHealth { name, position: at, lag_events, parked, .. } in views.health().unwrap() {
        assert_eq!((at, lag_events, parked), (world.log.head(), 0, 1), "{name}");
        let listed = views.parked(name, Position::ZERO, 10).unwrap();
        assert_eq!((listed.len(), listed[0].position), (1, position), "{name}");
        assert!(listed[0].reason.contains("subagent.step") && listed[0].reason.contains("task_id"));
        assert_eq!(views.parked(name, position, 10).unwrap(), []);
    }
    assert_eq!(views.parked("no such view", Position::ZERO, 10).unwrap(), []);
}

#[test]
fn an_event_that_contradicts_itself_is_parked_by_the_view_that_cannot_take_it() {
    let mut world = work();
    let other = RunId::new("other").unwrap();
    world.append(thread_id(0), run_scope(), vec![Event::Run(RunEvent::Started(settings(&other, 0)))]);
    let views = open(&store(), &world.log);
    views.catch_up().unwrap();
    check_whole(&views, &world);
    let parked = |name| health_of(&views, name).parked;
    assert_eq!(["threads", "runs", "ledger", "cards"].map(parked), [0, 1, 0, 0]);
    let reason = &views.parked("runs", Position::ZERO, 1).unwrap()[0].reason;
    assert_eq!(reason, "the event contradicts itself: it starts run other and is recorded for run r0");
}

/// A view that counts events in one row, and cannot take every third one: it notices late.
fn picky() -> Registered {
    Registered {
        name: "picky",
        version: 1,
        reads_since: 1,
        kinds: &[KeyKind::RunOrder],
        shared_kinds: &[],
        apply: Box::new(|event, rows| {
            let key = RunOrderKey { thread_id: ThreadId::new("picky").unwrap(), first_seq: 0 };
            rows.update(&key, |count| {
                let count = count.map_or(0, |count| count.as_str().len());
                Some(RunId::new("x".repeat(count + 1)).unwrap())
            })?;
            if event.position.is_multiple_of(3) {
                Err(FoldError::Contradiction("it is a third one".into()))
            } else {
                Ok(())
            }
        }),
    }
}

#[test]
fn what_an_event_changed_before_it_was_refused_is_undone() {
    for page in [1, 2, 5, 100] {
        let (world, store) = (work(), store());
        let views = Projections::with_store(store.clone(), world.log.clone(), vec![picky()]).unwrap();
        while views.position() < world.log.head() {
            views.step(page).unwrap();
        }
        let head = world.log.head().get();
        let key = RunOrderKey { thread_id: ThreadId::new("picky").unwrap(), first_seq: 0 };
        let counted = views.0.store.snapshot().get(&key).unwrap().expect("it counted").as_str().len() as u64;
        assert_eq!((counted, health_of(&views, "picky").parked), (head - head / 3, head / 3), "{page}");
    }
}

/// The views as the next version of the program has them: with another ledger.
pub(super) fn raised_ledger(reads_old_rows: bool) -> Vec<Registered> {
    let mut views = views::all();
    let ledger = views.iter_mut().find(|view| view.name == "ledger").expect("there is a ledger");
    ledger.reads_since = if reads_old_rows { ledger.version } else { ledger.version + 1 };
    ledger.version += 1;
    views
}

#[test]
fn a_raised_version_makes_one_view_again_and_leaves_the_others() {
    let (world, store) = (work(), store());
    open(&store, &world.log).catch_up().unwrap();
    let views = Projections::with_store(store.clone(), world.log.clone(), raised_ledger(false)).unwrap();
    assert_eq!(health_of(&views, "ledger").position, Position::ZERO);
    assert_eq!(health_of(&views, "cards").position, world.log.head());
    assert_eq!(views.ledger(&thread_id(0), None).unwrap(), [], "nothing of the old fold is left");
    views.catch_up().unwrap();
    check_whole(&views, &world);
    let versions =
        |name| [&views, &open(&self::store(), &world.log)].map(|views| health_of(views, name).version);
    let ([ledger, old_ledger], [runs, old_runs]) = (versions("ledger"), versions("runs"));
    assert_eq!((ledger, runs), (old_ledger + 1, old_runs));
}

#[test]
fn views_that_are_at_different_places_share_the_pages() {
    for (before, after) in [(1, 100), (4, 3), (7, 5), (9, 100)] {
        let (world, store) = (work(), store());
        open(&store, &world.log).step(before).unwrap();
        let views = Projections::with_store(store, world.log.clone(), raised_ledger(false)).unwrap();
        assert_eq!(health_of(&views, "cards").position, Position::new(before as u64));
        while views.position() < world.log.head() {
            views.step(after).unwrap();
        }
        check_whole(&views, &world);
    }
}

#[test]
fn views_of_another_log_are_made_again() {
    let (long, store) = (work(), store());
    open(&store, &long.log).catch_up().unwrap();
    let mut short = World::new();
    short.happen(Op { kind: 1, pick: 1, variant: 0 });
    let views = open(&store, &short.log);
    assert_eq!(views.position(), Position::ZERO, "the checkpoint was ahead of the log");
    views.catch_up().unwrap();
    check_whole(&views, &short);
    let mut other = World::new();
    other.happen(Op { kind: 1, pick: 2, variant: 9 });
    assert_eq!(other.log.head(), short.log.head());
    let views = open(&store, &other.log);
    assert_eq!(views.position(), Position::ZERO, "another event is at the checkpoint");
    views.catch_up().unwrap();
    check_whole(&views, &other);
}

fn damage(store: &Store, key: Vec<u8>) {
    let mut batch = Batch::new();
    batch.put(ROWS, key, b"{ not json".to_vec());
    store.commit(batch).unwrap();
}

#[test]
fn a_damaged_checkpoint_or_row_costs_a_replay() {
    let (mut world, store) = (work(), store());
    open(&store, &world.log).catch_up().unwrap();
    damage(&store, CheckpointKey { view: "runs".into() }.encode());
    let views = open(&store, &world.log);
    assert_eq!(health_of(&views, "runs").position, Position::ZERO);
    views.catch_up().unwrap();
    check_whole(&views, &world);
    let (thread_id, run_id) = (thread_id(0), RunId::new("r0").unwrap());
    damage(&store, RunKey::new(&thread_id, &run_id).encode());
    let error = views.run(&thread_id, &run_id).unwrap_err();
    assert!(error.to_string().starts_with("a Run row of the views is damaged"), "{error}");
    world.append(thread_id.clone(), run_scope(), vec![Event::Run(RunEvent::Capped(cap(1)))]);
    views.catch_up().unwrap();
    check_whole(&views, &world);
    damage(&store, RunKey::new(&thread_id, &run_id).encode());
    world.append(thread_id, run_scope(), vec![Event::Run(RunEvent::Capped(cap(1)))]);
    let error = views.catch_up().unwrap_err();
    assert_eq!(error.to_string(), "could not bring view runs up to date", "twice is no accident");
}

fn on_disk(folder: &Path, log: &EventLog) -> Projections {
    Projections::open(folder, log.clone()).expect("the views open")
}

#[test]
fn views_on_disk_go_on_where_they_were_and_survive_their_own_loss() {
    let (mut world, folder) = (work(), tempfile::tempdir().unwrap());
    let folder = folder.path().join("views");
    on_disk(&folder, &world.log).catch_up().unwrap();
    let views = on_disk(&folder, &world.log);
    check_whole(&views, &world);
    drop(views);
    world.happen(Op { kind: 4, pick: 0, variant: 1 });
    spoil(&folder);
    let views = on_disk(&folder, &world.log);
    assert_eq!(views.position(), Position::ZERO, "nothing of the damaged folder is trusted");
    views.catch_up().unwrap();
    check_whole(&views, &world);
    drop(views);
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "not a folder").unwrap();
    let error = Projections::open(&folder, world.log.clone()).err().expect("a file is no folder");
    assert!(error.to_string().contains("remove it by hand"), "{error}");
}

/// Overwrites every file below a folder.
fn spoil(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { spoil(&path) } else { fs::write(&path, [0xa5; 200]).unwrap() }
    }
}
