//! Folders that are damaged in each way, and what is said of them.

use std::fs;

use domain::ids::{EventId, ThreadId, UserId};
use eventlog::{Append, BlobScope, EventLog, Expected, Json, NewEvent, OverMax, Scope, StreamId};
use jiff::Timestamp;
use runtime::config::Config;

use super::*;
use crate::{
    host::{self, Host},
    source::open_log,
};

/// What is configured for a data folder.
fn config(folder: &Path) -> Config {
    let mut config = Config::default();
    config.log.path = folder.to_owned();
    config
}

/// A closed data folder with three events, one commit each.
pub(crate) async fn filled() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 1..=4_u128 {
        let log: EventLog = open_log(&config(folder.path())).await.unwrap();
        if number <= 3 {
            log.append(note(number)).await.unwrap();
        }
        log.close().await;
    }
    folder
}

fn note(number: u128) -> Append {
    let event = NewEvent {
        event_id: format!("0193a1b2-c3d4-7000-8000-{number:012}").parse::<EventId>().unwrap(),
        event_type: "note".to_owned(),
        schema_version: 1,
        category: "trace".to_owned(),
        scope: Scope::default(),
        owner: UserId::unowned(),
        causation_id: None,
        correlation_id: None,
        created_at: Timestamp::UNIX_EPOCH,
        content: Json::empty_object(),
        metadata: Json::empty_object(),
    };
    Append {
        stream: StreamId::Thread(ThreadId::new("t").unwrap()),
        expected: Expected::Any,
        idempotency_key: None,
        events: vec![event],
    }
}

fn look(folder: &Path) -> Diagnosis {
    diagnose(folder, &Options::default())
}

/// The segment of the log, and what is written in it, without the zeros behind.
pub(crate) fn segment(folder: &Path) -> (std::path::PathBuf, Vec<u8>) {
    let path = folder.join("log/segments/0000000000000000.seg");
    let bytes = fs::read(&path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    (path, bytes[..end].to_vec())
}

/// Writes the beginning of a segment, and zeros behind it.
fn lay_out(path: &Path, bytes: &[u8]) {
    let mut segment = vec![0; 1024 * 1024];
    segment[..bytes.len()].copy_from_slice(bytes);
    fs::write(path, segment).unwrap();
}

/// The beginning of a commit that was never acknowledged.
pub(crate) const TORN: [u8; 15] = *b"RMTFRAME\0\x01\0\0\0\0\x09";

#[track_caller]
fn check(folder: &Path, check: &str, state: State, exit: Exit, found: &str, advice: &str) {
    let diagnosis = look(folder);
    let bad: Vec<_> = diagnosis
        .findings
        .iter()
        .filter(|finding| finding.state != State::Ok && finding.check != "disk")
        .collect();
    let [finding] = bad[..] else { panic!("{diagnosis:?}") };
    assert_eq!((finding.check, finding.state, diagnosis.exit()), (check, state, exit), "{finding:?}");
    assert!(finding.found.contains(found), "{finding:?}");
    assert!(finding.advice.as_ref().unwrap().contains(advice), "{finding:?}");
}

#[tokio::test]
async fn a_whole_folder_is_healthy_and_a_held_one_names_its_holder() {
    let folder = filled().await;
    let diagnosis = look(folder.path());
    assert_eq!(diagnosis.exit(), Exit::Done);
    let checks: Vec<_> = diagnosis.findings.iter().map(|finding| finding.check).collect();
    let expected = ["lock", "record", "format", "keys", "head", "log", "blobs", "erasures", "views", "disk"];
    assert_eq!(checks, expected);
    let log = open_log(&config(folder.path())).await.unwrap();
    log.announce("http://127.0.0.1:8700").unwrap();
    check(folder.path(), "lock", State::Problem, Exit::Refused, "has the folder open", "--server http");
    assert_eq!(look(folder.path()).server.as_deref(), Some("http://127.0.0.1:8700"));
}

#[tokio::test]
async fn keys_that_were_put_back_revive_nothing_unnoticed() {
    let folder = filled().await;
    let keys = folder.path().join("keys/threads");
    let old = fs::read(&keys).unwrap();
    let host = Host::open(config(folder.path()), host::models(&Config::default()).unwrap()).await.unwrap();
    host.runtime.erase_thread(&ThreadId::new("t").unwrap()).await.unwrap();
    host.close().await;
    let healthy = look(folder.path());
    assert!(
        healthy.findings.iter().any(|one| one.check == "erasures" && one.state == State::Ok),
        "{healthy:?}"
    );
    fs::write(&keys, old).unwrap();
    let found = "1 erased thread or run can be read again";
    check(folder.path(), "erasures", State::Problem, Exit::Integrity, found, "doctor --repair");
    // Whoever opens the folder destroys the key again, before anything is read.
    open_log(&config(folder.path())).await.unwrap().close().await;
    assert_eq!(look(folder.path()).exit(), Exit::Done);
}

#[tokio::test]
async fn a_torn_end_can_be_cut_and_a_lost_one_cannot() {
    let folder = filled().await;
    let (path, whole) = segment(folder.path());
    lay_out(&path, &[&whole[..], &TORN].concat());
    check(folder.path(), "record", State::Warning, Exit::Done, "a torn end of 15 B", "doctor --repair");
    lay_out(&path, &whole[..whole.len() - 3]);
    let lost = "ends at position 2, and had durably reached 3";
    check(folder.path(), "head", State::Problem, Exit::Integrity, lost, "restore BACKUP");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    lay_out(&path, &damaged);
    check(folder.path(), "record", State::Problem, Exit::Integrity, "is damaged at byte", "restore BACKUP");
}

#[tokio::test]
async fn the_head_file_may_be_damaged_or_gone() {
    let folder = filled().await;
    fs::write(folder.path().join("head"), [7; 1_024]).unwrap();
    check(folder.path(), "head", State::Problem, Exit::Integrity, "is damaged", "then remove the file");
    fs::remove_file(folder.path().join("head")).unwrap();
    check(folder.path(), "head", State::Warning, Exit::Done, "is missing", "verify");
}

#[tokio::test]
async fn keys_may_be_missing_damaged_or_wrapped_by_another_master_key() {
    let folder = filled().await;
    let (threads, master) = (folder.path().join("keys/threads"), folder.path().join("keys/master.key"));
    let (keys, key) = (fs::read(&threads).unwrap(), fs::read(&master).unwrap());
    fs::remove_file(&threads).unwrap();
    check(folder.path(), "keys", State::Problem, Exit::Integrity, "threads is missing", "from a backup");
    fs::write(&threads, &keys[..1_000]).unwrap();
    check(folder.path(), "keys", State::Problem, Exit::Integrity, "threads is damaged", "from a backup");
    fs::write(&threads, &keys).unwrap();
    fs::remove_file(&master).unwrap();
    check(folder.path(), "keys", State::Problem, Exit::Failed, "master.key is missing", "put back");
    fs::write(&master, "ab".repeat(32)).unwrap();
    check(folder.path(), "keys", State::Problem, Exit::Failed, "another master key", "put back");
    fs::write(&master, "no key").unwrap();
    check(folder.path(), "keys", State::Problem, Exit::Failed, "cannot be used", "put back");
    fs::write(&master, key).unwrap();
    assert_eq!(look(folder.path()).exit(), Exit::Done);
}

#[tokio::test]
async fn a_damaged_blob_is_a_problem() {
    let folder = filled().await;
    let log = open_log(&config(folder.path())).await.unwrap();
    let scope = BlobScope { thread_id: ThreadId::new("t").unwrap(), run_id: None };
    let mut writer = log.write_blob(&scope, 0, OverMax::Refuse);
    writer.write(b"the output of a tool");
    let blob = writer.finish().blob.unwrap().unwrap();
    let mut naming = note(5);
    naming.events[0].event_type = "llm.tool.result".to_owned();
    naming.events[0].metadata = Json::from_serialize(&serde_json::json!({ "blobs": [blob] })).unwrap();
    log.append(naming).await.unwrap();
    log.close().await;
    assert_eq!(look(folder.path()).exit(), Exit::Done);
    let mut path = folder.path().join("blobs");
    while path.is_dir() {
        let mut entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        path = entries.find(|entry| !entry.ends_with("staged")).unwrap();
    }
    fs::write(&path, "no blob").unwrap();
    let named = format!("position 4: the blob {} that the event names is", blob.sha256);
    for fault in ["damaged", "missing"] {
        let found = format!("1 blob that events name cannot be read: {named} {fault}");
        check(folder.path(), "blobs", State::Problem, Exit::Integrity, &found, "restore BACKUP");
        fs::remove_file(&path).unwrap_or_default();
    }
}

#[tokio::test]
async fn views_that_cannot_be_opened_can_be_deleted() {
    let folder = filled().await;
    let views = folder.path().join("views");
    fs::create_dir(&views).unwrap();
    for entry in fs::read_dir(folder.path().join("log")).unwrap() {
        let from = entry.unwrap().path();
        if from.is_file() {
            fs::write(views.join(from.file_name().unwrap()), "no storage").unwrap();
        }
    }
    let advice = format!("delete {}", views.display());
    check(folder.path(), "views", State::Warning, Exit::Done, "cannot be opened", &advice);
}
