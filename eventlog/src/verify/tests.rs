//! What verification finds: every kind of damage by its name and its first position, and nothing
//! in a log that is whole.

use std::sync::Arc;

use domain::ids::ThreadId;

use super::*;
use crate::{
    Append, EventLog, Expected, Scope,
    engine::{Batch, Direction, Durability, KeyRange, Keyspace},
    keys::{self, INDEX, TASKS},
    sample,
    segment::frame::{self, HEADER_BYTES, Header},
    store::{LogStore, SegmentStore},
};

const EVENTS_PER_STREAM: u64 = 12;

/// A log of two threads and the registry, with runs, tasks, keys and an erased run.
async fn filled() -> (Arc<SegmentStore>, EventLog) {
    let store = Arc::new(SegmentStore::in_memory());
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
    store.index().flush().unwrap();
    (store, log)
}

const LAST: u64 = EVENTS_PER_STREAM * 3;

fn verify_up_to(
    store: &SegmentStore,
    head: Head,
    noted: Option<Head>,
    exported: Option<ExportedHead>,
) -> Report {
    let subject = Subject {
        segments: store.segments(),
        keyring: Some(store.keyring_ref()),
        index: Some((store.index(), store.index().checkpoint())),
        head,
        noted,
    };
    walk::walk(&subject, VerifyRequest { exported, progress: None }).unwrap()
}

fn verify(store: &SegmentStore, noted: Option<Head>, exported: Option<ExportedHead>) -> Report {
    verify_up_to(store, store.head().unwrap(), noted, exported)
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
    assert!(verify(&SegmentStore::in_memory(), None, None).is_whole());
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

fn write(store: &SegmentStore, change: impl FnOnce(&mut Batch)) {
    let mut batch = Batch::new();
    change(&mut batch);
    store.index().engine().commit(batch, Durability::Synced).unwrap();
}

fn get(store: &SegmentStore, keyspace: Keyspace, key: &[u8]) -> Vec<u8> {
    store.index().engine().get(keyspace, key).unwrap().unwrap()
}

/// Changes one byte of an event's record, counted from its end.
fn flip_record(store: &SegmentStore, position: u64, from_end: usize) {
    store.change_record(position, |record| {
        let at = record.len() - from_end;
        record[at] ^= 1;
    });
}

/// Changes the frame that holds a position.
fn change_frame(store: &SegmentStore, position: u64, change: impl FnOnce(&mut [u8])) {
    let address = store.index().locate(Position::new(position)).unwrap().unwrap().address;
    store.segments().change(|bytes| {
        let start = address as usize;
        let header = Header::decode(&bytes[start..], address).unwrap();
        change(&mut bytes[start..start + header.frame_bytes() as usize]);
    });
}

/// Changes one byte of the value under a key, counted from its end.
fn flip(store: &SegmentStore, keyspace: Keyspace, key: Vec<u8>, from_end: usize) {
    let mut value = get(store, keyspace, &key);
    let at = value.len() - from_end;
    value[at] ^= 1;
    write(store, |batch| batch.put(keyspace, key, value));
}

/// Damages a log, and looks at what is found.
async fn check(damage: impl FnOnce(&SegmentStore), position: u64, expected: DamageKind) {
    let (store, _log) = filled().await;
    damage(&store);
    let report = verify(&store, None, None);
    assert_eq!(report.damage, Some(Damage { position: Position::new(position), kind: expected }));
    assert_eq!(report.events, position - 1);
}

fn last_key(store: &SegmentStore, keyspace: Keyspace, prefix: &[u8]) -> Vec<u8> {
    let range = KeyRange::prefix(prefix);
    let page = store.index().engine().view().page(keyspace, &range, Direction::Backward, 1).unwrap();
    page.into_iter().next().unwrap().0
}

#[tokio::test]
async fn damaged_records_are_found_at_the_first_bad_position() {
    check(|store| change_frame(store, 8, |frame| frame.fill(0)), 8, DamageKind::Missing).await;
    check(|store| flip_record(store, 8, 40), 8, DamageKind::HashDiffers).await;
    check(|store| flip_record(store, 8, 1), 8, DamageKind::HashDiffers).await;
    check(|store| flip_record(store, 9, 60), 9, DamageKind::HashDiffers).await;
    let swap = |store: &SegmentStore| {
        let mut other = Vec::new();
        store.change_record(14, |record| other = record.to_vec());
        store.change_record(8, |record| record.copy_from_slice(&other));
    };
    check(swap, 8, DamageKind::Displaced { found: Position::new(14) }).await;
    let reason = "record version 9 is not known; this program reads up to version 2".to_owned();
    check(|store| store.change_record(8, |record| record[0] = 9), 8, DamageKind::Unreadable { reason }).await;
    // Two flips, and the earlier is named.
    let two = |store: &SegmentStore| {
        flip_record(store, 30, 40);
        flip_record(store, 20, 40);
    };
    check(two, 20, DamageKind::HashDiffers).await;
}

#[tokio::test]
async fn damaged_frames_are_found() {
    // By accident: the checksum says so.
    let (store, _log) = filled().await;
    change_frame(&store, 8, |frame| frame[HEADER_BYTES + 20] ^= 1);
    let damage = verify(&store, None, None).damage.unwrap();
    assert_eq!(damage.position, Position::new(8));
    assert!(damage.to_string().contains("the checksum of the frame differs"), "{damage}");
    // On purpose: the chain does.
    let chain = |store: &SegmentStore| {
        change_frame(store, 7, |frame| {
            frame[60] ^= 1;
            frame::reseal(frame);
        });
    };
    check(chain, 7, DamageKind::ChainDiffers).await;
}

#[tokio::test]
async fn damaged_indexes_are_found() {
    let streams = DamageKind::Index { index: Index::Streams };
    let entry =
        |seq| keys::stream_place::encode(keys::stream_entry::hash(&sample::thread("t")), Seq::new(seq));
    check(move |store| flip(store, INDEX, entry(3), 1), 7, streams.clone()).await;
    check(move |store| write(store, |batch| batch.delete(INDEX, entry(3))), 7, streams).await;
    let (store, _log) = filled().await;
    let extra = get(&store, INDEX, &entry(1));
    write(&store, |batch| batch.put(INDEX, entry(99), extra));
    let damage = verify(&store, None, None).damage.unwrap();
    assert_eq!(damage.kind, DamageKind::IndexTooLong { index: Index::Streams });
    let run = keys::run_entry::hash(&sample::thread("u"), &sample::run_id("one"));
    let run = move |seq| keys::run_place::encode(run, Seq::new(seq));
    // The run is erased; its entries are checked all the same.
    check(move |store| flip(store, INDEX, run(2), 2), 5, DamageKind::Index { index: Index::Runs }).await;
    let (store, _log) = filled().await;
    flip(&store, TASKS, last_key(&store, TASKS, &keys::task_event::all()), 50);
    let damage = verify(&store, None, None).damage.unwrap();
    assert_eq!(damage.kind, DamageKind::Index { index: Index::Tasks });
    let tail = keys::stream::encode(&sample::thread("t"));
    let kind = DamageKind::TailDiffers { stream: sample::thread("t") };
    check(move |store| flip(store, INDEX, tail, 9), LAST - 2, kind).await;
    let (store, _log) = filled().await;
    flip(&store, INDEX, last_key(&store, INDEX, &keys::idempotency::all()), 20);
    let damage = verify(&store, None, None).damage.unwrap();
    assert_eq!(damage.kind, DamageKind::Index { index: Index::Keys });
    let commit = keys::commit_place::encode(Position::new(7));
    let commits = DamageKind::Index { index: Index::Commits };
    check(move |store| write(store, |batch| batch.delete(INDEX, commit)), 7, commits).await;
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
    // The head file may have been written anew with the record: what an auditor has counts beside it.
    let exported_otherwise = ExportedHead { chain: [7; 32], position: noted.position };
    assert_eq!(damage(Some(noted), Some(exported_otherwise)), Some((LAST, DamageKind::ExportDiffers)));
    assert_eq!(damage(Some(noted), Some(exported)), None);
    let noted_otherwise = Head { chain: [7; 32], ..noted };
    assert_eq!(damage(Some(noted_otherwise), None), Some((LAST, DamageKind::HeadDiffers)));
    let before = store.index().commit_at(Position::new(LAST - 10)).unwrap().unwrap();
    let short = Head { position: before.last, chain: before.chain };
    let damage = |noted, exported| {
        let report = verify_up_to(&store, short, noted, exported);
        report.damage.map(|damage| (damage.position.get(), damage.kind))
    };
    let last = Position::new(LAST);
    assert_eq!(damage(None, Some(exported)), Some((LAST - 9, DamageKind::TailRemoved { exported: last })));
    assert_eq!(damage(Some(noted), None), Some((LAST - 9, DamageKind::HeadBehind { noted: last })));
}

#[tokio::test]
async fn a_lost_key_is_found() {
    let (store, _log) = filled().await;
    let keyring = Keyring::in_memory().unwrap();
    let subject = Subject {
        segments: store.segments(),
        keyring: Some(&keyring),
        index: None,
        head: store.head().unwrap(),
        noted: None,
    };
    let damage = walk::walk(&subject, VerifyRequest::default()).unwrap().damage.unwrap();
    assert_eq!((damage.position, damage.kind), (Position::new(1), DamageKind::KeyLost));
}

#[tokio::test]
async fn an_index_that_cannot_be_used_is_named_and_the_events_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    sample::add(&log, &sample::thread("t"), 1..=9).await.unwrap();
    log.close().await;
    std::fs::write(folder.path().join("log/index/version"), "no index").unwrap();
    let verify = || verify_folder(folder.path(), &sample::options(), VerifyRequest::default()).unwrap();
    let report = verify();
    assert!(matches!(report.damage.unwrap().kind, DamageKind::IndexUnusable { .. }));
    assert_eq!((report.events, report.commits), (9, 1));
    EventLog::open(folder.path(), sample::options()).unwrap().close().await;
    assert!(verify().is_whole());
}
