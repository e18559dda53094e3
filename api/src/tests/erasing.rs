//! Field report 100: an erasure has an id and states, what was erased is nowhere, and what is not
//! there is a 404.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::app::{App, Reply, request, saying};

async fn delete(app: &App, path: &str) -> Reply {
    app.send(request(Method::DELETE, path, None)).await
}

/// The card and receipts of the run's delegation, and everything else that names the thread.
fn paths_of(run: &str, task: &str) -> Vec<String> {
    let run = format!("/api/threads/t/runs/{run}");
    vec![
        "/api/threads/t".into(),
        "/api/threads/t?as_of=1".into(),
        "/api/threads/t/runs".into(),
        "/api/threads/t/delegations".into(),
        run.clone(),
        format!("{run}/stream"),
        format!("{run}/tasks/{task}/card"),
        format!("{run}/tasks/{task}/receipts"),
    ]
}

#[tokio::test]
async fn an_erased_thread_is_as_one_that_never_was() {
    let app = App::new();
    for thread in ["t", "other"] {
        app.thread(thread).await;
        app.run(thread).await;
    }
    let runs = app.get("/api/threads/t/runs").await.json();
    let run = runs["data"][0]["run_id"].as_str().unwrap().to_owned();
    let delegations = app.get("/api/threads/t/delegations").await.json();
    let task = delegations[0]["delegation_id"].as_str().unwrap().to_owned();
    for path in paths_of(&run, &task) {
        assert_eq!(app.get(&path).await.status, StatusCode::OK, "{path}");
    }
    let (seq, before) = (app.get("/api/threads/t").await.json()["seq"].clone(), others(&app).await);

    let erased = delete(&app, "/api/threads/t").await;
    assert_eq!((erased.status, &erased.json()["deleted"]), (StatusCode::OK, &seq));
    for path in paths_of(&run, &task) {
        app.get(&path).await.check_problem(404, "not_found", "not found");
    }
    for path in ["/api/threads/t/events".to_owned(), format!("/api/threads/t/runs/{run}/events")] {
        assert_eq!(app.get(&path).await.json(), json!([]), "what does not exist has no events");
    }
    let cancel = app.post(&format!("/api/threads/t/runs/{run}/cancel"), json!({})).await;
    cancel.check_problem(404, "not_found", "Thread t not found");
    let threads = app.get("/api/threads").await.json();
    assert_eq!(threads["data"].as_array().unwrap().len(), 1);
    assert_eq!(others(&app).await, before);
    let log = app.get("/api/events?limit=500").await.json();
    let of =
        |thread: &str| log.as_array().unwrap().iter().filter(|event| event["thread_id"] == thread).count();
    assert_eq!((of("t"), of("")), (0, 2), "gone from the whole log too, which says that it was erased");
    for event in log.as_array().unwrap() {
        contracts::run_event_stream().validate(event).unwrap();
    }
    let first = app.get("/api/events?limit=1").await.json();
    assert_eq!(first[0]["thread_id"], "other", "a page is full where there is more");
    for again in ["/api/threads/t", "/api/threads/nobody"] {
        delete(&app, again).await.check_problem(404, "not_found", "not found");
    }
}

async fn others(app: &App) -> Vec<Value> {
    let mut answers = Vec::new();
    for path in ["", "/runs", "/delegations", "/events"] {
        answers.push(app.get(&format!("/api/threads/other{path}")).await.json());
    }
    answers
}

#[tokio::test]
async fn an_erased_id_takes_nothing_more() {
    let app = App::new();
    app.thread("t").await;
    assert_eq!(delete(&app, "/api/threads/t").await.status, StatusCode::OK);
    let run = app.post("/api/threads/t/runs", saying("go")).await;
    run.check_problem(410, "gone", "thread t was erased");
    let made = app.post("/api/threads", json!({"thread_id": "t"})).await;
    made.check_problem(410, "gone", "thread t was erased");
    let fact =
        json!({"run_id": "r", "event_type": "note", "category": "trace", "content": "x", "metadata": {}});
    app.post("/api/threads/t/events", fact).await.check_problem(410, "gone", "was erased");
}

#[tokio::test]
async fn erasures_are_listed_with_their_states() {
    let app = App::new();
    assert_eq!(app.get("/api/erasures").await.json(), json!({"data": [], "has_more": false}));
    let mut ids = Vec::new();
    for thread in ["a", "b", "c"] {
        app.thread(thread).await;
        let erased = delete(&app, &format!("/api/threads/{thread}")).await.json();
        ids.push(erased["erasure_id"].as_str().unwrap().to_owned());
    }
    let one = app.get(&format!("/api/erasures/{}", ids[0])).await.json();
    assert_eq!((&one["thread_id"], &one["state"], &one["deleted"]), (&json!("a"), &json!("done"), &json!(1)));
    assert!(one["requested_at"].is_string() && one["done_at"].is_string());
    let first = app.get("/api/erasures?limit=2").await.json();
    assert_eq!((&first["data"][0], &first["has_more"]), (&one, &json!(true)));
    let rest = app.get(&format!("/api/erasures?limit=2&after={}", ids[1])).await.json();
    assert_eq!((&rest["data"][0]["thread_id"], &rest["has_more"]), (&json!("c"), &json!(false)));
    let nil = "00000000-0000-0000-0000-000000000000";
    app.get(&format!("/api/erasures/{nil}")).await.check_problem(404, "not_found", "Erasure");
    app.get(&format!("/api/erasures?after={nil}")).await.check_problem(404, "not_found", "Erasure");
    app.get("/api/erasures/x").await.check_problem(422, "invalid", "UUID");
}

#[tokio::test]
async fn a_run_at_work_ends_before_its_thread_is_erased() {
    let app = App::thinking();
    app.thread("t").await;
    let run = app.start("t").await;
    let stream = app.open(request(Method::GET, &format!("/api/threads/t/runs/{run}/stream"), None)).await;
    let reading = tokio::spawn(axum::body::to_bytes(stream.into_body(), usize::MAX));
    assert_eq!(delete(&app, "/api/threads/t").await.status, StatusCode::OK);
    let read = tokio::time::timeout(std::time::Duration::from_secs(10), reading).await;
    let frames = read.expect("the stream ends").unwrap().unwrap();
    let frames = String::from_utf8(frames.to_vec()).unwrap();
    assert!(frames.contains("event: end") || frames.contains("the run was erased"), "{frames}");
}

#[tokio::test]
async fn a_run_is_not_erased_alone() {
    let app = App::new();
    app.thread("t").await;
    delete(&app, "/api/threads/t/runs/r").await.check_problem(501, "unsupported", "DELETE /api/threads/t");
    delete(&app, "/api/threads/nobody/runs/r").await.check_problem(404, "not_found", "Thread nobody");
}
