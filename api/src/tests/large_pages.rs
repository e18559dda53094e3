//! Pages are sent in pieces: what a server holds of one does not depend on how large its records are.

use axum::{
    body::{BodyDataStream, Bytes},
    http::Method,
};
use eventlog::PAGE_BYTES_MAX;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use super::app::{App, request};
use crate::testing::{append, run_event};

/// Each of them is half a piece.
const RECORD_BYTES: usize = PAGE_BYTES_MAX / 2;
const RECORDS: usize = 7;
/// A piece, and the record that reached its end.
const FRAME_BYTES_MAX: usize = 2 * PAGE_BYTES_MAX;

async fn recorded() -> App {
    let app = App::new();
    for number in 0..RECORDS {
        let said = format!("{number} {}", "x".repeat(RECORD_BYTES));
        let mut event = run_event("r", "note", &serde_json::to_string(&said).unwrap());
        event.category = "message".to_owned();
        append(&app.log, "t", vec![event]).await;
    }
    app
}

async fn frames(frames: BodyDataStream) -> Result<Vec<Bytes>, axum::Error> {
    frames.try_collect().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_large_records_is_whole_and_never_held_whole() {
    let app = recorded().await;
    for path in [
        "/api/threads/t/events",
        "/api/threads/t/runs/r/events",
        "/api/events",
        "/api/threads/t/messages",
        "/api/threads/t/messages/page",
        "/api/threads/t/runs/r/messages",
    ] {
        let limited = format!("{path}?limit={}", RECORDS - 1);
        let open = app.open(request(Method::GET, &limited, None)).await;
        let frames = frames(open.into_body().into_data_stream()).await.unwrap();
        let sizes: Vec<_> = frames.iter().map(Bytes::len).collect();
        assert!(sizes.len() > 2 && sizes.iter().all(|size| *size <= FRAME_BYTES_MAX), "{path}: {sizes:?}");
        let page: Value = serde_json::from_slice(&frames.concat()).unwrap();
        let rows = page.get("data").unwrap_or(&page).as_array().unwrap();
        let number = |row: &Value| row["content"].as_str().unwrap().split(' ').next().unwrap().to_owned();
        // Messages without a cursor are the last ones.
        let first = usize::from(path.contains("messages"));
        let expected: Vec<_> = (first..).take(RECORDS - 1).map(|number| number.to_string()).collect();
        assert_eq!(rows.iter().map(number).collect::<Vec<_>>(), expected, "{path}");
        if page.is_object() {
            assert_eq!(page["has_more"], true, "{path}");
        }
        if path.ends_with("/page") {
            assert_eq!(page["next_before_seq"], 2, "{path}");
        }
    }
    let last = app.get("/api/threads/t/messages/page?before_seq=2").await.json();
    assert_eq!((&last["has_more"], &last["next_before_seq"]), (&Value::Bool(false), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_in_the_middle_is_not_taken_for_the_end() {
    let app = recorded().await;
    let open = app.open(request(Method::GET, "/api/threads/t/events", None)).await;
    let mut body = open.into_body().into_data_stream();
    assert!(body.next().await.unwrap().is_ok());
    app.log.clone().close().await;
    assert!(frames(body).await.is_err());
}
