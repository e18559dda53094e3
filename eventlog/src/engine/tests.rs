//! Both engines against an ordered map.

mod space;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const LEFT: Keyspace = Keyspace { name: "left", access: Access::Scanned };
const RIGHT: Keyspace = Keyspace { name: "right", access: Access::Pointed };
const ABSENT: Keyspace = Keyspace { name: "absent", access: Access::Pointed };

/// Runs a check on a new engine of each kind.
fn on_each(check: impl Fn(&Engine)) {
    check(&Engine::in_memory(&[LEFT, RIGHT]));
    let folder = tempfile::tempdir().unwrap();
    check(&Engine::open(folder.path(), &[LEFT, RIGHT]).unwrap());
}

fn put(engine: &Engine, pairs: &[(&[u8], &[u8])]) {
    let mut batch = Batch::new();
    for (key, value) in pairs {
        batch.put(LEFT, *key, *value);
    }
    engine.commit(batch, Durability::Buffered).unwrap();
}

#[track_caller]
fn check_range(engine: &Engine, range: &KeyRange, expected: &[&[u8]]) {
    let keys = |direction| -> Vec<Vec<u8>> {
        let pairs = engine.view().page(LEFT, range, direction, usize::MAX).unwrap();
        pairs.into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(keys(Direction::Forward), expected, "{range:?}");
    let reversed: Vec<_> = expected.iter().rev().copied().collect();
    assert_eq!(keys(Direction::Backward), reversed, "{range:?} backward");
}

#[test]
fn ranges_hold_exactly_their_keys_in_both_directions() {
    on_each(|engine| {
        let all: [&[u8]; 6] = [b"a", b"a\xff", b"a\xff\xff", b"b", b"ba", b"\xff"];
        put(engine, &all.map(|key| (key, b"v".as_slice())));
        check_range(engine, &KeyRange::all(), &all);
        check_range(engine, &KeyRange::prefix(b"a"), &all[..3]);
        check_range(engine, &KeyRange::prefix(b"a\xff"), &all[1..3]);
        check_range(engine, &KeyRange::prefix(b"\xff"), &all[5..]);
        check_range(engine, &KeyRange::after(b"b", b"b"), &all[4..5]);
        check_range(engine, &KeyRange::after(b"a", b"b"), &all[3..5]);
        check_range(engine, &KeyRange::after(b"c", b"b"), &[]);
        check_range(engine, &KeyRange::before(b"b", b"a"), &all[..3]);
        check_range(engine, &KeyRange::before(b"a", b"b"), &[]);
        check_range(engine, &KeyRange::between(b"a\xff", b"b"), &all[1..4]);
        check_range(engine, &KeyRange::between(b"b", b"a"), &[]);
    });
}

#[test]
fn a_batch_writes_to_several_keyspaces_and_its_later_writes_count() {
    on_each(|engine| {
        let mut batch = Batch::new();
        batch.put(LEFT, b"k", b"1");
        batch.put(RIGHT, b"k", b"2");
        batch.put(LEFT, b"k", b"3");
        batch.put(RIGHT, b"gone", b"4");
        batch.delete(RIGHT, b"gone");
        engine.commit(batch, Durability::Synced).unwrap();
        assert_eq!(engine.get(LEFT, b"k").unwrap().unwrap(), b"3");
        assert_eq!(engine.get(RIGHT, b"k").unwrap().unwrap(), b"2");
        assert_eq!(engine.get(RIGHT, b"gone").unwrap(), None);
    });
}

#[test]
fn a_keyspace_that_was_not_opened_is_an_error_and_nothing_is_written() {
    on_each(|engine| {
        let mut batch = Batch::new();
        batch.put(LEFT, b"k", b"1");
        batch.put(ABSENT, b"k", b"2");
        let error = engine.commit(batch, Durability::Synced).unwrap_err();
        assert_eq!(error.to_string(), "could not use keyspace absent");
        assert_eq!(engine.get(LEFT, b"k").unwrap(), None);
        assert!(engine.get(ABSENT, b"k").is_err());
    });
}

#[test]
fn a_view_on_disk_does_not_see_what_comes_later() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(folder.path(), &[LEFT]).unwrap();
    put(&engine, &[(b"k", b"1")]);
    let view = engine.view();
    put(&engine, &[(b"k", b"2")]);
    assert_eq!(view.get(LEFT, b"k").unwrap().unwrap(), b"1");
    assert_eq!(engine.get(LEFT, b"k").unwrap().unwrap(), b"2");
}

#[test]
fn what_was_committed_is_there_after_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(folder.path(), &[LEFT, RIGHT]).unwrap();
    put(&engine, &[(b"k", b"1")]);
    drop(engine);
    let engine = Engine::open(folder.path(), &[LEFT, RIGHT]).unwrap();
    assert_eq!(engine.get(LEFT, b"k").unwrap().unwrap(), b"1");
    assert!(engine.disk_bytes().unwrap() > 0);
}

// A crash while the folder is made leaves it beside its place, where it does no harm.
#[test]
fn what_a_crash_left_of_a_new_folder_is_thrown_away() {
    let folder = tempfile::tempdir().unwrap();
    let (place, unfinished) = (folder.path().join("log"), folder.path().join("log.new"));
    std::fs::create_dir_all(unfinished.join("keyspaces")).unwrap();
    std::fs::write(unfinished.join("0.jnl"), b"half").unwrap();
    let engine = Engine::open(&place, &[LEFT, RIGHT]).unwrap();
    put(&engine, &[(b"k", b"1")]);
    drop(engine);
    assert!(!unfinished.exists());
    // Later openings leave a folder of that name alone.
    std::fs::create_dir(&unfinished).unwrap();
    let engine = Engine::open(&place, &[LEFT, RIGHT]).unwrap();
    assert_eq!(engine.get(LEFT, b"k").unwrap().unwrap(), b"1");
    assert!(unfinished.exists());
}

fn writes() -> impl Strategy<Value = Vec<(Vec<u8>, Option<Vec<u8>>)>> {
    let key = prop::collection::vec(prop::sample::select(vec![0_u8, 1, 0xfe, 0xff]), 0..4);
    let value = prop::option::of(prop::collection::vec(any::<u8>(), 0..8));
    // Engines on disk take no empty key.
    prop::collection::vec((key.prop_filter("a key", |key| !key.is_empty()), value), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn an_engine_is_an_ordered_map(writes in writes(), probe in prop::collection::vec(any::<u8>(), 1..3)) {
        let mut model = BTreeMap::new();
        for (key, value) in &writes {
            match value {
                Some(value) => model.insert(key.clone(), value.clone()),
                None => model.remove(key),
            };
        }
        on_each(|engine| {
            for (key, value) in &writes {
                let mut batch = Batch::new();
                match value {
                    Some(value) => batch.put(LEFT, key.clone(), value.clone()),
                    None => batch.delete(LEFT, key.clone()),
                }
                engine.commit(batch, Durability::Buffered).unwrap();
            }
            for range in [KeyRange::all(), KeyRange::prefix(&probe), KeyRange::after(&probe, &probe[..1])] {
                let expected: Vec<Pair> = if range.is_empty() { Vec::new() } else {
                    model.range(range.clone()).map(|(key, value)| (key.clone(), value.clone())).collect()
                };
                let found = engine.view().page(LEFT, &range, Direction::Forward, usize::MAX).unwrap();
                assert_eq!(found, expected, "{range:?}");
            }
            assert_eq!(engine.get(LEFT, &probe).unwrap(), model.get(&probe).cloned());
        });
    }
}
