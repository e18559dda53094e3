//! Pages are sent in pieces: what a server holds of one does not depend on how large its records are.

use axum::{body::BodyDataStream, http::Method};
use eventlog::PAGE_BYTES_MAX;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use super::app::{App, request};
use crate::testing::{append, run_event};

/// Each of them is a quarter of a piece.
const RECORD_BYTES: usize = PAGE_BYTES_MAX / 4;
const RECORDS: usize = 14;
/// A piece and the record that reached its end, as text with escapes.
const FRAME_BYTES_MAX: usize = 2 * PAGE_BYTES_MAX + RECORD_BYTES;

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

async fn frames(frames: BodyDataStream) -> Result<Vec<usize>, axum::Error> {
    frames.map_ok(|frame| frame.len()).try_collect().await
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
        let page = app.get(&format!("{path}?limit={}", RECORDS - 1)).await.json();
        let rows = page.get("data").unwrap_or(&page).as_array().unwrap();
        let numbers: Vec<_> =
            rows.iter().map(|row| row["content"].as_str().unwrap().split(' ').next().unwrap()).collect();
        let is_backward = path.contains("messages");
        let expected: Vec<_> =
            (usize::from(is_backward)..).take(RECORDS - 1).map(|number| number.to_string()).collect();
        assert_eq!(numbers, expected, "{path}");
        if page.is_object() {
            assert_eq!(page["has_more"], true, "{path}");
        }
        if path.ends_with("/page") {
            assert_eq!(page["next_before_seq"], 2, "{path}");
        }
        let sizes = frames(app.open(request(Method::GET, path, None)).await.into_body().into_data_stream())
            .await
            .unwrap();
        assert!(sizes.len() > 2 && sizes.iter().all(|size| *size <= FRAME_BYTES_MAX), "{path}: {sizes:?}");
    }
    let last = app.get("/api/threads/t/messages/page?limit=14").await.json();
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
