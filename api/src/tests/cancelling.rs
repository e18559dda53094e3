use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::app::App;

const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until a path answers as wanted.
async fn until(app: &App, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let reached = async {
        loop {
            let reply = app.get(path).await;
            if reply.status == StatusCode::OK && is_wanted(&reply.json()) {
                return reply.json();
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("{path} did not get there"))
}

// Facts §12 line 112: double cancel, 202; finished run, 409; unknown, 404.
#[tokio::test]
async fn a_run_is_cancelled_once_and_may_be_asked_twice() {
    let app = App::thinking();
    app.thread("t").await;
    let run_id = app.start("t").await;
    let path = format!("/api/threads/t/runs/{run_id}");
    for _ in 0..2 {
        let reply = app.post(&format!("{path}/cancel"), Value::Null).await;
        assert_eq!((reply.status, reply.text.as_str()), (StatusCode::ACCEPTED, ""));
    }
    until(&app, &path, |run| run["status"] == "interrupted").await;
    let ended = async {
        loop {
            // The run may be ended and still be at its last steps: until they are done it is 202.
            let reply = app.post(&format!("{path}/cancel"), Value::Null).await;
            if reply.status != StatusCode::ACCEPTED {
                return reply;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.unwrap().check_problem(409, "conflict", "interrupted");
    app.post("/api/threads/t/runs/other/cancel", Value::Null).await.check_problem(
        404,
        "not_found",
        "Run other not found",
    );
    app.post("/api/threads/u/runs/r/cancel", Value::Null).await.check_problem(
        404,
        "not_found",
        "Thread u not found",
    );
}

#[tokio::test]
async fn a_client_may_wait_for_the_end() {
    let app = App::thinking();
    app.thread("t").await;
    let run_id = app.start("t").await;
    let reply = app.post(&format!("/api/threads/t/runs/{run_id}/cancel?wait=true"), Value::Null).await;
    assert_eq!(reply.status, StatusCode::NO_CONTENT);
    assert_eq!(app.get(&format!("/api/threads/t/runs/{run_id}")).await.json()["status"], "interrupted");
    let rollback =
        app.post(&format!("/api/threads/t/runs/{run_id}/cancel?action=rollback"), Value::Null).await;
    rollback.check_problem(422, "invalid", "action");
}

#[tokio::test]
async fn one_delegation_is_cancelled_by_either_of_its_names() {
    for name in ["task_id", "delegation_id"] {
        let app = App::waiting();
        app.thread("t").await;
        let run_id = app.start("t").await;
        let ledger =
            until(&app, "/api/threads/t/delegations", |ledger| ledger[0]["status"] == "in_progress").await;
        let task = format!("/api/threads/t/runs/{run_id}/tasks/{}/cancel", ledger[0][name].as_str().unwrap());
        assert_eq!(app.post(&task, Value::Null).await.status, StatusCode::ACCEPTED);

        let run =
            until(&app, &format!("/api/threads/t/runs/{run_id}"), |run| run["status"] == "success").await;
        assert_eq!(run["result"], "All done.");
        let ledger = app.get("/api/threads/t/delegations").await.json();
        assert_eq!((&ledger[0]["status"], &ledger[0]["delivered"]), (&json!("cancelled"), &json!(true)));
        app.post(&task, Value::Null).await.check_problem(409, "conflict", "ended");
        let unknown = format!("/api/threads/t/runs/{run_id}x/tasks/c/cancel");
        app.post(&unknown, Value::Null).await.check_problem(404, "not_found", "not found");
    }
}
