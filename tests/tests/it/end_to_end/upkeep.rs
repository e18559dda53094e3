//! Backing up, verifying and diagnosing a running server: what the error about a held folder says to
//! do works.

use std::fs;

use serde_json::{Value, json};
use tests::{
    client::Client,
    process::Remit,
    record::text,
    wait::{self, PATIENCE},
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

use super::remit;

async fn told(remit: &Remit, words: &[&str], there: &[&str]) -> Value {
    remit.run(&[words, there, &["--json"]].concat()).await.exited(0).json()
}

// Field report 75.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_server_is_backed_up_and_verified() {
    let remit = remit();
    let served = remit.serve(&[]).await;
    let there = ["--server", served.url.as_str()];
    let done = told(&remit, &["run", "Look at the files here"], &there).await;
    let report =
        remit.data().join("threads").join(text(&done, "thread_id")).join("user-data/outputs/report.md");
    fs::write(&report, "what an agent wrote").unwrap();
    for words in [&["backup", "--out", "x"] as &[&str], &["verify"], &["doctor"]] {
        let held = remit.run(words).await.exited(4);
        let said = held.stdout + &held.stderr;
        assert!(said.contains(&format!("--server {}", served.url)), "{words:?}: {said}");
    }

    let manifest = told(&remit, &["backup", "--out", "monday"], &there).await;
    let backup = remit.folder().join("remit-data-backups/monday");
    let written: Value = serde_json::from_slice(&fs::read(backup.join("manifest.json")).unwrap()).unwrap();
    assert_eq!((&manifest, &manifest["threads"]["files"]), (&written, &json!(1)));
    let shown =
        remit.run(&[&["backup", "--out", "tuesday", "--without-files"], &there[..]].concat()).await.exited(0);
    assert!(shown.stdout.contains("THREADS     left out"), "{}", shown.stdout);
    assert!(shown.stderr.contains("the master key is in the backup"), "{}", shown.stderr);
    remit.run(&[&["backup", "--out", "monday"], &there[..]].concat()).await.exited(4);
    let path = remit.run(&[&["backup", "--out", "./monday"], &there[..]].concat()).await.exited(2);
    assert!(path.stderr.contains("server.backups"), "{}", path.stderr);

    let verified = told(&remit, &["verify"], &there).await;
    assert_eq!((&verified["whole"], &verified["damage"]), (&json!(true), &Value::Null));
    let head = remit.run(&[&["verify", "--head"], &there[..]].concat()).await.exited(0);
    remit.write("head.json", &head.stdout);
    remit.run(&[&["verify", "--against", "head.json"], &there[..]].concat()).await.exited(0);
    remit.write("longer.json", &json!({"position": 99_999, "chain": verified["chain"]}).to_string());
    let removed = remit.run(&[&["verify", "--against", "longer.json"], &there[..]].concat()).await.exited(5);
    assert!(removed.stderr.contains("had reached position 99999"), "{}", removed.stderr);
    remit.run(&[&["verify", "remit-data-backups/monday"], &there[..]].concat()).await.exited(2);

    let checks = told(&remit, &["doctor"], &there).await;
    let names: Vec<_> =
        checks["checks"].as_array().unwrap().iter().map(|check| text(check, "check")).collect();
    assert_eq!((&checks["healthy"], names), (&json!(true), vec!["server", "log", "views", "disk"]));
    remit.run(&[&["doctor", "--repair"], &there[..]].concat()).await.exited(2);

    assert_eq!(served.stop("-TERM").await, Some(0));
    remit.run(&["verify", "remit-data-backups/monday"]).await.exited(0);
    remit.run(&["restore", "remit-data-backups/monday", "--data", "restored"]).await.exited(0);
    let restored = report.strip_prefix(remit.data()).unwrap();
    assert_eq!(fs::read(remit.folder().join("restored").join(restored)).unwrap(), b"what an agent wrote");
    // The head is later than the backup: nothing was lost that was in it then.
    let position = written["position"].as_u64().unwrap();
    let again = told(&remit, &["verify", "--data", "restored"], &[]).await;
    assert_eq!(again["position"], position);
    // A file that was changed in a backup is noticed.
    fs::write(backup.join("threads").join(restored.strip_prefix("threads").unwrap()), "what an agent wr0te")
        .unwrap();
    remit.run(&["verify", "remit-data-backups/monday"]).await.exited(5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_backs_up_where_its_configuration_says() {
    let remit = remit();
    remit.write("remit.yaml", "server: { backups: elsewhere }\n");
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let outside = client.post("/api/backups", &json!({"name": "../outside"})).await;
    assert_eq!((outside.status, &outside.body["code"]), (422, &json!("invalid")));
    told(&remit, &["backup", "--out", "b"], &["--server", &served.url]).await;
    assert!(remit.folder().join("elsewhere/b/manifest.json").exists());
    assert_eq!(served.stop("-TERM").await, Some(0));
    remit.write("remit.yaml", "server: { backups: remit-data/backups }\nlog: { path: remit-data }\n");
    let refused = remit.run(&["serve"]).await.exited(2);
    assert!(refused.stderr.contains("server.backups"), "{}", refused.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_beyond_this_machine_warns() {
    let remit = remit();
    for (address, is_warned) in [("0.0.0.0:0", true), ("127.0.0.1:0", false)] {
        let mut child = remit.command(&["serve", "--listen", address]).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        while let Some(line) = wait::within(PATIENCE, "what it says", lines.next_line()).await.unwrap() {
            said.push_str(&line);
            if line.starts_with("serving ") {
                let pid = child.id().unwrap().to_string();
                assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
            }
        }
        assert_eq!(said.contains("there is no authentication"), is_warned, "{address}: {said}");
        assert_eq!(child.wait().await.unwrap().code(), Some(0));
    }
}
