//! Where the views stand, and making them again over HTTP.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::app::{App, request};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

async fn view(app: &App, name: &str) -> Value {
    let views = app.get("/api/projections").await.json();
    let found = views.as_array().unwrap().iter().find(|view| view["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {views}")).clone()
}

/// The end of a rebuild, once it is there.
async fn ended(app: &App, name: &str, number: &Value) -> Value {
    let end = async {
        loop {
            let last = view(app, name).await["last_rebuild"].take();
            if last["number"] == *number {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, end).await.expect("the rebuild ends")
}

#[tokio::test(flavor = "multi_thread")]
async fn views_are_made_again_and_compared_on_request() {
    let app = App::new();
    app.thread("t").await;
    let run = app.run("t").await;
    let before = app.get("/api/threads/t/delegations").await.json();
    let begun = app.post("/api/projections/ledger/rebuild", json!({})).await;
    assert_eq!(begun.status, StatusCode::ACCEPTED, "{begun:?}");
    let begun = begun.json();
    assert_eq!(
        (&begun["views"], &begun["check"], &begun["phase"]),
        (&json!(["ledger"]), &json!(false), &json!("folding"))
    );
    let end = ended(&app, "ledger", &begun["number"]).await;
    assert_eq!((&end["outcome"], &end["position"]), (&json!("replaced"), &json!(app.log.head().get())));
    assert_eq!(app.get("/api/threads/t/delegations").await.json(), before);
    let all = app.post("/api/projections/rebuild", json!({"check": true})).await.json();
    assert!(all["views"].as_array().unwrap().len() >= 4, "{all}");
    assert_eq!(ended(&app, "cards", &all["number"]).await["outcome"], "same");
    let shown = view(&app, "runs").await;
    assert_eq!((&shown["lag"], &shown["lag_seconds"], &shown["parked"]), (&json!(0), &json!(0), &json!(0)));
    assert_eq!(shown["last_rebuild"]["outcome"], "same");
    assert!(shown.get("rebuild").is_none(), "{shown}");
    assert_eq!(run["status"], "success");
}

#[tokio::test]
async fn what_cannot_be_made_again_is_refused_in_plain_words() {
    let app = App::new();
    let nobody = app.send(request(Method::POST, "/api/projections/nobody/rebuild", None)).await;
    nobody.check_problem(404, "not_found", "there is no view nobody; the views are threads, runs");
    app.post("/api/projections/runs/rebuild", json!({"chek": true}))
        .await
        .check_problem(422, "invalid", "chek");
    let turn = app.server.projections.begin_rebuild(&projections::RebuildRequest::default()).unwrap();
    let busy = app.post("/api/projections/runs/rebuild", json!({})).await;
    busy.check_problem(409, "conflict", "being made again already");
    drop(turn);
    app.get("/api/projections/nobody/parked").await.check_problem(404, "not_found", "no view nobody");
}

#[tokio::test]
async fn what_a_view_passed_over_is_listed_page_by_page() {
    let app = App::new();
    app.thread("t").await;
    for _ in 0..3 {
        // It claims to be of ours and has not its shape.
        let mut step = crate::testing::run_event("r", "subagent.step", "{}");
        step.category = "subagent".to_owned();
        crate::testing::append(&app.log, "t", vec![step]).await;
    }
    app.get("/api/threads").await;
    let (mut seen, mut after) = (Vec::new(), 0);
    loop {
        let path = format!("/api/projections/runs/parked?limit=2&after_position={after}");
        let page = app.get(&path).await.json();
        let rows = page["data"].as_array().unwrap().clone();
        assert!(rows.iter().all(|row| row["reason"].as_str().unwrap().contains("subagent.step")), "{page}");
        seen.extend(rows.iter().map(|row| row["position"].as_u64().unwrap()));
        after = *seen.last().unwrap();
        if page["has_more"] == false {
            break;
        }
    }
    assert_eq!(seen, (app.log.head().get() - 2..=app.log.head().get()).collect::<Vec<_>>());
    assert_eq!(view(&app, "runs").await["parked"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_may_wait_for_a_position_and_is_told_where_the_log_is() {
    let app = App::new();
    app.thread("t").await;
    let next = app.log.head().get() + 1;
    for path in ["/api/threads/t", "/api/threads", "/api/threads/t/runs", "/api/usage"] {
        let early = app.get(&format!("{path}?min_position={}", next + 5)).await;
        early.check_problem(409, "stale", &format!("not yet at {}", next + 5));
    }
    let path = format!("/api/threads/t?min_position={next}");
    let later = async {
        crate::testing::append(&app.log, "t", vec![crate::testing::event("x", "1")]).await;
    };
    let (reply, ()) = tokio::join!(app.get(&path), later);
    assert_eq!(reply.json()["seq"], 2, "{reply:?}");
}
