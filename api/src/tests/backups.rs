//! Backups and verifications over HTTP.

use std::time::Duration;

use axum::http::StatusCode;
use eventlog::{EventLog, Options, VerifyRequest, backup::verify_backup};
use serde_json::{Value, json};

use super::app::App;

/// A server over a log on disk.
fn on_disk() -> (App, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::open(&folder.path().join("data"), Options::default()).unwrap();
    (App::on(log), folder)
}

/// Asks until the work has ended.
async fn ended(app: &App, path: &str) -> Value {
    let asking = async {
        loop {
            let job = app.get(path).await.json();
            if job["state"] != "running" {
                return job;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asking).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_begun_and_asked_after() {
    let (app, _folder) = on_disk();
    app.thread("t").await;
    let begun = app.post("/api/backups", json!({"name": "monday"})).await;
    assert_eq!(begun.status, StatusCode::ACCEPTED, "{begun:?}");
    let path = format!("/api/backups/{}", begun.json()["backup_id"].as_str().unwrap());
    let done = ended(&app, &path).await;
    assert_eq!((&done["state"], &done["name"]), (&json!("done"), &json!("monday")), "{done}");
    assert_eq!(done["manifest"]["position"], app.log.head().get());
    let folder = std::path::PathBuf::from(done["path"].as_str().unwrap());
    verify_backup(&folder, VerifyRequest::default()).unwrap();

    let taken = app.post("/api/backups", json!({"name": "monday"})).await;
    taken.check_problem(409, "conflict", "named monday");
    let listed = app.get("/api/backups").await.json();
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][0]), (1, &done));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_in_use_is_verified() {
    let (app, _folder) = on_disk();
    app.thread("t").await;
    let head = serde_json::to_value(app.log.exported_head().unwrap()).unwrap();
    app.thread("u").await;
    let begun = app.post("/api/verify", json!({"against": head})).await;
    assert_eq!(begun.status, StatusCode::ACCEPTED, "{begun:?}");
    let path = format!("/api/verify/{}", begun.json()["verification_id"].as_str().unwrap());
    let done = ended(&app, &path).await;
    assert_eq!((&done["state"], &done["report"]["whole"]), (&json!("done"), &json!(true)), "{done}");
    assert_eq!(done["report"]["position"], app.log.head().get());
    let longer = json!({"position": 999, "chain": head["chain"]});
    let begun = app.post("/api/verify", json!({"against": longer})).await.json();
    let done = ended(&app, &format!("/api/verify/{}", begun["verification_id"].as_str().unwrap())).await;
    assert_eq!((&done["state"], &done["report"]["whole"]), (&json!("done"), &json!(false)), "{done}");
    assert_eq!(done["report"]["damage"]["position"], app.log.head().get() + 1);
    assert_eq!(app.get("/api/verify").await.json()["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let app = App::new();
    for name in ["../outside", "/etc/x", "a/b", "", ".hidden", "x.unfinished"] {
        let refused = app.post("/api/backups", json!({"name": name})).await;
        refused.check_problem(422, "invalid", "invalid name");
    }
    let path = app.post("/api/backups", json!({"path": "/tmp/x"})).await;
    path.check_problem(422, "invalid", "path");
    app.post("/api/verify", json!({"against": 7})).await.check_problem(422, "invalid", "against");
    app.get("/api/backups/0198f000-0000-7000-8000-000000000001").await.check_problem(
        404,
        "not_found",
        "no backup",
    );
    app.get("/api/verify/0198f000-0000-7000-8000-000000000001").await.check_problem(
        404,
        "not_found",
        "no verif",
    );
    app.get("/api/backups/x").await.check_problem(422, "invalid", "backup_id");
    // A verification is no backup.
    let (app, _folder) = on_disk();
    let begun = app.post("/api/verify", json!({})).await.json();
    let other = format!("/api/backups/{}", begun["verification_id"].as_str().unwrap());
    app.get(&other).await.check_problem(404, "not_found", "no backup");
}
