use std::time::Duration;

use axum::{
    body::Body,
    http::{Method, Request, StatusCode, header},
};
use domain::event::RunStatus;
use serde_json::Value;

use super::app::{App, Reply, request, saying};
use crate::testing::{self, append, run_event, run_status};

const PATIENCE: Duration = Duration::from_secs(20);

/// The frames of a stream that ends.
fn frames(reply: &Reply) -> Vec<Vec<&str>> {
    assert!(reply.text.ends_with("\n\n"), "{:?}", reply.text);
    reply.text.split_terminator("\n\n").map(|frame| frame.lines().collect()).collect()
}

fn resume(path: &str, cursor: &[u8]) -> Request<Body> {
    let mut request = request(Method::GET, path, None);
    request.headers_mut().insert("last-event-id", cursor.try_into().unwrap());
    request
}

#[tokio::test]
async fn a_run_streams_from_its_first_event_to_its_end() {
    let app = App::new();
    app.thread("t").await;
    let whole = app.send(request(Method::POST, "/api/threads/t/runs/stream", Some(&saying("go")))).await;
    assert_eq!(whole.status, StatusCode::OK, "{whole:?}");
    assert_eq!(whole.header(header::CONTENT_TYPE), "text/event-stream");
    assert_eq!(whole.header(header::CACHE_CONTROL), "no-store, no-transform");
    assert_eq!(whole.headers["x-accel-buffering"], "no");
    let location = whole.header(header::CONTENT_LOCATION).to_owned();

    let all = frames(&whole);
    let run_id = location.rsplit('/').next().unwrap();
    let metadata = format!("data: {{\"run_id\":\"{run_id}\",\"thread_id\":\"t\"}}");
    assert_eq!(all.first().unwrap(), &["event: metadata", metadata.as_str()]);
    assert_eq!(all.last().unwrap(), &["event: end", "data: null"]);
    let events = &all[1..all.len() - 1];
    assert_eq!(events[0][1], "event: run.start");
    assert_eq!(events.last().unwrap()[1], "event: run.status");

    // The stream is the log: same records, same order, same positions.
    let page = app.get(&format!("{location}/events")).await.json();
    let streamed: Vec<Value> = events
        .iter()
        .map(|frame| serde_json::from_str(frame[2].strip_prefix("data: ").unwrap()).unwrap())
        .collect();
    assert_eq!(Value::Array(streamed.clone()), page);
    for (frame, record) in events.iter().zip(&streamed) {
        assert_eq!(frame[0], format!("id: {}", record["position"]));
    }

    // Field report 58: later, and from every cursor, history and end at once.
    let again = app.get(&format!("{location}/stream")).await;
    assert_eq!(frames(&again), all);
    for (missing, record) in streamed.iter().enumerate() {
        let position = record["position"].to_string();
        let rest = app.send(resume(&format!("{location}/stream"), position.as_bytes())).await;
        assert_eq!(frames(&rest)[1..], all[missing + 2..], "after {position}");
    }
}

// Field report 61: child frames have their own names and say whose they are.
#[tokio::test]
async fn child_frames_are_told_apart() {
    let app = App::new();
    app.thread("t").await;
    let whole = app.send(request(Method::POST, "/api/threads/t/runs/stream", Some(&saying("go")))).await;
    let mut children = 0;
    for frame in frames(&whole).iter().filter(|frame| frame.len() == 3) {
        let record: Value = serde_json::from_str(frame[2].strip_prefix("data: ").unwrap()).unwrap();
        let is_child = record["category"] == "subagent";
        children += usize::from(is_child);
        assert_eq!(is_child, frame[1].starts_with("event: subagent."), "{frame:?}");
        assert!(
            !is_child || record["delegation_id"].is_string() && record["task_id"].is_string(),
            "{frame:?}"
        );
        assert!(is_child || record["category"] != "message" || !frame[2].contains("I look."), "{frame:?}");
    }
    assert!(children >= 5, "{children} child frames");
}

// Field report 63.
#[tokio::test]
async fn a_cursor_that_is_not_ours_is_refused() {
    let app = App::without_followers();
    append(&app.log, "t", vec![run_event("r", "run.start", "{}"), run_status("r", RunStatus::Success)]).await;
    let path = "/api/threads/t/runs/r/stream";
    for cursor in ["-1", "abc", "18446744073709551616", "3", "0", "1.5"] {
        app.send(resume(path, cursor.as_bytes())).await.check_problem(400, "bad_request", "Last-Event-ID");
    }
    app.send(resume(path, b"\xff")).await.check_problem(400, "bad_request", "Last-Event-ID");
    assert_eq!(frames(&app.send(resume(path, b"")).await).len(), 4);
    assert_eq!(frames(&app.send(resume(path, b"2")).await).len(), 2);
}

#[tokio::test]
async fn only_what_is_there_can_be_followed() {
    let app = App::without_followers();
    append(&app.log, "t", vec![run_status("r", RunStatus::Running)]).await;
    app.get("/api/threads/t/runs/x/stream").await.check_problem(404, "not_found", "Run x not found");
    app.get("/api/threads/u/runs/r/stream").await.check_problem(404, "not_found", "Thread u not found");
    app.get("/api/threads/t/runs/r/stream?last=1").await.check_problem(422, "invalid", "last");
}

#[tokio::test]
async fn streams_are_counted_and_bounded() {
    let app = App::without_followers();
    append(&app.log, "t", vec![run_status("r", RunStatus::Running)]).await;
    let path = "/api/threads/t/runs/r/stream";
    let open = app.open(request(Method::GET, path, None)).await;
    assert_eq!(app.get("/api/capacity").await.json()["open_streams"], 1);
    drop(open);
    assert_eq!(app.get("/api/capacity").await.json()["open_streams"], 0);

    let taken: Vec<_> = std::iter::from_fn(|| app.server.streams.take().ok()).collect();
    let refused = app.get(path).await;
    refused.check_problem(429, "rate_limited", &taken.len().to_string());
    assert_eq!(refused.header(header::RETRY_AFTER), "1");
}

/// The id of the only run, as soon as there is one.
async fn first_run(app: &App) -> domain::ids::RunId {
    loop {
        let runs = app.get("/api/threads/t/runs").await.json();
        if let Some(run_id) = runs["data"][0]["run_id"].as_str() {
            return testing::run(run_id);
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_that_asked_for_it_takes_its_run_along() {
    for (leaving, route, is_cancelled) in [
        ("cancel", "stream", true),
        ("cancel", "wait", true),
        ("continue", "stream", false),
        ("continue", "wait", false),
    ] {
        let app = App::thinking();
        app.thread("t").await;
        let mut body = saying("go");
        body["on_disconnect"] = leaving.into();
        let path = format!("/api/threads/t/runs/{route}");
        let mut client = Box::pin(app.open(request(Method::POST, &path, Some(&body))));
        let run_id = tokio::select! {
            // The stream is open; the client goes away with the answer. The wait does not answer.
            response = &mut client => { drop(response); first_run(&app).await }
            run_id = first_run(&app) => run_id,
        };
        drop(client);
        let thread_id = testing::thread("t");
        let end = app.server.until_ended(&thread_id, &run_id);
        if is_cancelled {
            tokio::time::timeout(PATIENCE, end).await.unwrap().unwrap();
        } else {
            assert!(tokio::time::timeout(Duration::from_millis(100), end).await.is_err(), "{route}");
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_while_its_run_starts_leaves_no_orphan() {
    let app = App::new();
    app.thread("t").await;
    let client = app.open(request(Method::POST, "/api/threads/t/runs", Some(&saying("go"))));
    assert!(futures::poll!(Box::pin(client)).is_pending());
    let run_id = tokio::time::timeout(PATIENCE, first_run(&app)).await.unwrap();
    let thread_id = testing::thread("t");
    tokio::time::timeout(PATIENCE, app.server.until_ended(&thread_id, &run_id)).await.unwrap().unwrap();
}
