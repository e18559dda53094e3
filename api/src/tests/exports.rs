//! Exports over HTTP.

use std::{fs, time::Duration};

use axum::http::{StatusCode, header};
use eventlog::{
    EventLog, Options,
    export::{VerifyExport, verify_export},
};
use serde_json::{Value, json};

use super::app::App;
use crate::testing::{append, run_event};

/// A server over a log on disk.
fn on_disk() -> (App, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::open(&folder.path().join("data"), Options::default()).unwrap();
    (App::on(log), folder)
}

/// Begins an export, and asks until it has ended.
async fn exported(app: &App, order: Value) -> Value {
    let begun = app.post("/api/exports", order).await;
    assert_eq!(begun.status, StatusCode::ACCEPTED, "{begun:?}");
    let path = format!("/api/exports/{}", begun.json()["export_id"].as_str().unwrap());
    let asking = async {
        loop {
            let job = app.get(&path).await.json();
            if job["state"] != "running" {
                return job;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asking).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_is_begun_asked_after_and_fetched() {
    let (app, folder) = on_disk();
    for thread in ["t", "u"] {
        append(&app.log, thread, vec![run_event("r", "a", "1"), run_event("r", "b", "2")]).await;
    }
    let whole = exported(&app, json!({"name": "whole"})).await;
    assert_eq!((&whole["state"], &whole["manifest"]["events"]), (&json!("done"), &json!(4)), "{whole}");
    let filter = json!({"thread_id": "t", "event_types": ["b"]});
    let some = exported(&app, json!({"name": "some", "filter": filter})).await;
    assert_eq!((&some["manifest"]["filter"], &some["manifest"]["events"]), (&filter, &json!(1)));

    // What is fetched file by file is proven elsewhere.
    let (id, fetched) = (some["export_id"].as_str().unwrap(), folder.path().join("fetched"));
    fs::create_dir(&fetched).unwrap();
    for name in ["manifest.json", "manifest.sig", "events.jsonl", "hashes"] {
        let reply = app.get(&format!("/api/exports/{id}/files/{name}")).await;
        assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
        assert_eq!(reply.header(header::CONTENT_LENGTH), reply.text.len().to_string());
        fs::write(fetched.join(name), reply.text).unwrap();
    }
    let report = verify_export(&fetched, VerifyExport::default()).unwrap();
    assert_eq!((report.damage, report.events), (None, 1));
    for name in ["keys", "..%2F..%2Fdata%2Fkeys%2Fmaster.key", "unfinished.json", "."] {
        let reply = app.get(&format!("/api/exports/{id}/files/{name}")).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{name} {reply:?}");
    }
    let listed = app.get("/api/exports").await.json();
    assert_eq!(listed["data"], json!([whole, some]));
    // A backup is no export.
    let backup = app.post("/api/backups", json!({})).await.json();
    let path = format!("/api/exports/{}", backup["backup_id"].as_str().unwrap());
    app.get(&path).await.check_problem(404, "not_found", "no export");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_that_makes_no_sense_is_refused() {
    let (app, _folder) = on_disk();
    app.thread("t").await;
    exported(&app, json!({"name": "taken"})).await;
    app.post("/api/exports", json!({"name": "taken"})).await.check_problem(409, "conflict", "named taken");
    for (order, named) in [
        (json!({"name": "../x"}), "invalid name"),
        (json!({"filter": {"thread": "t"}}), "filter"),
        (json!({"filter": {"from": "yesterday"}}), "filter"),
        (json!({"filter": {"run_id": ""}}), "filter"),
        (json!({"out": "x"}), "out"),
    ] {
        let refused = app.post("/api/exports", order.clone()).await;
        assert!(refused.status.is_client_error(), "{order} {refused:?}");
        assert!(refused.text.contains(named), "{order} {refused:?}");
    }
    let unknown = "/api/exports/0198f000-0000-7000-8000-000000000001";
    app.get(unknown).await.check_problem(404, "not_found", "no export");
    assert_eq!(app.get("/api/exports/x").await.status, StatusCode::UNPROCESSABLE_ENTITY);
}
