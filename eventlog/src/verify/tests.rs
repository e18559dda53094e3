//! What verification finds: every kind of damage by its name and its first position, and nothing
//! in a log that is whole.

use std::sync::Arc;

use domain::ids::ThreadId;

use super::*;
use crate::{
    Append, EventLog, Expected, Scope, chain,
    engine::{Batch, Direction, Durability, KeyRange, Keyspace},
    keys::{self, EVENTS, INDEX, TASKS},
    sample,
    store::{EngineStore, LogStore},
};

const EVENTS_PER_STREAM: u64 = 12;

/// A log of two threads and the registry, with runs, tasks, keys and an erased run.
async fn filled() -> (Arc<EngineStore>, EventLog) {
    let store = Arc::new(EngineStore::in_memory());
    let log = EventLog::with_store(store.clone(), sample::options()).unwrap();
    for number in 0..EVENTS_PER_STREAM {
        for name in ["t", "u"] {
            let mut event = sample::note(number);
            event.scope = Scope {
                run_id: Some(sample::run_id(if number < 4 { "one" } else { "two" })),
                task_id: (number % 2 == 0).then(|| sample::task_id("call")),
                delegation_id: None,
            };
            let append = sample::to(&sample::thread(name), Expected::Any, vec![event]);
            log.append(Append { idempotency_key: sample::key(&number.to_string()), ..append }).await.unwrap();
        }
        sample::add(&log, &StreamId::Registry, [number]).await.unwrap();
    }
    let thread_id = ThreadId::new("u").unwrap();
    let run = crate::run_hash(&thread_id, &sample::run_id("one"));
    log.destroy_run_key(&thread_id, run).await.unwrap();
    (store, log)
}

const LAST: u64 = EVENTS_PER_STREAM * 3;

fn verify(store: &EngineStore, noted: Option<Head>, exported: Option<ExportedHead>) -> Report {
    let subject = Subject {
        engine: store.engine().unwrap(),
        keyring: store.keyring(),
        head: store.head().unwrap(),
        is_live: false,
        noted,
    };
    walk::walk(&subject, VerifyRequest { exported, progress: None }).unwrap()
}

#[tokio::test]
async fn a_whole_log_is_whole() {
    let (store, log) = filled().await;
    let head = log.exported_head().unwrap();
    let report = verify(&store, store.head().ok(), Some(head));
    assert_eq!(report.damage, None);
    assert_eq!((report.head, report.events, report.commits, report.streams), (head, LAST, LAST, 3));
    let mut last = Position::ZERO;
    let mut progress = |progress: Progress| last = progress.position;
    let live = log.verify(VerifyRequest { exported: None, progress: Some(&mut progress) }).unwrap();
    assert_eq!((live, last), (report, Position::new(LAST)));
    assert!(verify(&EngineStore::in_memory(), None, None).is_whole());
}

#[tokio::test]
async fn a_log_is_whole_while_others_write() {
    let (_, log) = filled().await;
    let writer = tokio::spawn({
        let log = log.clone();
        async move {
            for number in 0..300 {
                sample::add(&log, &sample::thread("busy"), [number]).await.unwrap();
            }
        }
    });
    while !writer.is_finished() {
        let log = log.clone();
        let verified = tokio::task::spawn_blocking(move || log.verify(VerifyRequest::default()));
        assert_eq!(verified.await.unwrap().unwrap().damage, None);
    }
    writer.await.unwrap();
}

#[tokio::test]
async fn a_log_on_disk_is_verified_and_a_missing_one_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    for _ in 0..3 {
        sample::add(&log, &sample::thread("t"), 1..=500).await.unwrap();
    }
    let head = log.exported_head().unwrap();
    log.close().await;
    let request = || VerifyRequest { exported: Some(head), progress: None };
    let report = verify_folder(folder.path(), &sample::options(), request()).unwrap();
    assert_eq!((report.damage, report.events, report.commits), (None, 1_500, 3));
    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    let held = verify_folder(folder.path(), &sample::options(), request());
    assert!(matches!(held, Err(VerifyError::Open(OpenError::Held { .. }))));
    drop(log);
    let none = verify_folder(&folder.path().join("none"), &sample::options(), request());
    assert!(matches!(none, Err(VerifyError::NoLog { .. })));
    assert!(!folder.path().join("none").exists());
}

fn write(store: &EngineStore, change: impl FnOnce(&mut Batch)) {
    let mut batch = Batch::new();
    change(&mut batch);
    store.engine().unwrap().commit(batch, Durability::Synced).unwrap();
}

fn get(store: &EngineStore, keyspace: Keyspace, key: &[u8]) -> Vec<u8> {
    store.engine().unwrap().get(keyspace, key).unwrap().unwrap()
}

fn event_key(position: u64) -> Vec<u8> {
    keys::event::encode(Position::new(position))
}

/// Changes one byte of the value under a key, counted from its end.
fn flip(store: &EngineStore, keyspace: Keyspace, key: Vec<u8>, from_end: usize) {
    let mut value = get(store, keyspace, &key);
    let at = value.len() - from_end;
    value[at] ^= 1;
    write(store, |batch| batch.put(keyspace, key, value));
}

/// Damages a log, and looks at what is found.
async fn check(damage: impl FnOnce(&EngineStore), position: u64, expected: DamageKind) {
    let (store, _log) = filled().await;
    damage(&store);
    let report = verify(&store, None, None);
    assert_eq!(report.damage, Some(Damage { position: Position::new(position), kind: expected }));
    assert_eq!(report.events, position - 1);
}

fn last_key(store: &EngineStore, keyspace: Keyspace, prefix: &[u8]) -> Vec<u8> {
    let range = KeyRange::prefix(prefix);
    let page = store.engine().unwrap().view().page(keyspace, &range, Direction::Backward, 1).unwrap();
    page.into_iter().next().unwrap().0
}

#[tokio::test]
async fn damaged_records_are_found_at_the_first_bad_position() {
    check(|store| write(store, |batch| batch.delete(EVENTS, event_key(8))), 8, DamageKind::Missing).await;
    check(|store| flip(store, EVENTS, event_key(8), 40), 8, DamageKind::HashDiffers).await;
    check(|store| flip(store, EVENTS, event_key(8), 1), 8, DamageKind::HashDiffers).await;
    check(|store| flip(store, EVENTS, event_key(9), 60), 9, DamageKind::HashDiffers).await;
    let swap = |store: &EngineStore| {
        let (one, other) = (get(store, EVENTS, &event_key(8)), get(store, EVENTS, &event_key(11)));
        write(store, |batch| {
            batch.put(EVENTS, event_key(8), other);
            batch.put(EVENTS, event_key(11), one);
        });
    };
    check(swap, 8, DamageKind::Displaced { found: Position::new(11) }).await;
    let cut = |store: &EngineStore| write(store, |batch| batch.put(EVENTS, event_key(8), b"\x02\x01short"));
    let reason = "the bytes end within hash".to_owned();
    check(cut, 8, DamageKind::Unreadable { reason }).await;
    // Two flips, and the earlier is named.
    let two = |store: &EngineStore| {
        flip(store, EVENTS, event_key(30), 40);
        flip(store, EVENTS, event_key(20), 40);
    };
    check(two, 20, DamageKind::HashDiffers).await;
}

#[tokio::test]
async fn damaged_commits_are_found() {
    let commit = |position| keys::commit::encode(Position::new(position));
    check(move |store| flip(store, INDEX, commit(7), 20), 7, DamageKind::ChainDiffers).await;
    check(move |store| write(store, |batch| batch.delete(INDEX, commit(7))), 7, DamageKind::CommitMissing)
        .await;
    check(
        move |store| write(store, |batch| batch.delete(INDEX, commit(LAST))),
        LAST,
        DamageKind::Uncommitted,
    )
    .await;
}

#[tokio::test]
async fn damaged_indexes_are_found() {
    let streams = DamageKind::Index { index: Index::Streams };
    let entry = |seq| keys::stream_entry::encode(&sample::thread("t"), Seq::new(seq));
    check(move |store| flip(store, INDEX, entry(3), 1), 7, streams.clone()).await;
    check(move |store| write(store, |batch| batch.delete(INDEX, entry(3))), 7, streams).await;
    let extra = move |store: &EngineStore| {
        write(store, |batch| {
            batch.put(INDEX, entry(99), keys::stream_entry::encode_value(Position::new(1)));
        });
    };
    let (store, _log) = filled().await;
    extra(&store);
    let damage = verify(&store, None, None).damage.unwrap();
    assert_eq!(damage.kind, DamageKind::IndexTooLong { index: Index::Streams });
    let run = keys::run_entry::hash(&sample::thread("u"), &sample::run_id("one"));
    let run = move |seq| keys::run_entry::encode(run, Seq::new(seq));
    // The run is erased; its entries are checked all the same.
    check(move |store| flip(store, INDEX, run(2), 2), 5, DamageKind::Index { index: Index::Runs }).await;
    let task = |store: &EngineStore| {
        let last = last_key(store, TASKS, &keys::task_event::all());
        flip(store, TASKS, last, 50);
    };
    let (store, _log) = filled().await;
    task(&store);
    let damage = verify(&store, None, None).damage.unwrap();
    assert_eq!(damage.kind, DamageKind::Index { index: Index::Tasks });
    let tail = keys::stream::encode(&sample::thread("t"));
    let kind = DamageKind::TailDiffers { stream: sample::thread("t") };
    check(move |store| flip(store, INDEX, tail, 1), LAST - 2, kind).await;
    let (store, _log) = filled().await;
    let last = last_key(&store, INDEX, &keys::idempotency::all());
    let mut value = get(&store, INDEX, &last);
    value[32] = 0xff;
    write(&store, |batch| batch.put(INDEX, last, value));
    let damage = verify(&store, None, None).damage.unwrap();
    assert_eq!(damage.kind, DamageKind::IndexTooLong { index: Index::Keys });
}

// Field report 103: two writers that read the same last hash forked the chain of another system.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_writers_leave_one_chain() {
    let log = sample::memory_log();
    let writers: Vec<_> = (0..20)
        .map(|writer| {
            let log = log.clone();
            tokio::spawn(async move {
                for number in 0..20 {
                    let stream = sample::thread(if number % 2 == 0 { "shared" } else { "other" });
                    sample::add(&log, &stream, [writer, number]).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let report = log.verify(VerifyRequest::default()).unwrap();
    assert_eq!((report.damage, report.events, report.streams), (None, 800, 2));
}

// Field report 103: cutting off the newest rows is noticed against an exported head.
#[tokio::test]
async fn a_removed_tail_is_noticed_against_what_was_written_down() {
    let (store, log) = filled().await;
    let (exported, noted) = (log.exported_head().unwrap(), store.head().unwrap());
    drop(log);
    let text = serde_json::to_string(&exported).unwrap();
    assert_eq!(serde_json::from_str::<ExportedHead>(&text).unwrap(), exported);
    let other = ExportedHead { chain: [7; 32], position: Position::new(20) };
    let damage = |noted, exported| {
        verify(&store, noted, exported).damage.map(|damage| (damage.position.get(), damage.kind))
    };
    assert_eq!(damage(None, Some(other)), Some((20, DamageKind::ExportDiffers)));
    let noted_otherwise = Head { chain: [7; 32], ..noted };
    assert_eq!(damage(Some(noted_otherwise), None), Some((LAST, DamageKind::HeadDiffers)));
    write(&store, |batch| {
        for position in LAST - 9..=LAST {
            batch.delete(EVENTS, event_key(position));
            batch.delete(INDEX, keys::commit::encode(Position::new(position)));
        }
    });
    let last = Position::new(LAST);
    assert_eq!(damage(None, Some(exported)), Some((LAST - 9, DamageKind::TailRemoved { exported: last })));
    assert_eq!(damage(Some(noted), None), Some((LAST - 9, DamageKind::HeadBehind { noted: last })));
}

#[tokio::test]
async fn a_lost_key_is_found() {
    let (store, _log) = filled().await;
    let others = EngineStore::new(store.engine().unwrap().clone(), Arc::new(Keyring::in_memory().unwrap()));
    let damage = verify(&others, None, None).damage.unwrap();
    assert_eq!((damage.position, damage.kind), (Position::new(1), DamageKind::KeyLost));
}

#[tokio::test]
async fn the_end_of_a_log_is_checked_without_the_rest() {
    let (store, _log) = filled().await;
    let recent = |store: &EngineStore| {
        check_recent(store.engine().unwrap(), store.head().unwrap()).unwrap().map(|damage| damage.kind)
    };
    assert_eq!(recent(&store), None);
    assert_eq!(recent(&EngineStore::in_memory()), None);
    flip(&store, INDEX, keys::stream::encode(&sample::thread("u")), 48);
    assert_eq!(recent(&store), Some(DamageKind::TailDiffers { stream: sample::thread("u") }));
    let (store, log) = filled().await;
    for number in 0..80 {
        sample::add(&log, &sample::thread("t"), [number]).await.unwrap();
    }
    flip(&store, EVENTS, event_key(LAST), 40);
    assert_eq!(recent(&store), None, "too far back to be looked at");
    flip(&store, EVENTS, event_key(LAST + 70), 40);
    assert_eq!(recent(&store), Some(DamageKind::HashDiffers));
    assert_eq!(chain::START, [0; 32]);
}
