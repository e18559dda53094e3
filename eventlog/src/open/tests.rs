//! Folders: opened again, held, damaged, and from the future.

use std::{fs, path::Path, sync::Arc};

use super::*;
use crate::{
    AppendError, EventLog, Health, MasterKey, Options, SecretKey, Seq, StreamId, VerifyError, VerifyRequest,
    chain, repair, sample, sealer, store::FaultyStore, verify_folder, verify_stream,
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
    let log_folder = folder.path().join(LOG_FOLDER);
    assert_eq!(format::check(&log_folder).unwrap(), format::Found::Version(3));
    format::write_version(&log_folder, 4).unwrap();
    let error = open_log(folder.path()).err().unwrap();
    let OpenError::Format { source, .. } = error else { panic!("{error}") };
    let text = source.to_string();
    assert!(
        text.starts_with("the log has format version 4, and this program knows versions up to 3"),
        "{text}"
    );
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

/// The segment with everything in it, its bytes, and where the record ends in it.
fn segment(folder: &Path) -> (PathBuf, Vec<u8>, usize) {
    let path = folder.join("log/segments/0000000000000000.seg");
    let bytes = fs::read(&path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    (path, bytes, end)
}

#[tokio::test]
async fn a_log_whose_end_was_cut_is_refused() {
    let folder = filled().await;
    let (path, mut bytes, end) = segment(folder.path());
    bytes[end - 40..end].fill(0);
    fs::write(&path, &bytes).unwrap();
    let error = open_log(folder.path()).err().unwrap();
    let OpenError::HeadBehind { log, noted, .. } = &error else { panic!("{error}") };
    assert_eq!((*log, *noted), (Position::new(9), Position::new(10)));
    let text = error.to_string();
    assert!(text.contains("ends at position 9, but had durably reached position 10"), "{text}");
    // It stays refused and as it is, and the lock is free again.
    assert!(matches!(open_log(folder.path()), Err(OpenError::HeadBehind { .. })));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

/// A folder whose record was put back to its first ten events, whose index knows of twelve, and that
/// has no head file.
#[tokio::test]
async fn a_record_that_ends_before_its_index_is_refused_without_a_head_file_too() {
    let folder = filled().await;
    let (path, before, _) = segment(folder.path());
    let log = open_log(folder.path()).unwrap();
    sample::add(&log, &sample::thread("t"), [11, 12]).await.unwrap();
    log.close().await;
    repair::rebuild_index(folder.path(), &sample::options()).unwrap();
    let after = fs::read(&path).unwrap();
    fs::remove_file(folder.path().join(WATERMARK_FILE)).unwrap();
    fs::write(&path, before).unwrap();
    for _ in 0..2 {
        let error = open_log(folder.path()).err().unwrap();
        let OpenError::HeadBehind { log, noted, .. } = &error else { panic!("{error}") };
        assert_eq!((*log, *noted), (Position::new(10), Position::new(12)));
        let inspected = inspect(folder.path(), &sample::options());
        assert!(matches!(inspected, Err(OpenError::HeadBehind { .. })), "{inspected:?}");
    }
    // The same folder with its whole record opens, and has a head file again.
    fs::write(&path, after).unwrap();
    assert_eq!(open_log(folder.path()).unwrap().head(), Position::new(12));
    assert!(folder.path().join(WATERMARK_FILE).exists());
}

// Field report 39: a torn last entry made the next number 1 in another system.
#[tokio::test]
async fn a_torn_end_that_was_never_acknowledged_is_dropped_and_the_count_goes_on() {
    let folder = filled().await;
    let head = folder.path().join(WATERMARK_FILE);
    let noted = fs::read(&head).unwrap();
    let log = open_log(folder.path()).unwrap();
    sample::add(&log, &sample::thread("t"), [11]).await.unwrap();
    log.close().await;
    // As the power leaves it when it goes during the eleventh commit.
    fs::write(&head, noted).unwrap();
    let (path, mut bytes, end) = segment(folder.path());
    bytes[end - 7..end].fill(0);
    fs::write(&path, &bytes).unwrap();
    let log = open_log(folder.path()).unwrap();
    check_ten(&log);
    let appended = sample::add(&log, &sample::thread("t"), [12]).await.unwrap();
    assert_eq!((appended.position(), appended.seq()), (Position::new(11), Seq::new(11)));
    assert_eq!(log.verify(VerifyRequest::default()).unwrap().damage, None);
    let is_copy = |name: &str| name.starts_with("torn-0000000000000000.seg-");
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.filter(|name| is_copy(name.to_str().unwrap())).count(), 1);
}

/// Whatever becomes of the index, the log opens with everything, and so does its index.
#[tokio::test]
async fn an_index_that_is_gone_damaged_older_or_newer_is_made_anew() {
    let index = |folder: &Path| folder.join(LOG_FOLDER).join(INDEX_FOLDER);
    let check = async |change: &dyn Fn(&Path)| {
        let folder = filled().await;
        repair::rebuild_index(folder.path(), &sample::options()).unwrap();
        change(folder.path());
        let log = open_log(folder.path()).unwrap();
        check_ten(&log);
        sample::add(&log, &sample::thread("t"), [11]).await.unwrap();
        assert_eq!(log.verify(VerifyRequest::default()).unwrap().damage, None);
        log.close().await;
        assert_eq!(open_log(folder.path()).unwrap().head(), Position::new(11));
    };
    check(&|_| {}).await;
    check(&|folder| fs::remove_dir_all(index(folder)).unwrap()).await;
    check(&|folder| fs::write(index(folder).join("version"), "none").unwrap()).await;
    check(&|folder| {
        for entry in fs::read_dir(index(folder).join("keyspaces/1/tables")).unwrap() {
            fs::write(entry.unwrap().path(), "no table").unwrap();
        }
    })
    .await;
    // One of another log, and one that is ahead of the record.
    let other = filled().await;
    let log = open_log(other.path()).unwrap();
    sample::add(&log, &sample::thread("other"), 1..=20).await.unwrap();
    log.close().await;
    repair::rebuild_index(other.path(), &sample::options()).unwrap();
    check(&|folder| {
        fs::remove_dir_all(index(folder)).unwrap();
        copy_folder(&index(other.path()), &index(folder));
    })
    .await;
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
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
    look(folder).unwrap().survey.head
}

#[tokio::test]
async fn after_a_failed_commit_everybody_is_refused() {
    let inner = Arc::new(SegmentStore::in_memory());
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
        let store = Arc::new(SegmentStore::in_memory());
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

/// Somebody removed everything but the keys: a new log would hide that.
#[tokio::test]
async fn keys_without_a_log_are_refused_and_a_first_key_without_its_event_is_not() {
    let folder = filled().await;
    fs::remove_file(folder.path().join(WATERMARK_FILE)).unwrap();
    fs::remove_dir_all(folder.path().join("log")).unwrap();
    for _ in 0..2 {
        assert!(matches!(open_log(folder.path()).err(), Some(OpenError::RecordLost { .. })));
        let verified = verify_folder(folder.path(), &sample::options(), VerifyRequest::default());
        assert!(matches!(verified, Err(VerifyError::Open(OpenError::RecordLost { .. }))), "{verified:?}");
    }
    // A crash between the first key and the first commit, after which nobody noted a head.
    let folder = tempfile::tempdir().unwrap();
    open_log(folder.path()).unwrap().close().await;
    let keys = open_keys(folder.path(), &sample::options(), true).unwrap();
    let StreamId::Thread(thread) = sample::thread("t") else { panic!() };
    let thread = sealer::thread_scope(&thread);
    keys.find_or_create(thread, thread).unwrap();
    keys.save().unwrap();
    drop(keys);
    fs::remove_file(folder.path().join(WATERMARK_FILE)).unwrap();
    assert_eq!(open_log(folder.path()).unwrap().head(), Position::ZERO);
}
