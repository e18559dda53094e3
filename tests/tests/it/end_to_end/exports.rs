//! Exports as commands: made, proven without the data folder, changed, interrupted, and made logs of.

use std::{fs, path::Path, process::Stdio};

use domain::ids::{EventId, RunId, UserId};
use eventlog::{Append, EventLog, Expected, Json, NewEvent, Options, Scope, StreamId};
use serde_json::{Value, json};
use tests::{
    process::Remit,
    record::{number, text},
    wait,
};

use super::remit;

/// Events of a log whose export takes long enough to be interrupted.
const MANY_EVENTS: u64 = 6_000;

/// A folder with two runs on threads of their own. Gives the threads.
async fn filled() -> (Remit, Vec<String>) {
    let remit = remit();
    let mut threads = Vec::new();
    for prompt in ["Look at the files here", "Look again"] {
        let done = remit.run(&["run", prompt, "--json"]).await.exited(0).json();
        threads.push(text(&done, "thread_id").to_owned());
    }
    (remit, threads)
}

fn lines(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn json(remit: &Remit, words: &[&str]) -> Value {
    remit.run(&[words, &["--json"]].concat()).await.exited(0).json()
}

// Field reports 100, 102 and 103.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_is_proven_elsewhere_and_made_a_log_of() {
    let (remit, threads) = filled().await;
    let told = remit.run(&["export", "--out", "audit"]).await.exited(0);
    for word in ["FILTER", "none: everything", "EVENTS", "CHAIN", "SIGNED BY"] {
        assert!(told.stdout.contains(word), "{}", told.stdout);
    }
    let audit = remit.folder().join("audit");
    let events = lines(&audit);
    for field in ["position", "stream", "seq", "event_id", "event_type", "hash", "previous_hash", "content"] {
        assert!(!events[0][field].is_null(), "{field}");
    }
    // The data folder is somewhere else now.
    fs::rename(remit.data(), remit.folder().join("away")).unwrap();
    let verified = json(&remit, &["verify", "audit"]).await;
    assert_eq!((&verified["whole"], &verified["events"]), (&json!(true), &json!(events.len())));
    let key = text(&verified, "signed_by").to_owned();
    let shown = remit.run(&["verify", "audit", "--key", &key]).await.exited(0);
    assert!(shown.stdout.contains("PROVEN") && !shown.stdout.contains("NOT PROVEN"), "{}", shown.stdout);
    let other = remit.run(&["verify", "audit", "--key", &"ab".repeat(32)]).await.exited(5);
    assert!(
        other.stderr.contains("signed by the key") && other.stderr.contains("hint: "),
        "{}",
        other.stderr
    );

    let refused = remit.run(&["import", "audit", "--data", "again"]).await.exited(4);
    assert!(refused.stderr.contains("--master-key"), "{}", refused.stderr);
    let words = ["import", "audit", "--data", "again", "--master-key", "away/keys/master.key"];
    let imported = json(&remit, &words).await;
    assert_eq!((&imported["chain"], &imported["events"]), (&verified["chain"], &verified["events"]));
    for words in
        [&["ledger"] as &[&str], &["runs"], &["events", "--thread", &threads[0]], &["verify", "--head"]]
    {
        let answers = ["again", "away"].map(|data| [words, &["--json", "--data", data]].concat());
        let [again, away] = &answers;
        let (again, away) = (remit.run(again).await.exited(0), remit.run(away).await.exited(0));
        assert_eq!(again.stdout, away.stdout, "{words:?}");
    }
    remit.run(&words).await.exited(4);
    remit.run(&["export", "--out", "audit", "--data", "again"]).await.exited(4);
    remit.run(&["export", "--out", "twice", "--data", "again"]).await.exited(0);
    let bytes = |folder: &str| fs::read(remit.folder().join(folder).join("events.jsonl")).unwrap();
    assert_eq!(bytes("twice"), bytes("audit"));
}

// Field report 103.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_export_is_refused_with_the_first_bad_position() {
    let (remit, threads) = filled().await;
    let short = &threads[0][..12];
    json(&remit, &["export", "--out", "old"]).await;
    let manifest = json(&remit, &["export", "--out", "audit", "--thread", short]).await;
    assert_eq!(manifest["filter"], json!({"thread_id": threads[0]}));
    let audit = remit.folder().join("audit");
    let events = lines(&audit);
    assert!(events.iter().all(|event| event["stream"] == format!("thread/{}", threads[0])));
    let verified = remit.run(&["verify", "audit", "--against", "old"]).await.exited(0);
    assert!(verified.stdout.contains("none of the"), "{}", verified.stdout);

    let path = audit.join("events.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let bad = &events[3];
    fs::write(&path, whole.replacen(text(bad, "event_id"), "0198f000-0000-7000-8000-000000000001", 1))
        .unwrap();
    let named = remit.run(&["verify", "audit"]).await.exited(5);
    let position = format!("position {}: ", bad["position"]);
    assert!(named.stderr.contains(&position) && named.stdout.is_empty(), "{}", named.stderr);
    let told = remit.run(&["verify", "audit", "--json"]).await.exited(5).json();
    assert_eq!((&told["whole"], &told["damage"]["position"]), (&json!(false), &bad["position"]));
    fs::write(&path, &whole).unwrap();

    // A log that was longer once.
    remit.run(&["run", "Look once more"]).await.exited(0);
    json(&remit, &["export", "--out", "new", "--event-types", "run.start,run.end"]).await;
    remit.run(&["verify", "new", "--against", "old"]).await.exited(0);
    let removed = remit.run(&["verify", "old", "--against", "new"]).await.exited(5);
    assert!(removed.stderr.contains("had reached position"), "{}", removed.stderr);
    remit.run(&["verify", "nowhere"]).await.exited(3);
    remit.run(&["export", "--out", "x", "--thread", "nobody"]).await.exited(3);
    remit.run(&["export", "--out", "x", "--from", "yesterday"]).await.exited(2);
    remit.run(&["export", "--out", "x", "--from", "2026-03-02", "--to", "2026-03-01"]).await.exited(2);
    assert!(!remit.folder().join("x").exists());
}

// Field report 100.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erased_thread_is_in_an_export_without_a_word() {
    let remit = remit();
    let done = remit.run(&["run", "Look for zqplanted here", "--json"]).await.exited(0).json();
    let thread = text(&done, "thread_id").to_owned();
    remit.run(&["erase", &thread, "--yes"]).await.exited(0);
    for (out, more) in [("whole", &[] as &[&str]), ("thread", &["--thread", &thread])] {
        let manifest = json(&remit, &[&["export", "--out", out], more].concat()).await;
        assert!(number(&manifest, "erased") > 5, "{manifest}");
        let folder = remit.folder().join(out);
        assert!(!fs::read_to_string(folder.join("events.jsonl")).unwrap().contains("zqplanted"));
        let verified = json(&remit, &["verify", out]).await;
        assert_eq!(verified["erased"], manifest["erased"]);
    }
}

fn event(number: u64) -> NewEvent {
    let id: EventId = format!("0198f000-0000-7000-8000-{number:012x}").parse().unwrap();
    NewEvent {
        event_id: id,
        event_type: "note".to_owned(),
        schema_version: 0,
        category: "trace".to_owned(),
        scope: Scope { run_id: Some(RunId::new("r").unwrap()), ..Scope::default() },
        owner: UserId::unowned(),
        causation_id: None,
        correlation_id: None,
        created_at: "2026-11-30T12:00:00Z".parse().unwrap(),
        content: Json::parse(&format!("{{\"text\":\"{}\"}}", "word ".repeat(100))).unwrap(),
        metadata: Json::empty_object(),
    }
}

async fn fill(data: &Path) {
    let log = EventLog::open(data, Options { redactor: None, ..Options::default() }).unwrap();
    let stream: StreamId = "thread/t".parse().unwrap();
    for start in (0..MANY_EVENTS).step_by(1_000) {
        let events = (start..start + 1_000).map(event).collect();
        let append =
            Append { stream: stream.clone(), expected: Expected::Any, idempotency_key: None, events };
        log.append(append).await.unwrap();
    }
    log.close().await;
}

// Kill -9 in the middle: half an export never looks like one, and the next attempt goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_export_goes_on_where_it_was() {
    let remit = remit();
    fill(&remit.data()).await;
    let unfinished = remit.folder().join("audit.unfinished");
    let written = || fs::metadata(unfinished.join("events.jsonl")).map_or(0, |file| file.len());
    for round in 1..=2_u64 {
        let before = written();
        let mut child = remit.command(&["export", "--out", "audit"]).stdout(Stdio::null()).spawn().unwrap();
        wait::until("the export has gone on", || written() > before.max(round * 1_000_000)).await;
        child.kill().await.unwrap();
        assert!(!remit.folder().join("audit").exists(), "the export was too fast to be interrupted");
        assert!(!unfinished.join("manifest.json").exists());
    }
    remit.run(&["verify", "audit.unfinished"]).await.exited(3);
    let other = remit.run(&["export", "--out", "audit", "--thread", "t"]).await.exited(4);
    assert!(other.stderr.contains("other filters"), "{}", other.stderr);
    let resumed = remit.run(&["export", "--out", "audit"]).await.exited(0);
    assert!(resumed.stdout.contains("RESUMED"), "{}", resumed.stdout);
    assert_eq!(json(&remit, &["verify", "audit"]).await["events"], json!(MANY_EVENTS));
    remit.run(&["export", "--out", "whole"]).await.exited(0);
    let bytes = |folder: &str| fs::read(remit.folder().join(folder).join("events.jsonl")).unwrap();
    assert!(bytes("audit") == bytes("whole"), "the interrupted export differs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_exports_its_log_while_it_works() {
    let remit = remit();
    let served = remit.serve(&[]).await;
    let there = ["--server", served.url.as_str()];
    let done = json(&remit, &[&["run", "Look"], &there[..]].concat()).await;
    let thread = text(&done, "thread_id");
    let manifest = json(&remit, &[&["export", "--out", "audit"], &there[..]].concat()).await;
    let words = [&["export", "--out", "one", "--thread", &thread[..12]], &there[..]].concat();
    let one = remit.run(&words).await.exited(0);
    assert!(one.stdout.contains("remit-data-backups/one"), "{}", one.stdout);
    let verified = json(&remit, &["verify", "remit-data-backups/audit"]).await;
    assert_eq!((&verified["whole"], &verified["events"]), (&json!(true), &manifest["events"]));
    remit.run(&["verify", "remit-data-backups/one", "--against", "remit-data-backups/audit"]).await.exited(0);
    remit.run(&[&["export", "--out", "audit"], &there[..]].concat()).await.exited(4);
    remit.run(&[&["export", "--out", "/tmp/elsewhere"], &there[..]].concat()).await.exited(2);
    remit.run(&[&["export", "--out", "x", "--thread", "nobody"], &there[..]].concat()).await.exited(3);
    served.crash().await;
}
