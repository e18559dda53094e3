use std::sync::Arc;

use axum::http::{StatusCode, header};
use domain::event::RunStatus;
use eventlog::{EventLog, Options};
use serde_json::{Value, json};

use super::app::{App, saying};
use crate::testing::{append, run_event, run_status};

#[tokio::test]
async fn a_run_is_started_waited_for_and_looked_at() {
    let app = App::new();
    app.thread("t").await;
    let mut body = saying("go");
    body["metadata"] = json!({"k": 1});
    let reply = app.post("/api/threads/t/runs/wait", body).await;
    let run = reply.json();
    assert_eq!(
        (&run["status"], &run["result"], &run["delegations"]),
        (&json!("success"), &json!("All done."), &json!(1))
    );
    assert_eq!(
        (&run["thread_id"], &run["model_name"], &run["metadata"]),
        (&json!("t"), &json!("offline"), &json!({"k": 1}))
    );
    let path = format!("/api/threads/t/runs/{}", run["run_id"].as_str().unwrap());
    assert_eq!(reply.header(header::CONTENT_LOCATION), path);

    // The view agrees with the answer that was folded from the log, at once and at every moment.
    assert_eq!(app.get(&path).await.json(), run);
    assert_eq!(app.get(&format!("{path}?as_of={}", run["seq"])).await.json(), run);
    assert_eq!(app.get(&format!("{path}?as_of=3")).await.json()["status"], "pending");
    app.get(&format!("{path}?as_of=1")).await.check_problem(404, "not_found", "not found");
    assert_eq!(app.get("/api/threads/t").await.json()["status"], "idle");
}

#[tokio::test]
async fn starting_answers_with_the_run_and_the_thread_is_busy() {
    let app = App::thinking();
    app.thread("t").await;
    let reply = app.post("/api/threads/t/runs", saying("go")).await;
    assert_eq!(reply.status, StatusCode::OK);
    let run = reply.json();
    assert!(matches!(run["status"].as_str(), Some("pending" | "running")), "{run}");
    assert_eq!(app.get("/api/threads/t").await.json()["status"], "busy");
    // Facts §8: an active run with the strategy `reject` is a conflict.
    let run_id = run["run_id"].as_str().unwrap();
    let second = app.post("/api/threads/t/runs", saying("again")).await;
    second.check_problem(409, "conflict", &format!("run {run_id} is active"));
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let app = App::new();
    app.thread("t").await;
    for route in ["runs", "runs/stream", "runs/wait"] {
        let post = async |body: Value| app.post(&format!("/api/threads/t/{route}"), body).await;
        post(json!({})).await.check_problem(422, "invalid", "input.messages");
        post(saying(" ")).await.check_problem(422, "invalid", "input.messages");
        post(saying(&"x".repeat(200_001))).await.check_problem(422, "invalid", "200000");
        let mut unknown = saying("go");
        unknown["config"] = json!({"configurable": {"model_name": "gpt-0"}});
        post(unknown).await.check_problem(400, "bad_request", "gpt-0");
        post(json!({"inputs": {}})).await.check_problem(422, "invalid", "inputs");
        let nowhere = app.post(&format!("/api/threads/nowhere/{route}"), saying("go")).await;
        nowhere.check_problem(404, "not_found", "Thread nowhere not found");
    }
    assert_eq!(app.get("/api/threads/t/events").await.json().as_array().unwrap().len(), 1);
}

// Field report 42.
#[tokio::test]
async fn pages_of_runs_are_newest_first_and_give_each_once() {
    let app = App::new();
    app.thread("t").await;
    for _ in 0..3 {
        app.run("t").await;
    }
    let all = app.get("/api/threads/t/runs").await.json();
    let ids = |page: &Value| -> Vec<String> {
        page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["run_id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!((ids(&all).len(), &all["has_more"]), (3, &json!(false)));
    assert!(all["data"][0]["seq"].as_u64() > all["data"][2]["seq"].as_u64());
    let first = app.get("/api/threads/t/runs?limit=2").await.json();
    assert_eq!(first["has_more"], true);
    let next = format!("/api/threads/t/runs?limit=2&before_seq={}", first["next_before_seq"]);
    let rest = app.get(&next).await.json();
    assert_eq!([ids(&first), ids(&rest)].concat(), ids(&all));
    assert_eq!(rest["has_more"], false);
    let tail = app.get("/api/threads/t").await.json()["seq"].clone();
    assert_eq!(app.get(&format!("{next}&as_of={tail}")).await.json(), rest);
    app.get(&format!("{next}&as_of=1000000")).await.check_problem(409, "stale", "not yet at 1000000");
    app.get("/api/threads/nowhere/runs").await.check_problem(404, "not_found", "Thread nowhere");
}

/// All pages of a list, by the field that names its rows.
async fn all_pages(app: &App, path: &str, name: &str, next: impl Fn(&Value) -> String) -> Vec<String> {
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.get(&format!("{path}{cursor}")).await.json();
        let rows = page["data"].as_array().unwrap_or_else(|| panic!("{page}"));
        seen.extend(rows.iter().map(|row| row[name].as_str().unwrap().to_owned()));
        if page["has_more"] == false {
            return seen;
        }
        cursor = next(&page);
    }
}

// Field report 42: nothing is cut in silence, and a cursor is no time.
#[tokio::test]
async fn two_hundred_and_fifty_runs_of_one_moment_are_listed_each_once() {
    let golden = format!("{}/../contracts/events/run.start.v1.json", env!("CARGO_MANIFEST_DIR"));
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
    let time: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let app = App::on(EventLog::in_memory(Options::new(Arc::new(move || time))));
    let mut expected = Vec::new();
    for number in 0..250 {
        let (run_id, mut settings) = (format!("run-{number}"), golden["content"].clone());
        settings["run_id"] = json!(run_id);
        append(&app.log, "t", vec![run_event(&run_id, "run.start", &settings.to_string())]).await;
        let of_thread = run_event(&run_id, "x", "1");
        append(&app.log, &format!("t{number:03}"), vec![of_thread]).await;
        expected.insert(0, run_id);
    }
    app.server.projections.catch_up().unwrap();
    for limit in ["", "limit=1&", "limit=7&", "limit=50&", "limit=125&", "limit=200&"] {
        let before = |page: &Value| format!("before_seq={}", page["next_before_seq"]);
        let runs = all_pages(&app, &format!("/api/threads/t/runs?{limit}"), "run_id", before).await;
        assert_eq!(runs, expected, "{limit}");
        let after = |page: &Value| {
            format!(
                "after={}",
                page["data"].as_array().unwrap().last().unwrap()["thread_id"].as_str().unwrap()
            )
        };
        let threads = all_pages(&app, &format!("/api/threads?{limit}"), "thread_id", after).await;
        assert_eq!(threads.len(), 251, "{limit}");
        assert!(threads.is_sorted_by(|one, other| one < other), "{limit}: {threads:?}");
    }
    for path in ["/api/threads/t/runs", "/api/threads"] {
        app.get(&format!("{path}?limit=201")).await.check_problem(422, "invalid", "limit");
    }
}

#[tokio::test]
async fn a_view_that_is_behind_is_never_shown_as_if_it_were_not() {
    let app = App::without_followers();
    append(&app.log, "t", vec![run_event("r", "x", "1"), run_status("r", RunStatus::Running)]).await;
    let paths = ["", "/runs/r", "/runs", "/delegations", "/runs/r/tasks/c/card"]
        .map(|path| format!("/api/threads/t{path}"));
    for reply in futures::future::join_all(paths.iter().map(|path| app.get(path))).await {
        reply.check_problem(409, "stale", "the views are at position 0");
    }
    // What is read from the log does not depend on views.
    assert_eq!(app.get("/api/threads/t?as_of=2").await.json()["seq"], 2);
    assert_eq!(app.get("/api/threads/t/events").await.json().as_array().unwrap().len(), 2);
    app.server.projections.catch_up().unwrap();
    assert_eq!(app.get("/api/threads/t").await.json()["seq"], 2);
    app.get("/api/threads/t/runs/r").await.check_problem(404, "not_found", "Run r not found");
}
