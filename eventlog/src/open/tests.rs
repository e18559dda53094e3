//! Folders: opened again, held, damaged, and from the future.

use std::{fs, path::Path, sync::Arc};

use domain::ids::ThreadId;

use super::*;
use crate::{
    AppendError, EraseError, EventFilter, EventLog, Expected, Health, MasterKey, Options, RecordedEvent,
    Seal, SecretKey, Seq, StreamId, VerifyRequest, chain,
    codec::record,
    recorded::Place,
    sample,
    store::{Commit, CommitGroup, FaultyStore, StoredEvent, Tail},
    verify_stream,
};

fn open_log(folder: &Path) -> Result<EventLog, OpenError> {
    EventLog::open(folder, sample::options())
}

/// A folder whose log holds ten events, one commit each, closed.
async fn filled() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).unwrap();
    for number in 1..=10 {
        sample::add(&log, &sample::thread("t"), [number]).await.unwrap();
    }
    log.close().await;
    folder
}

#[track_caller]
fn check_ten(log: &EventLog) {
    let events = log.read_stream(&sample::thread("t"), Seq::ZERO, 100).unwrap();
    let contents: Vec<_> = events.iter().map(|event| event.content.get().parse::<u64>().unwrap()).collect();
    assert_eq!(contents, (1..=10).collect::<Vec<_>>());
    assert_eq!(log.head(), Position::new(10));
    verify_stream(chain::START, &events).unwrap();
}

#[tokio::test]
async fn a_closed_log_opens_again_and_goes_on() {
    let folder = filled().await;
    let log = open_log(folder.path()).unwrap();
    check_ten(&log);
    let appended = sample::add(&log, &sample::thread("t"), [11]).await.unwrap();
    assert_eq!((appended.position(), appended.seq()), (Position::new(11), Seq::new(11)));
}

#[tokio::test]
async fn a_dropped_log_has_released_its_folder() {
    let folder = filled().await;
    let log = open_log(folder.path()).unwrap();
    sample::add(&log, &sample::thread("u"), [1]).await.unwrap();
    drop(log);
    let log = open_log(folder.path()).unwrap();
    assert_eq!(log.head(), Position::new(11));
    assert_eq!(log.stream_tail(&sample::thread("u")).unwrap(), Some(Seq::new(1)));
}

#[tokio::test]
async fn other_clones_of_a_closed_log_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).unwrap();
    let other = log.clone();
    log.close().await;
    assert_eq!(other.health(), Health::Closed);
    let refused = sample::add(&other, &sample::thread("t"), [1]).await;
    assert!(matches!(refused, Err(AppendError::Closed)), "{refused:?}");
    assert!(matches!(other.read_all(Position::ZERO, 1), Err(crate::ReadError::Closed)));
    open_log(folder.path()).unwrap();
}

// Field report: the last event is large, the log is opened again, and the next append must get
// the next seq.
#[tokio::test]
async fn a_large_last_event_does_not_disturb_the_count() {
    let folder = tempfile::tempdir().unwrap();
    let stream = sample::thread("t");
    let log = open_log(folder.path()).unwrap();
    let mut large = sample::note(1);
    large.content = crate::Json::from_serialize(&"漢".repeat(1_000_000)).unwrap();
    log.append(sample::to(&stream, crate::Expected::NoStream, vec![large])).await.unwrap();
    log.close().await;
    let log = open_log(folder.path()).unwrap();
    assert_eq!(sample::add(&log, &stream, [2]).await.unwrap().seq(), Seq::new(2));
    let events = log.read_stream(&stream, Seq::ZERO, 10).unwrap();
    assert_eq!(events[0].content.get().len(), 3_000_002);
    verify_stream(chain::START, &events).unwrap();
}

#[tokio::test]
async fn a_second_opener_is_told_who_holds_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).unwrap();
    let text = open_log(folder.path()).err().unwrap().to_string();
    let process = format!("is held by process {} (`", std::process::id());
    assert!(text.contains(&process) && text.contains("since 2026-01-02T03:04:05"), "{text}");
    assert!(text.ends_with("stop it, or pass --server URL to speak to it if it is a server"), "{text}");
    log.announce("http://127.0.0.1:8700").unwrap();
    let error = open_log(folder.path()).err().unwrap();
    assert!(error.to_string().ends_with("stop it, or pass --server http://127.0.0.1:8700 to speak to it"));
    assert!(matches!(error, OpenError::Held { pid, .. } if pid == std::process::id()));
}

#[tokio::test]
async fn a_log_from_a_later_version_is_refused_by_its_number() {
    let folder = filled().await;
    let engine = Engine::open(&folder.path().join(ENGINE_FOLDER), &keys::KEYSPACES).unwrap();
    assert_eq!(format::check(&engine).unwrap(), Some(2));
    format::write(&engine, 3).unwrap();
    drop(engine);
    let error = open_log(folder.path()).err().unwrap();
    let OpenError::Format { source, .. } = error else { panic!("{error}") };
    let text = source.to_string();
    assert!(
        text.starts_with("the log has format version 3, and this program knows versions up to 2"),
        "{text}"
    );
}

/// A folder as the first format left it: everything in plain, and no keys.
fn folder_of_version_1() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(&folder.path().join(ENGINE_FOLDER), &keys::KEYSPACES).unwrap();
    format::write(&engine, 1).unwrap();
    let store = sample::store(engine);
    let (mut hash, mut log_chain, mut events) = (chain::START, chain::START, Vec::new());
    for number in 1..=10 {
        let place = Place {
            position: Position::new(number),
            stream: sample::thread("t"),
            seq: Seq::new(number),
            recorded_at: sample::time(),
        };
        let mut event = sample::note(number);
        event.scope.run_id = Some(sample::run_id("r"));
        let mut event = RecordedEvent::new(event, place);
        let mut record = record::encode(&event).unwrap();
        hash = chain::event_hash(&hash, &record);
        log_chain = chain::log_chain(&log_chain, &hash);
        record.extend_from_slice(&hash);
        event.hash = hash;
        events.push(StoredEvent { hashes: event.hashes(), event: Arc::new(event), record });
    }
    let (first, last) = (Position::new(1), Position::new(10));
    let commit = Commit { first, last, chain: log_chain, committed_at: sample::time() };
    let tails = vec![(sample::thread("t"), Tail { seq: Seq::new(10), hash, position: last })];
    store.commit(CommitGroup { commit, events, tails, keys: Vec::new() }).unwrap();
    folder
}

#[tokio::test]
async fn a_log_of_the_first_format_opens_and_goes_on_sealed() {
    let folder = folder_of_version_1();
    let log = open_log(folder.path()).unwrap();
    check_ten(&log);
    let thread_id = ThreadId::new("t").unwrap();
    let mut event = sample::note(11);
    event.scope.run_id = Some(sample::run_id("r"));
    log.append(sample::to(&sample::thread("t"), Expected::Exact(Seq::new(10)), vec![event])).await.unwrap();
    let events = log.read_stream(&sample::thread("t"), Seq::ZERO, 100).unwrap();
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
    let log = open_log(folder.path()).unwrap();
    assert_eq!(log.read_stream(&sample::thread("t"), Seq::ZERO, 100).unwrap(), events);
}

#[tokio::test]
async fn a_log_without_its_keys_is_refused() {
    let folder = filled().await;
    let path = folder.path().join(KEYS_FOLDER).join("threads");
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(matches!(open_log(folder.path()), Err(OpenError::KeysLost { .. })));
    fs::write(&path, &bytes).unwrap();
    let given =
        Options { master_key: MasterKey::given(SecretKey::new([1; 32]), "a test"), ..sample::options() };
    assert!(matches!(EventLog::open(folder.path(), given), Err(OpenError::MasterKeyWrong { .. })));
    check_ten(&open_log(folder.path()).unwrap());
    // One key that is damaged: its events are not there for anybody, and no new key hides it.
    let mut damaged = bytes;
    damaged[130] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let log = open_log(folder.path()).unwrap();
    assert!(log.read_stream(&sample::thread("t"), Seq::ZERO, 100).is_err());
    let refused = sample::add(&log, &sample::thread("t"), [11]).await.unwrap_err();
    assert!(matches!(refused, AppendError::Storage { .. }), "{refused}");
    sample::add(&log, &sample::thread("u"), [1]).await.unwrap();
}

/// The newest journal of the engine.
fn journal(folder: &Path) -> PathBuf {
    let entries = fs::read_dir(folder.join(ENGINE_FOLDER)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "jnl")).max().unwrap()
}

#[tokio::test]
async fn a_log_whose_journal_was_cut_is_refused() {
    let folder = filled().await;
    let path = journal(folder.path());
    let bytes = fs::read(&path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    // Less than a commit is cut off, so the engine drops the last one and says nothing.
    fs::write(&path, &bytes[..end - 40]).unwrap();
    let error = open_log(folder.path()).err().unwrap();
    let OpenError::HeadBehind { log, noted, .. } = &error else { panic!("{error}") };
    assert_eq!((*log, *noted), (Position::new(9), Position::new(10)));
    let text = error.to_string();
    assert!(text.contains("ends at position 9, but had durably reached position 10"), "{text}");
    // It stays refused, and the lock is free again.
    assert!(matches!(open_log(folder.path()), Err(OpenError::HeadBehind { .. })));
}

// Field report 39: a torn last entry made the next number 1 in another system.
#[tokio::test]
async fn a_torn_end_that_was_never_acknowledged_is_dropped_and_the_count_goes_on() {
    let folder = filled().await;
    let (head, journal) = (folder.path().join(WATERMARK_FILE), journal(folder.path()));
    let noted = fs::read(&head).unwrap();
    let log = open_log(folder.path()).unwrap();
    sample::add(&log, &sample::thread("t"), [11]).await.unwrap();
    log.close().await;
    // As the power leaves it when it goes during the eleventh commit.
    fs::write(&head, noted).unwrap();
    let bytes = fs::read(&journal).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    fs::write(&journal, &bytes[..end - 7]).unwrap();
    let log = open_log(folder.path()).unwrap();
    check_ten(&log);
    let appended = sample::add(&log, &sample::thread("t"), [12]).await.unwrap();
    assert_eq!((appended.position(), appended.seq()), (Position::new(11), Seq::new(11)));
    assert_eq!(log.verify(VerifyRequest::default()).unwrap().damage, None);
}

/// The note of a head may be lost with the power; the log then is ahead of it, which is no harm.
#[tokio::test]
async fn a_log_that_is_ahead_of_its_noted_head_opens() {
    let folder = filled().await;
    let path = folder.path().join(WATERMARK_FILE);
    let earlier = fs::read(&path).unwrap();
    let log = open_log(folder.path()).unwrap();
    sample::add(&log, &sample::thread("u"), 1..=5).await.unwrap();
    log.close().await;
    fs::write(&path, earlier).unwrap();
    assert_eq!(open_log(folder.path()).unwrap().head(), Position::new(15));
}

#[tokio::test]
async fn what_was_answered_before_a_close_is_there_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path()).unwrap();
    let writers: Vec<_> = (0..50)
        .map(|number| {
            let log = log.clone();
            tokio::spawn(async move { sample::add(&log, &sample::thread("t"), [number]).await })
        })
        .collect();
    tokio::task::yield_now().await;
    sample::soon("the close", log.close()).await;
    let mut taken = 0;
    for writer in writers {
        match writer.await.unwrap() {
            Ok(_) => taken += 1,
            Err(error) => assert!(matches!(error, AppendError::Closed), "{error}"),
        }
    }
    assert_eq!(open_log(folder.path()).unwrap().head(), Position::new(taken));
    assert!(taken > 0);
}

#[tokio::test]
async fn another_log_in_its_place_is_refused() {
    let (folder, other) = (filled().await, tempfile::tempdir().unwrap());
    let log = open_log(other.path()).unwrap();
    sample::add(&log, &sample::thread("other"), 1..=20).await.unwrap();
    log.close().await;
    fs::copy(folder.path().join(WATERMARK_FILE), other.path().join(WATERMARK_FILE)).unwrap();
    let error = open_log(other.path()).err().unwrap();
    assert!(matches!(error, OpenError::HeadDiffers { noted, .. } if noted == Position::new(10)), "{error}");
}

#[tokio::test]
async fn a_damaged_head_file_is_refused_and_a_missing_one_is_made() {
    let folder = filled().await;
    let path = folder.path().join(WATERMARK_FILE);
    fs::write(&path, [1; 1_024]).unwrap();
    assert!(matches!(open_log(folder.path()), Err(OpenError::WatermarkDamaged { .. })));
    fs::remove_file(&path).unwrap();
    check_ten(&open_log(folder.path()).unwrap());
    assert_eq!(Watermark::open(&path).unwrap().1, Noted::Head(head_of(folder.path())));
}

fn head_of(folder: &Path) -> Head {
    let engine = Engine::open(&folder.join(ENGINE_FOLDER), &keys::KEYSPACES).unwrap();
    sample::store(engine).head().unwrap()
}

#[tokio::test]
async fn after_a_failed_commit_everybody_is_refused() {
    let inner = Arc::new(EngineStore::in_memory());
    let store = Arc::new(FaultyStore::new(inner.clone()));
    let log = EventLog::with_store(store.clone(), sample::options()).unwrap();
    let stream = sample::thread("t");
    sample::add(&log, &stream, [1]).await.unwrap();
    store.fail_after(0);
    for _ in 0..2 {
        let refused = sample::add(&log, &stream, [2]).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the log refuses writes since one failed (a commit failed: injected fault); restart to recover"
        );
        // A fault that goes away changes nothing: only a restart does.
        store.fail_after(u64::MAX);
    }
    assert!(log.is_poisoned());
    let ended = sample::soon("the end", log.ended()).await;
    assert!(matches!(ended, Health::Poisoned { reason } if &*reason == "a commit failed: injected fault"));
    assert_eq!(log.head(), Position::new(1));
    assert_eq!(log.read_all(Position::ZERO, 10).unwrap().len(), 1);
    let restarted = EventLog::with_store(inner, sample::options()).unwrap();
    assert_eq!(sample::add(&restarted, &stream, [2]).await.unwrap().seq(), Seq::new(2));
}

#[tokio::test]
async fn a_writer_that_stops_by_a_defect_poisons_the_log() {
    let options = Options::new(Arc::new(|| panic!("a clock without time")));
    let log = EventLog::in_memory(options);
    for _ in 0..2 {
        let refused = sample::soon("the answer", sample::add(&log, &sample::thread("t"), [1])).await;
        assert!(matches!(refused, Err(AppendError::Poisoned { .. })), "{refused:?}");
    }
    assert!(matches!(sample::soon("the end", log.ended()).await, Health::Poisoned { .. }));
}

#[tokio::test]
async fn the_chain_of_the_log_does_not_depend_on_who_shared_a_commit() {
    let chain_after = |groups: Vec<Vec<u64>>| async move {
        let store = Arc::new(EngineStore::in_memory());
        let log = EventLog::with_store(store.clone(), sample::options()).unwrap();
        for numbers in groups {
            sample::add(&log, &StreamId::Registry, numbers).await.unwrap();
        }
        store.head().unwrap().chain
    };
    let together = chain_after(vec![vec![1, 2, 3, 4]]).await;
    assert_eq!(chain_after(vec![vec![1], vec![2, 3], vec![4]]).await, together);
    assert_ne!(chain_after(vec![vec![1], vec![3, 2], vec![4]]).await, together);
}

#[tokio::test]
async fn half_a_master_key_that_a_crash_left_hinders_no_start() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join(KEYS_FOLDER);
    fs::create_dir_all(&keys).unwrap();
    fs::write(keys.join("master.new"), "0123").unwrap();
    let log = open_log(folder.path()).unwrap();
    sample::add(&log, &sample::thread("t"), [1]).await.unwrap();
    log.close().await;
    let mut names: Vec<_> = fs::read_dir(&keys).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["master.key", "threads"]);
    assert_eq!(open_log(folder.path()).unwrap().head(), Position::new(1));
}
