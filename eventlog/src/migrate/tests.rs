//! Folders of earlier versions, written by the programs of that time (`format2`) or as they wrote
//! them, become folders of this version: the same events and hashes, wherever a crash comes.

use domain::ids::ThreadId;

use super::*;
use crate::{
    Append, EraseError, EventFilter, EventLog, Expected, RecordedEvent, Seal, Seq, StreamId, chain,
    codec::record,
    engine::{Batch, Durability, Engine},
    keys::{self, EVENTS, INDEX, KEYSPACES},
    recorded::Place,
    sample,
    store::Commit,
    verify_folder, verify_stream,
};

/// The head that the program of that time printed.
const HEAD: &str =
    r#"{"position":8,"chain":"47c9be8b5d14153c40b5d913a282c0e7d8f9178d65aeb1c686f5bd623b5b45ec"}"#;

/// A folder that version 2 wrote: eight events in six commits, of three threads and the registry, with
/// a run that was erased and three idempotency keys.
fn folder_of_version_2() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/migrate/format2");
    copying::copy_folder(&from, folder.path()).unwrap();
    // Folders without files are not kept beside source.
    for number in 0..4 {
        fs::create_dir_all(folder.path().join(format!("log/keyspaces/{number}/tables"))).unwrap();
    }
    folder
}

fn open(folder: &Path) -> Result<EventLog, OpenError> {
    EventLog::open(folder, sample::options())
}

/// Whether the log is the one of the fixture, with its index, and goes on.
async fn check(folder: &Path) {
    let log = open(folder).unwrap();
    assert_eq!(serde_json::to_string(&log.exported_head().unwrap()).unwrap(), HEAD);
    let events = log.read_all(Position::ZERO, 99).unwrap();
    let contents: Vec<_> = events.iter().map(|event| event.content.get()).collect();
    assert_eq!(contents, ["1", "2", "3", "4", "null", "null", "7", "8"]);
    assert_eq!(events.iter().filter(|event| event.is_erased()).count(), 2);
    let report = log.verify(VerifyRequest::default()).unwrap();
    assert_eq!((report.damage, report.commits, report.streams), (None, 6, 4));
    let filter = EventFilter { task_id: Some(sample::task_id("c")), ..EventFilter::default() };
    let thread = |name: &str| ThreadId::new(name).unwrap();
    let page = log.read_run(&thread("u"), &sample::run_id("r"), &filter, Seq::ZERO, 9).unwrap();
    assert_eq!(page.len(), 1);
    // An idempotency key of that time is known.
    let mut event = sample::note(1);
    (event.category, event.created_at) = ("test".to_owned(), jiff::Timestamp::UNIX_EPOCH);
    let again = Append {
        idempotency_key: sample::key("first"),
        ..sample::to(&sample::thread("t"), Expected::Any, vec![event])
    };
    let again = log.append(again).await.unwrap();
    assert!(again.is_repeat && again.position() == Position::new(1));
    assert_eq!(sample::add(&log, &sample::thread("t"), [9]).await.unwrap().seq(), Seq::new(5));
    log.close().await;
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().all(|name| !name.starts_with("log.")), "nothing is left over");
}

#[tokio::test]
async fn a_log_of_version_2_opens_with_the_same_events_and_hashes() {
    let folder = folder_of_version_2();
    let looked = verify_folder(folder.path(), &sample::options(), VerifyRequest::default());
    assert!(matches!(looked, Err(VerifyError::Open(OpenError::OldFormat { .. }))));
    assert!(matches!(crate::inspect(folder.path(), &sample::options()), Err(OpenError::OldFormat { .. })));
    check(folder.path()).await;
}

/// The states that a crash can leave between any two steps.
#[tokio::test]
async fn a_crash_at_any_step_loses_nothing() {
    let new = tempfile::tempdir().unwrap();
    let made = {
        let copy = new.path().join("copy");
        copying::copy_folder(&folder_of_version_2().path().join("log"), &copy).unwrap();
        let made = new.path().join("made");
        make(&OldLog::open(&copy).unwrap(), &made, &|_| {}).unwrap();
        made
    };
    let cases: [&dyn Fn(&Places); 6] = [
        &|places| copying::copy_folder(&places.log, &places.migrating.join("old")).unwrap(),
        &|places| fs::create_dir_all(places.migrating.join("new/segments")).unwrap(),
        &|places| copying::copy_folder(&made, &places.migrated).unwrap(),
        &|places| {
            copying::copy_folder(&made, &places.migrated).unwrap();
            fs::rename(&places.log, &places.old).unwrap();
        },
        &|places| {
            fs::rename(&places.log, &places.old).unwrap();
            copying::copy_folder(&made, &places.log).unwrap();
        },
        &|places| {
            fs::rename(&places.log, &places.old).unwrap();
            copying::copy_folder(&made, &places.log).unwrap();
            fs::remove_file(places.old.join("version")).unwrap();
        },
    ];
    for leave in cases {
        let folder = folder_of_version_2();
        leave(&Places::of(folder.path()));
        check(folder.path()).await;
    }
}

#[tokio::test]
async fn an_old_log_that_lost_its_end_is_refused_and_left_as_it_is() {
    let folder = folder_of_version_2();
    let journal = folder.path().join("log/0.jnl");
    let bytes = fs::read(&journal).unwrap();
    fs::write(&journal, &bytes[..bytes.len() - 40]).unwrap();
    for _ in 0..2 {
        let error = open(folder.path()).err().unwrap();
        assert!(matches!(error, OpenError::HeadBehind { log, .. } if log == Position::new(7)), "{error}");
    }
    assert_eq!(fs::read(&journal).unwrap(), bytes[..bytes.len() - 40]);
    fs::write(&journal, &bytes).unwrap();
    check(folder.path()).await;
}

/// A record that was changed is found before anything is swapped.
#[tokio::test]
async fn a_damaged_old_log_is_refused() {
    let folder = folder_of_version_2();
    let engine = Engine::open(&folder.path().join("log"), &KEYSPACES).unwrap();
    let key = keys::event::encode(Position::new(3));
    let mut record = engine.get(EVENTS, &key).unwrap().unwrap();
    record[30] ^= 1;
    let mut batch = Batch::new();
    batch.put(EVENTS, key, record);
    engine.commit(batch, Durability::Synced).unwrap();
    drop(engine);
    let error = open(folder.path()).err().unwrap();
    assert!(matches!(&error, OpenError::Migration { .. }) && crate::is_damage(&error), "{error}");
    assert!(folder.path().join("log/version").exists() && !folder.path().join("log/segments").exists());
}

/// A folder as the first format left it: everything in plain, and no keys.
fn folder_of_version_1() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(&folder.path().join("log"), &KEYSPACES).unwrap();
    let (mut hash, mut log_chain, mut batch) = (chain::START, chain::START, Batch::new());
    for number in 1..=10 {
        let place = Place {
            position: Position::new(number),
            stream: sample::thread("t"),
            seq: Seq::new(number),
            recorded_at: sample::time(),
        };
        let mut event = sample::note(number);
        event.scope.run_id = Some(sample::run_id("r"));
        let mut record = record::encode(&RecordedEvent::new(event, place)).unwrap();
        hash = chain::event_hash(&hash, &record);
        log_chain = chain::log_chain(&log_chain, &hash);
        record.extend_from_slice(&hash);
        batch.put(EVENTS, keys::event::encode(Position::new(number)), record);
    }
    let last = Position::new(10);
    let commit = Commit { first: Position::new(1), last, chain: log_chain, committed_at: sample::time() };
    let value = keys::commit_place::encode_value(&commit, 0);
    batch.put(INDEX, keys::commit::encode(last), &value[8..]);
    batch.put(INDEX, keys::meta::format_version(), 1_u32.to_be_bytes());
    engine.commit(batch, Durability::Synced).unwrap();
    folder
}

#[tokio::test]
async fn a_log_of_the_first_format_opens_and_goes_on_sealed() {
    let folder = folder_of_version_1();
    let log = open(folder.path()).unwrap();
    let stream = StreamId::Thread(ThreadId::new("t").unwrap());
    let read = |log: &EventLog| log.read_stream(&stream, Seq::ZERO, 100).unwrap();
    assert_eq!(read(&log).len(), 10);
    let thread_id = ThreadId::new("t").unwrap();
    let mut event = sample::note(11);
    event.scope.run_id = Some(sample::run_id("r"));
    log.append(sample::to(&stream, Expected::Exact(Seq::new(10)), vec![event])).await.unwrap();
    let events = read(&log);
    verify_stream(chain::START, &events).unwrap();
    let in_plain: Vec<_> = events.iter().filter(|event| event.seal == Seal::None).collect();
    assert_eq!((events.len(), in_plain.len()), (11, 10));
    let filter = EventFilter { event_types: Some(vec!["note".to_owned()]), ..EventFilter::default() };
    let run = log.read_run(&thread_id, &sample::run_id("r"), &filter, Seq::ZERO, 100).unwrap();
    assert_eq!(run.len(), 11);
    // What is in plain cannot be forgotten by destroying a key, so nobody is told that it was.
    let refused = log.destroy_thread_key(&thread_id).await.unwrap_err();
    assert!(matches!(refused, EraseError::InPlain { .. }), "{refused}");
    log.close().await;
    assert_eq!(read(&open(folder.path()).unwrap()), events);
}

#[test]
fn whoever_opens_is_told_of_it() {
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (folder, tell) = (folder_of_version_2(), std::sync::Arc::clone(&told));
    let on_migrating: crate::OnMigrating =
        std::sync::Arc::new(move |progress: Progress| tell.lock().unwrap().push(progress));
    let options = Options { on_migrating: Some(on_migrating), ..sample::options() };
    for _ in 0..2 {
        drop(EventLog::open(folder.path(), options.clone()).unwrap());
    }
    let (told, head) = (told.lock().unwrap(), Position::new(8));
    let positions: Vec<u64> = told.iter().map(|one| one.position.get()).collect();
    assert!(told.iter().all(|one| one.head == head) && positions.is_sorted(), "{told:?}");
    assert_eq!((positions.len(), positions[0], positions[6]), (7, 0, 8), "once, and of each commit");
}
