//! Forgetting: no text of a thread is ever on disk in plain, and after erasure no key is.

use std::{fs, io::Read, os::unix::fs::MetadataExt, path::Path};

use super::*;
use crate::{
    Append, AppendError, EventFilter, EventLog, Expected, Json, NewEvent, Position, Scope, Unsealed, chain,
    sample, verify_stream,
};

fn thread_id() -> ThreadId {
    ThreadId::new("t").unwrap()
}

/// An append with a text of its own in every field that takes one, and those texts.
fn planted(run: &str) -> (Append, Vec<String>) {
    let texts: Vec<String> =
        ["type", "category", "runid", "task", "owner", "trace", "content", "meta", "key"]
            .iter()
            .map(|field| format!("zq{run}-{field}"))
            .collect();
    let text = |field: &str| format!("zq{run}-{field}");
    let event = NewEvent {
        event_type: text("type"),
        category: text("category"),
        scope: Scope {
            run_id: Some(sample::run_id(&text("runid"))),
            task_id: Some(sample::task_id(&text("task"))),
            delegation_id: Some(sample::delegation_id(3)),
        },
        owner: domain::ids::UserId::new(text("owner")).unwrap(),
        correlation_id: Some(text("trace")),
        content: Json::from_serialize(&text("content")).unwrap(),
        metadata: Json::parse(&format!("{{\"m\":\"{}\"}}", text("meta"))).unwrap(),
        ..sample::note(1)
    };
    let append = Append {
        idempotency_key: sample::key(&text("key")),
        ..sample::to(&sample::thread("t"), Expected::Any, vec![event])
    };
    (append, texts)
}

/// Every file below the folder that holds the bytes.
fn holders(folder: &Path, wanted: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holders(&path, wanted));
        } else if written(&path).windows(wanted.len()).any(|window| window == wanted) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// The file's bytes without the sparse end that journals are made with.
fn written(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let on_disk = fs::metadata(path).unwrap().blocks() * 512;
    fs::File::open(path).unwrap().take(on_disk).read_to_end(&mut bytes).unwrap();
    bytes
}

#[track_caller]
fn check_nowhere(folder: &Path, wanted: &[impl AsRef<[u8]>]) {
    for bytes in wanted {
        let found = holders(folder, bytes.as_ref());
        assert!(found.is_empty(), "{:?} is in {found:?}", String::from_utf8_lossy(bytes.as_ref()));
    }
}

/// Makes tables of what the index has in memory.
fn flush(folder: &Path) {
    crate::repair::rebuild_index(folder, &sample::options()).unwrap();
    let tables = folder.join("log/index/keyspaces/1/tables");
    assert!(fs::read_dir(tables).unwrap().count() > 0);
}

#[tokio::test]
async fn no_text_is_on_disk_before_and_no_key_after_erasure() {
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    let (append, texts) = planted("one");
    let recorded = log.append(append.clone()).await.unwrap();
    let sealer = log.sealer();
    let row = sealer.seal(&thread_id(), b"a row of a view");
    log.close().await;
    check_nowhere(folder.path(), &texts);
    flush(folder.path());
    check_nowhere(folder.path(), &texts);
    let slots = fs::read(folder.path().join("keys/threads")).unwrap();
    let wrapped: Vec<_> =
        [1, 2].iter().map(|slot| slots[slot * 128 + 64..slot * 128 + 112].to_vec()).collect();
    assert!(wrapped.iter().all(|key| holders(folder.path(), key).len() == 1));

    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    assert_eq!(log.read_all(Position::ZERO, 9).unwrap(), [(*recorded.events[0]).clone()]);
    assert!(log.destroy_thread_key(&thread_id()).await.unwrap());
    assert!(!log.destroy_thread_key(&thread_id()).await.unwrap());
    let erased = log.read_all(Position::ZERO, 9).unwrap();
    assert!(erased[0].is_erased() && log.is_erased(&thread_id()));
    let shown = serde_json::to_string(&erased).unwrap();
    assert!(texts.iter().all(|text| !shown.contains(text.as_str())), "{shown}");
    verify_stream(chain::START, &erased).unwrap();
    assert_eq!(log.sealer().open(&thread_id(), &row), Unsealed::Erased);
    // A repeat is refused as well: its answer would need what is gone.
    let refused = log.append(append).await.unwrap_err();
    assert!(matches!(refused, AppendError::Erased { run_id: None, .. }), "{refused}");
    log.close().await;
    check_nowhere(folder.path(), &texts);
    check_nowhere(folder.path(), &wrapped);
}

#[tokio::test]
async fn a_run_is_forgotten_without_its_thread() {
    let log = sample::memory_log();
    let (one, other) = (planted("one").0, planted("two").0);
    log.append(one.clone()).await.unwrap();
    log.append(other).await.unwrap();
    sample::add(&log, &sample::thread("t"), [3]).await.unwrap();
    let run = |name: &str| sample::run_id(&format!("zq{name}-runid"));
    let read = |name: &str| {
        log.read_run(&thread_id(), &run(name), &EventFilter::default(), Seq::ZERO, 9).unwrap().len()
    };
    assert_eq!((read("one"), read("two")), (1, 1));
    let hash = |name: &str| run_hash(&thread_id(), &run(name));
    assert_eq!(log.run_events(hash("one")).unwrap(), 1);
    assert!(log.destroy_run_key(&thread_id(), hash("one")).await.unwrap());
    assert!(!log.destroy_run_key(&thread_id(), hash("none")).await.unwrap());
    assert!(!log.is_run_erased(&thread_id(), &run("none")), "what never was may begin later");
    assert_eq!((read("one"), read("two")), (0, 1));
    assert_eq!((log.run_events(hash("one")).unwrap(), log.run_events(hash("none")).unwrap()), (1, 0));
    assert!(log.is_run_erased(&thread_id(), &run("one")) && !log.is_erased(&thread_id()));
    let events = log.read_stream(&sample::thread("t"), Seq::ZERO, 9).unwrap();
    let erased: Vec<_> = events.iter().map(crate::RecordedEvent::is_erased).collect();
    assert_eq!(erased, [true, false, false]);
    verify_stream(chain::START, &events).unwrap();
    // A repeat of what is gone is refused as well.
    for idempotency_key in [one.idempotency_key.clone(), None] {
        let refused = log.append(Append { idempotency_key, ..one.clone() }).await.unwrap_err();
        let AppendError::Erased { run_id: Some(run_id), .. } = refused else { panic!("{refused}") };
        assert_eq!(run_id, run("one"));
    }
    let refused = log.append(Append { idempotency_key: None, ..one }).await.unwrap_err();
    assert_eq!(refused.to_string(), "run zqone-runid of stream thread/t was erased and takes no more events");
    assert_eq!(log.head(), Position::new(3));
    sample::add(&log, &sample::thread("t"), [4]).await.unwrap();
}

#[tokio::test]
async fn an_unknown_thread_has_no_key_and_may_begin_later() {
    let log = sample::memory_log();
    assert!(!log.destroy_thread_key(&thread_id()).await.unwrap());
    assert!(!log.is_erased(&thread_id()));
    sample::add(&log, &sample::thread("t"), [1]).await.unwrap();
    log.clone().close().await;
    assert!(matches!(log.destroy_thread_key(&thread_id()).await, Err(EraseError::Closed)));
}

#[tokio::test]
async fn appends_before_an_erasure_are_recorded_and_later_ones_refused() {
    let log = sample::memory_log();
    let stream = sample::thread("t");
    let writers: Vec<_> = (0..20)
        .map(|number| {
            let (log, stream) = (log.clone(), stream.clone());
            tokio::spawn(async move { sample::add(&log, &stream, [number]).await })
        })
        .collect();
    tokio::task::yield_now().await;
    assert!(log.destroy_thread_key(&thread_id()).await.unwrap());
    let mut taken = 0;
    for writer in writers {
        match writer.await.unwrap() {
            Ok(_) => taken += 1,
            Err(error) => assert!(matches!(error, AppendError::Erased { .. }), "{error}"),
        }
    }
    assert!(taken > 0);
    let events = log.read_stream(&stream, Seq::ZERO, 99).unwrap();
    assert_eq!(events.len(), taken);
    assert!(events.iter().all(crate::RecordedEvent::is_erased));
}

#[test]
fn rows_are_opened_for_their_thread_only() {
    let log = sample::memory_log();
    let (one, other) = (thread_id(), ThreadId::new("u").unwrap());
    let run = run_hash(&one, &sample::run_id("r"));
    let sealer = log.sealer();
    let said = |run: Option<RunHash>| Unsealed::Said(b"row".to_vec(), run);
    // Without a key there is nothing to seal with.
    for row in [sealer.seal(&one, b"row"), sealer.seal_run(&one, run, b"row")] {
        assert_eq!(sealer.open(&one, &row), said(None));
    }
    let scopes = [&one, &other].map(sealer::thread_scope);
    for (thread, scope) in [(0, scopes[0]), (1, scopes[1]), (0, sealer::hashed_scope(run))] {
        log.sealer().keyring().find_or_create(scopes[thread], scope).unwrap();
    }
    for (row, of) in [(sealer.seal(&one, b"row"), None), (sealer.seal_run(&one, run, b"row"), Some(run))] {
        assert_ne!(row, sealer.seal(&one, b"row"));
        assert_eq!(sealer.open(&one, &row), said(of));
        assert_eq!(sealer.open(&other, &row), Unsealed::Broken);
        for bytes in [&b""[..], &row[..10], &row[..30], &[9, 1, 2]] {
            assert_eq!(sealer.open(&one, bytes), Unsealed::Broken);
        }
    }
}

#[test]
fn rows_are_forgotten_with_their_run_or_its_thread() {
    for is_whole_thread in [false, true] {
        let log = sample::memory_log();
        let (sealer, run) = (log.sealer(), run_hash(&thread_id(), &sample::run_id("r")));
        let (thread, scope) = (sealer::thread_scope(&thread_id()), sealer::hashed_scope(run));
        for scope in [thread, scope] {
            sealer.keyring().find_or_create(thread, scope).unwrap();
        }
        let of_run = sealer.seal_run(&thread_id(), run, b"row");
        let of_thread = sealer.seal(&thread_id(), b"row");
        if is_whole_thread {
            sealer.keyring().destroy_thread(thread, true).unwrap();
        } else {
            sealer.keyring().destroy(thread, scope, true).unwrap();
        }
        for row in [of_run, sealer.seal_run(&thread_id(), run, b"row")] {
            assert_eq!(sealer.open(&thread_id(), &row), Unsealed::Erased);
        }
        let is_gone = sealer.open(&thread_id(), &of_thread) == Unsealed::Erased;
        assert_eq!(is_gone, is_whole_thread);
    }
}

/// Keeps the key file as it was, does something, and puts the old one back.
async fn with_old_keys(folder: &Path, change: impl AsyncFnOnce(&EventLog)) -> EventLog {
    let path = folder.join("keys/threads");
    let old = fs::read(&path).unwrap();
    let log = EventLog::open(folder, sample::options()).unwrap();
    change(&log).await;
    log.close().await;
    fs::write(&path, old).unwrap();
    EventLog::open(folder, sample::options()).unwrap()
}

#[tokio::test]
async fn a_key_that_is_there_again_is_destroyed_again() {
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    let (append, texts) = planted("one");
    log.append(append).await.unwrap();
    log.close().await;
    let log = with_old_keys(folder.path(), async |log| {
        assert!(log.destroy_thread_key(&thread_id()).await.unwrap());
    })
    .await;
    let read = |log: &EventLog| serde_json::to_string(&log.read_all(Position::ZERO, 9).unwrap()).unwrap();
    assert!(read(&log).contains(&texts[6]), "the old keys have made it readable");
    assert!(log.destroy_thread_key(&thread_id()).await.unwrap());
    assert!(log.is_erased(&thread_id()) && !read(&log).contains(&texts[6]));
}

/// The old keys know nothing of a thread that was made and erased since, and its events count as
/// erased all the same.
#[tokio::test]
async fn a_key_that_is_lost_can_be_destroyed() {
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    sample::add(&log, &sample::thread("u"), [1]).await.unwrap();
    log.close().await;
    let log = with_old_keys(folder.path(), async |log| {
        log.append(planted("one").0).await.unwrap();
        assert!(log.destroy_thread_key(&thread_id()).await.unwrap());
    })
    .await;
    assert!(log.read_all(Position::ZERO, 9).is_err() && !log.is_erased(&thread_id()));
    assert!(!log.destroy_thread_key(&thread_id()).await.unwrap(), "there was none to destroy");
    log.close().await;
    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    assert!(log.is_erased(&thread_id()), "it stays so");
    let events = log.read_all(Position::ZERO, 9).unwrap();
    assert_eq!(events.iter().map(crate::RecordedEvent::is_erased).collect::<Vec<_>>(), [false, true]);
    assert!(matches!(log.append(planted("two").0).await, Err(AppendError::Erased { .. })));
}
