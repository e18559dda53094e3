//! Backups while others write, folders that are made of them, and backups that are not what they
//! were.

use std::{fs, path::Path};

use domain::ids::ThreadId;

use super::*;
use crate::{
    Append, EventFilter, EventLog, Expected, MasterKey, Options, Position, RecordedEvent, Scope, SecretKey,
    Seq, StreamId,
    engine::{Direction, Engine, KeyRange, Pair},
    keys,
    open::{ENGINE_FOLDER, OpenError},
    sample,
    verify::{DamageKind, Progress, VerifyRequest, verify_folder},
};

/// Backups that are made while others write.
const BACKUPS: usize = 4;

fn nothing(_: Progress) {}

/// A folder with a log of two threads and the registry, with runs, tasks, keys and large bodies.
async fn filled(options: Options) -> (tempfile::TempDir, EventLog) {
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::open(&folder.path().join("data"), options).unwrap();
    for number in 0..20_u64 {
        for name in ["t", "u"] {
            let mut event = sample::note(number);
            event.scope = Scope {
                run_id: Some(sample::run_id(if number < 7 { "one" } else { "two" })),
                task_id: (number % 2 == 0).then(|| sample::task_id("call")),
                delegation_id: (number % 3 == 0).then(|| sample::delegation_id(7)),
            };
            let append = sample::to(&sample::thread(name), Expected::Any, vec![event, sample::note(99)]);
            log.append(Append { idempotency_key: sample::key(&number.to_string()), ..append }).await.unwrap();
        }
        sample::add(&log, &StreamId::Registry, [number]).await.unwrap();
    }
    (folder, log)
}

fn back_up(log: &EventLog, target: &Path) -> Manifest {
    try_to_back_up(log, target).unwrap()
}

fn try_to_back_up(log: &EventLog, target: &Path) -> Result<Manifest, BackupError> {
    let progress = &mut |_| ControlFlow::Continue(());
    log.back_up(target, BackupRequest { taken_at: sample::time(), threads: None, progress })
}

fn restore_to(backup: &Path, data: &Path) -> Result<crate::Report, BackupError> {
    restore(backup, data, &sample::options(), &mut nothing)
}

/// Every pair of a closed log, keyspace by keyspace.
fn pairs(data: &Path) -> Vec<Vec<Pair>> {
    let engine = Engine::open(&data.join(ENGINE_FOLDER), &keys::KEYSPACES).unwrap();
    let all = |keyspace| engine.view().page(keyspace, &KeyRange::all(), Direction::Forward, usize::MAX);
    keys::KEYSPACES.into_iter().map(|keyspace| all(keyspace).unwrap()).collect()
}

fn events(log: &EventLog) -> Vec<RecordedEvent> {
    log.read_all(Position::ZERO, usize::MAX).unwrap()
}

#[tokio::test]
async fn a_restored_log_has_the_same_bytes_and_goes_on() {
    let (folder, log) = filled(sample::options()).await;
    let (backup, data) = (folder.path().join("backup"), folder.path().join("restored"));
    let manifest = back_up(&log, &backup);
    assert_eq!((manifest.events, manifest.commits), (100, 60));
    assert_eq!(manifest.master_key, MasterKeyPlace::Included);
    assert_eq!(Manifest::read(&backup).unwrap(), manifest);
    let head = log.exported_head().unwrap();
    let verified = verify_backup(&backup, VerifyRequest::default()).unwrap();
    let restored = restore_to(&backup, &data).unwrap();
    assert_eq!(verified, restored);
    assert_eq!((restored.head, restored.events, restored.streams, restored.damage), (head, 100, 3, None));
    let before = events(&log);
    log.close().await;
    assert_eq!(pairs(&data), pairs(&folder.path().join("data")));
    let log = EventLog::open(&data, sample::options()).unwrap();
    assert_eq!(events(&log), before);
    let filter = EventFilter { task_id: Some(sample::task_id("call")), ..EventFilter::default() };
    let thread = ThreadId::new("t").unwrap();
    let page = log.read_run(&thread, &sample::run_id("two"), &filter, Seq::ZERO, 99).unwrap();
    assert_eq!(page.len(), 6);
    // A repeat is known, and a new event gets the next places.
    let mut event = sample::note(3);
    event.scope.run_id = Some(sample::run_id("one"));
    event.scope.delegation_id = Some(sample::delegation_id(7));
    let again = sample::to(&sample::thread("t"), Expected::Any, vec![event, sample::note(99)]);
    let again = log.append(Append { idempotency_key: sample::key("3"), ..again }).await.unwrap();
    assert_eq!(again.position(), Position::new(17));
    let next = sample::add(&log, &sample::thread("t"), [1]).await.unwrap();
    assert_eq!((next.position(), next.seq()), (Position::new(101), Seq::new(41)));
}

// Field report 75.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_while_others_write_is_a_prefix() {
    let (folder, log) = filled(sample::options()).await;
    let writer = tokio::spawn({
        let log = log.clone();
        async move {
            for number in 0..200 {
                let stream = sample::thread(&format!("busy-{}", number % 7));
                sample::add(&log, &stream, [number, number]).await.unwrap();
            }
        }
    });
    let mut taken = Vec::new();
    while !writer.is_finished() && taken.len() < BACKUPS {
        let (log, target) = (log.clone(), folder.path().join(format!("backup-{}", taken.len())));
        let manifest = tokio::task::spawn_blocking(move || back_up(&log, &target)).await.unwrap();
        taken.push(manifest.position);
    }
    writer.await.unwrap();
    let all = events(&log);
    for (number, position) in taken.iter().enumerate() {
        let backup = folder.path().join(format!("backup-{number}"));
        let data = folder.path().join(format!("restored-{number}"));
        restore_to(&backup, &data).unwrap();
        let restored = EventLog::open(&data, sample::options()).unwrap();
        assert_eq!(events(&restored), all[..position.get() as usize]);
        restored.close().await;
        let report = verify_folder(&data, &sample::options(), VerifyRequest::default()).unwrap();
        assert_eq!(report.damage, None);
    }
    assert!(taken.is_sorted() && !taken.is_empty());
}

#[tokio::test]
async fn what_was_erased_is_not_in_a_new_backup() {
    let (folder, log) = filled(sample::options()).await;
    let thread = ThreadId::new("u").unwrap();
    let before = folder.path().join("before");
    back_up(&log, &before);
    log.destroy_thread_key(&thread).await.unwrap();
    let after = folder.path().join("after");
    back_up(&log, &after);
    let keys = |backup: &Path| fs::read(backup.join(KEYS_FILE)).unwrap();
    assert_ne!(keys(&before), keys(&after));
    for (backup, is_erased) in [(before, false), (after, true)] {
        let data = backup.with_extension("data");
        restore_to(&backup, &data).unwrap();
        let restored = EventLog::open(&data, sample::options()).unwrap();
        let events = restored.read_stream(&StreamId::Thread(thread.clone()), Seq::ZERO, 99).unwrap();
        assert_eq!(events.len(), 40);
        assert!(events.iter().all(|event| event.is_erased() == is_erased));
    }
}

#[tokio::test]
async fn a_master_key_from_elsewhere_stays_there() {
    let with_key = |byte| Options {
        master_key: MasterKey::given(SecretKey::new([byte; 32]), "a test"),
        ..sample::options()
    };
    let (folder, log) = filled(with_key(1)).await;
    let (backup, data) = (folder.path().join("backup"), folder.path().join("restored"));
    let manifest = back_up(&log, &backup);
    assert_eq!(manifest.master_key, MasterKeyPlace::Elsewhere);
    assert!(!backup.join(MASTER_FILE).exists());
    assert!(
        verify_backup(&backup, VerifyRequest::default()).unwrap().is_whole(),
        "no key is needed to verify"
    );
    let lost = restore_to(&backup, &data).unwrap_err();
    assert!(matches!(lost, BackupError::Keys(OpenError::MasterKeyLost { .. })), "{lost}");
    let wrong = restore(&backup, &data, &with_key(2), &mut nothing).unwrap_err();
    assert!(matches!(wrong, BackupError::Keys(OpenError::MasterKeyWrong { .. })), "{wrong}");
    assert!(!data.exists());
    restore(&backup, &data, &with_key(1), &mut nothing).unwrap();
    let restored = EventLog::open(&data, with_key(1)).unwrap();
    assert_eq!(events(&restored), events(&log));
}

// Field report 103.
#[tokio::test]
async fn a_backup_is_held_against_an_exported_head() {
    let (folder, log) = filled(sample::options()).await;
    let early = log.exported_head().unwrap();
    let backup = folder.path().join("backup");
    sample::add(&log, &sample::thread("t"), 1..=3).await.unwrap();
    back_up(&log, &backup);
    sample::add(&log, &sample::thread("t"), [4]).await.unwrap();
    let late = log.exported_head().unwrap();
    let damage = |exported| {
        let request = VerifyRequest { exported: Some(exported), progress: None };
        verify_backup(&backup, request).unwrap().damage.map(|damage| damage.kind)
    };
    assert_eq!(damage(early), None);
    assert_eq!(damage(late), Some(DamageKind::TailRemoved { exported: late.position }));
    let other = crate::ExportedHead { chain: [7; 32], ..early };
    assert_eq!(damage(other), Some(DamageKind::ExportDiffers));
}

#[tokio::test]
async fn a_place_that_is_taken_is_refused() {
    let (folder, log) = filled(sample::options()).await;
    let backup = folder.path().join("backup");
    fs::create_dir(&backup).unwrap();
    back_up(&log, &backup);
    let refused = try_to_back_up(&log, &backup).unwrap_err();
    assert!(matches!(refused, BackupError::NotEmpty { .. }), "{refused}");
    let data = folder.path().join("data");
    assert!(matches!(restore_to(&backup, &data), Err(BackupError::NotEmpty { .. })));
    let file = folder.path().join("file");
    fs::write(&file, "mine").unwrap();
    assert!(matches!(restore_to(&backup, &file), Err(BackupError::NotEmpty { .. })));
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    let none = folder.path().join("none");
    assert!(matches!(restore_to(&none, &folder.path().join("x")), Err(BackupError::NoBackup { .. })));
    let memory = try_to_back_up(&sample::memory_log(), &none).unwrap_err();
    assert!(matches!(memory, BackupError::Unsupported), "{memory}");
    let mut left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["backup", "data", "file"], "what was begun is removed");
}

/// Damages a copy of a backup, and expects that it is noticed by verifying and by restoring.
#[track_caller]
fn check(backup: &Path, damage: impl Fn(&Path), expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    fs::create_dir_all(copy.join("keys")).unwrap();
    for name in FILES.iter().chain(&[MASTER_FILE, "manifest.json"]) {
        fs::copy(backup.join(name), copy.join(name)).unwrap();
    }
    damage(&copy);
    let data = folder.path().join("data");
    let error = restore_to(&copy, &data).unwrap_err();
    let text = if let BackupError::Damaged(damage) = &error { damage.to_string() } else { error.to_string() };
    assert!(text.contains(expected), "{text} does not say {expected}");
    assert!(!data.exists());
    match verify_backup(&copy, VerifyRequest::default()) {
        Ok(report) => assert_eq!(report.damage.map(|damage| damage.to_string()), Some(text)),
        Err(found) => assert_eq!(found.to_string(), text),
    }
}

#[tokio::test]
async fn a_backup_that_was_changed_is_named() {
    let (folder, log) = filled(sample::options()).await;
    let backup = folder.path().join("backup");
    back_up(&log, &backup);
    let change = |name: &'static str, change: fn(&mut Vec<u8>)| {
        move |copy: &Path| {
            let mut bytes = fs::read(copy.join(name)).unwrap();
            change(&mut bytes);
            fs::write(copy.join(name), bytes).unwrap();
        }
    };
    for name in FILES.into_iter().chain([MASTER_FILE]) {
        check(&backup, change(name, |bytes| bytes.truncate(bytes.len() - 1)), "bytes, and had");
        check(&backup, change(name, |bytes| bytes.push(0)), "bytes, and had");
        check(&backup, move |copy| fs::remove_file(copy.join(name)).unwrap(), "it is missing");
    }
    // A body, a length, and keys.
    check(&backup, change(EVENTS_FILE, |bytes| bytes[150] ^= 1), "position 1: ");
    check(&backup, change(EVENTS_FILE, |bytes| bytes[0] ^= 1), "an entry goes beyond its end");
    check(&backup, change(IDEMPOTENCY_FILE, |bytes| bytes[50] ^= 1), "its hash is not the manifest's");
    check(&backup, change(KEYS_FILE, |bytes| bytes[200] ^= 1), "its hash is not the manifest's");
    // The manifest.
    let manifest = |from: &'static str, to: &'static str| {
        move |copy: &Path| {
            let path = copy.join("manifest.json");
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(from), "{text}");
            fs::write(path, text.replacen(from, to, 1)).unwrap();
        }
    };
    check(&backup, manifest("{", ""), "is not one that `remit backup` wrote");
    check(&backup, manifest("\"format\": 2", "\"format\": 3"), "the backup has format 3");
    check(&backup, manifest("\"log_format\": 2", "\"log_format\": 9"), "could not use the log");
    check(&backup, manifest("\"position\": 100", "\"position\": 99"), "another number of events");
    check(&backup, manifest("\"commits\": 60", "\"commits\": 61"), "another number of commits");
    check(&backup, manifest("\"included\"", "\"elsewhere\""), "it lists other files");
    check(&backup, manifest("keys/threads", "../outside"), "it lists other files");
    check(
        &backup,
        |copy| {
            let mut manifest = Manifest::read(copy).unwrap();
            manifest.chain[0] ^= 1;
            fs::remove_file(copy.join("manifest.json")).unwrap();
            manifest.write(copy).unwrap();
        },
        "the events end elsewhere, or with another chain",
    );
}

/// Events that were cut off, with a manifest that was made to fit, do not pass for the whole log.
#[tokio::test]
async fn a_backup_with_a_removed_end_is_noticed() {
    let (folder, log) = filled(sample::options()).await;
    let backup = folder.path().join("backup");
    let manifest = back_up(&log, &backup);
    let mut events = entries::EntryReader::open(&backup, &manifest.files[0]).unwrap();
    let cut = folder.path().join("cut");
    fs::create_dir(&cut).unwrap();
    let mut out = entries::EntryWriter::create(&cut, EVENTS_FILE).unwrap();
    for _ in 0..99 {
        let (key, record) = events.next().unwrap().unwrap();
        out.put(&key, &record).unwrap();
    }
    let entry = out.finish().unwrap();
    check(
        &backup,
        |copy| {
            fs::copy(cut.join(EVENTS_FILE), copy.join(EVENTS_FILE)).unwrap();
            let mut manifest = Manifest::read(copy).unwrap();
            manifest.files[0] = entry.clone();
            (manifest.position, manifest.events) = (Position::new(99), 99);
            fs::remove_file(copy.join("manifest.json")).unwrap();
            manifest.write(copy).unwrap();
        },
        "position 100: the event is missing",
    );
    assert_eq!(DamageKind::Missing.to_string(), "the event is missing");
}

// Completion in a shell ends the name of a folder with a separator.
#[tokio::test]
async fn a_trailing_separator_names_the_same_folder() {
    let (folder, log) = filled(sample::options()).await;
    let target = folder.path().join("backup");
    fs::create_dir(&target).unwrap();
    back_up(&log, &target.join(""));
    assert!(target.join("manifest.json").exists());
    restore_to(&target, &folder.path().join("restored").join("")).unwrap();
}
