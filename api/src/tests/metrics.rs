//! Figures in the text format of Prometheus.

use std::collections::BTreeMap;

use axum::http::{StatusCode, header};
use eventlog::{Append, Expected, Position, StreamId, SubscribeFrom};

use super::app::App;
use crate::testing;

/// The figures of the page by their names, each of which must have its kind before it.
async fn figures(app: &App) -> BTreeMap<String, f64> {
    let reply = app.get("/metrics").await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
    assert_eq!(reply.headers[header::CONTENT_TYPE], "text/plain; version=0.0.4; charset=utf-8");
    let mut kind = String::new();
    let mut figures = BTreeMap::new();
    for line in reply.text.lines() {
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            kind = typed.split(' ').next().unwrap().to_owned();
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let base = name.split('{').next().unwrap();
            let is_part =
                ["_bucket", "_sum", "_count"].iter().any(|end| base.strip_suffix(end) == Some(&*kind));
            assert!(base == kind || is_part, "{line}");
            assert!(figures.insert(name.to_owned(), value.parse().unwrap()).is_none(), "{line}");
        }
    }
    figures
}

#[tokio::test]
async fn what_was_recorded_is_counted() {
    let app = App::new();
    let before = figures(&app).await;
    assert_eq!((before["remit_log_writable"], before["remit_subagents_queued"]), (1.0, 0.0));
    app.thread("t").await;
    let after = figures(&app).await;
    assert!(after["remit_log_events_total"] > before["remit_log_events_total"]);
    assert_eq!(after["remit_log_position"], app.log.head().get() as f64);
    assert!(after.contains_key("remit_view_lag_events{view=\"ledger\"}"), "{after:?}");
}

#[tokio::test]
async fn commits_views_and_subscribers_are_measured() {
    // Nobody brings the views along here.
    let app = App::without_followers();
    let follower = app.log.subscribe(SubscribeFrom::All { after: Position::ZERO });
    app.log.append(note()).await.unwrap();
    let figures = figures(&app).await;
    assert_eq!(figures["remit_log_subscribers"], 1.0);
    drop(follower);
    assert_eq!(figures["remit_log_commit_events_bucket{le=\"1\"}"], 1.0);
    assert_eq!(figures["remit_log_commit_events_sum"], 1.0);
    let commits =
        ["_count", "_bucket{le=\"+Inf\"}"].map(|end| figures[&format!("remit_log_commit_seconds{end}")]);
    assert_eq!(commits, [1.0, 1.0]);
    assert!(figures["remit_log_commit_seconds_max"] > 0.0);
    assert_eq!(figures["remit_log_queue_capacity"], 1_024.0);
    assert_eq!(figures["remit_log_poisoned"], 0.0);
    assert!(figures["remit_disk_free_bytes"] > 0.0);
    assert_eq!(figures["remit_view_lag_events{view=\"ledger\"}"], 1.0);
    assert!(figures["remit_view_lag_seconds{view=\"ledger\"}"] > 0.0);
    assert_eq!(self::figures(&app).await["remit_log_subscribers"], 0.0);
}

fn note() -> Append {
    let stream = StreamId::Thread(testing::thread("t"));
    let events = vec![testing::event("note", "{}")];
    Append { stream, expected: Expected::Any, idempotency_key: None, events }
}

// Every figure is explained to those who operate a server.
#[tokio::test]
async fn every_figure_is_documented() {
    const DOCUMENT: &str = include_str!("../../../docs/OPERATIONS.md");
    let page = App::new().get("/metrics").await.text;
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("# TYPE ").and_then(|typed| typed.split(' ').next()) {
            assert!(DOCUMENT.contains(&format!("`{name}`")), "docs/OPERATIONS.md does not explain {name}");
        }
    }
}
