//! Requests that make no sense: each is refused with a problem that names what is wrong, and the
//! next request works.

use contracts::wire::problem::PROBLEM_CONTENT_TYPE;
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    client::{Answered, Client, run_body},
    server::{Setup, TestServer},
    stub_model::{Reply, StubModel},
};

async fn server() -> (StubModel, TestServer) {
    let stub = StubModel::start(|_| Reply::says("fine").into()).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    (stub, server)
}

#[track_caller]
fn assert_refused(answered: &Answered, status: u16, code: &str, detail: &str) {
    assert_eq!((answered.status, answered.body["code"].as_str()), (status, Some(code)), "{answered:?}");
    assert_eq!(answered.content_type, PROBLEM_CONTENT_TYPE, "{answered:?}");
    assert!(answered.detail().contains(detail), "{answered:?} does not say {detail:?}");
}

/// After whatever was refused, the server does its work.
async fn assert_works(client: &Client) {
    let (_, run) = client.run_to_end("still there?").await;
    assert_eq!(run["status"], "success");
    assert_eq!(client.get("/readyz").await.status, 200);
}

// Facts §12 line 105, over HTTP.
#[tokio::test]
async fn malformed_ids_are_named() {
    let (_stub, server) = server().await;
    let long = "x".repeat(65);
    for id in ["a.b", "..%2Fx", "a%20b", "%C3%A4", "%00", long.as_str()] {
        for path in ["", "/runs", "/events", "/delegations", "/runs/r/events", "/runs/r/tasks/t/card"] {
            let answered = server.client.get(&format!("/api/threads/{id}{path}")).await;
            assert_refused(&answered, 422, "invalid", "thread_id");
        }
        let answered = server.client.get(&format!("/api/threads/t/runs/{id}")).await;
        assert_refused(&answered, 422, "invalid", "run_id");
    }
    let made = server.client.post("/api/threads", &json!({"thread_id": "../x"})).await;
    assert_refused(&made, 422, "invalid", "thread_id");
    let answered = server.client.get(&format!("/api/threads/t/runs/r/tasks/{}/card", "x".repeat(257))).await;
    assert_refused(&answered, 422, "invalid", "task_id");
    assert_works(&server.client).await;
}

/// A body that starts a run, with one thing wrong in it.
fn bad_bodies() -> Vec<(Value, u16, &'static str, &'static str)> {
    let good = run_body("x", json!({}));
    let with = |key: &str, value: Value| {
        let mut body = good.clone();
        body[key] = value;
        body
    };
    let configured = |keys: Value| run_body("x", keys);
    vec![
        (json!({}), 422, "invalid", "input"),
        (json!([]), 422, "invalid", "object"),
        (with("assistant_id", json!("someone")), 422, "invalid", "assistant_id"),
        (with("assistant_id", json!(5)), 422, "invalid", "assistant_id"),
        (with("surprise", json!(1)), 422, "invalid", "surprise"),
        (with("input", json!({"messages": []})), 422, "invalid", "input.messages"),
        (
            with("input", json!({"messages": [{"role": "user", "content": " "}]})),
            422,
            "invalid",
            "input.messages",
        ),
        (
            with("input", json!({"messages": [{"role": "system", "content": "x"}]})),
            400,
            "bad_request",
            "messages[0].role",
        ),
        (
            with("input", json!({"messages": [{"role": "user", "content": 5}]})),
            400,
            "bad_request",
            "messages[0].content",
        ),
        (with("input", json!({"messages": [{"role": "user"}]})), 422, "invalid", "content"),
        (with("input", json!({"messages": "x"})), 422, "invalid", "messages"),
        (with("multitask_strategy", json!("rollback")), 422, "invalid", "multitask_strategy"),
        (with("multitask_strategy", json!("whatever")), 422, "invalid", "multitask_strategy"),
        (with("stream_mode", json!(["values", "tea"])), 422, "invalid", "stream_mode"),
        (with("metadata", json!([])), 422, "invalid", "metadata"),
        (with("metadata", json!({"auth_token": "x"})), 422, "invalid", "metadata.auth_token"),
        (configured(json!({"max_turnz": 5})), 422, "invalid", "max_turnz"),
        (configured(json!({"model_name": "no-such-model"})), 400, "bad_request", "no-such-model"),
        (configured(json!({"model_name": 5})), 422, "invalid", "model_name"),
        (configured(json!({"subagent_enabled": "yes"})), 422, "invalid", "subagent_enabled"),
        (configured(json!({"max_total_subagents": "six"})), 422, "invalid", "max_total_subagents"),
        (run_body(&"x".repeat(200_001), json!({})), 422, "invalid", "200001"),
    ]
}

#[tokio::test]
async fn bad_bodies_are_refused_by_name_on_every_entrance() {
    let (stub, server) = server().await;
    let thread_id = server.client.create_thread().await;
    for entrance in ["runs", "runs/stream", "runs/wait"] {
        for (body, status, code, detail) in bad_bodies() {
            let path = format!("/api/threads/{thread_id}/{entrance}");
            assert_refused(&server.client.post(&path, &body).await, status, code, detail);
        }
    }
    assert_eq!(stub.count(), 0, "nothing was asked of a model");
    assert_eq!(server.client.thread_events(&thread_id).await.len(), 1, "nothing was recorded");
    assert_works(&server.client).await;
}

#[tokio::test]
async fn bodies_that_are_no_json_or_too_large_are_refused() {
    let (_stub, server) = server().await;
    let client = &server.client;
    let thread_id = client.create_thread().await;
    let path = format!("/api/threads/{thread_id}/runs");
    let post = |body: Vec<u8>, content_type: &'static str| {
        let request = client.request(Method::POST, &path).header("content-type", content_type).body(body);
        async move { client.send(request).await }
    };
    let json = "application/json";
    assert_refused(&post(b"{\"input\":".to_vec(), json).await, 400, "bad_request", "not JSON");
    assert_refused(&post(b"\xFF\xFE".to_vec(), json).await, 400, "bad_request", "not JSON");
    assert_refused(&post(Vec::new(), json).await, 400, "bad_request", "not JSON");
    assert_refused(&post(b"{}{}".to_vec(), json).await, 400, "bad_request", "not JSON");
    assert_refused(&post(b"{}".to_vec(), "text/plain").await, 415, "unsupported_media_type", "text/plain");
    let large = run_body(&"x".repeat(3_000_000), serde_json::json!({})).to_string().into_bytes();
    assert_refused(&post(large, json).await, 413, "payload_too_large", "bytes");
    assert_works(client).await;
}

// Facts §12 line 108, for what there is: limits and cursors out of their ranges are refused.
#[tokio::test]
async fn bad_queries_are_refused_by_name() {
    let (_stub, server) = server().await;
    let (thread_id, run) = server.client.run_to_end("x").await;
    let events = format!("/api/threads/{thread_id}/runs/{}/events", run["run_id"].as_str().unwrap());
    for (query, detail) in [
        ("limit=0", "limit"),
        ("limit=2001", "limit"),
        ("limit=-1", "limit"),
        ("limit=many", "limit"),
        ("limit=1&limit=2", "limit"),
        ("after_seq=0", "after_seq"),
        ("after_seq=-1", "after_seq"),
        ("after_seq=18446744073709551616", "after_seq"),
        ("after_seq=1.5", "after_seq"),
        ("after=3", "after"),
        ("task_id=", "task_id"),
    ] {
        assert_refused(&server.client.get(&format!("{events}?{query}")).await, 422, "invalid", detail);
    }
    let ledger = format!("/api/threads/{thread_id}/delegations");
    for (query, detail) in [("as_of=-1", "as_of"), ("min_seq=x", "min_seq"), ("run_id=a.b", "run_id")] {
        assert_refused(&server.client.get(&format!("{ledger}?{query}")).await, 422, "invalid", detail);
    }
    assert_works(&server.client).await;
}

// Facts §12 line 112.
#[tokio::test]
async fn what_is_not_there_or_over_says_so() {
    let (_stub, server) = server().await;
    let client = &server.client;
    let (thread_id, run) = client.run_to_end("x").await;
    let run_id = run["run_id"].as_str().unwrap();
    assert_eq!(client.cancel(&thread_id, run_id).await, 409);
    assert_eq!(client.cancel(&thread_id, "no-such-run").await, 404);
    assert_eq!(client.cancel("no-such-thread", run_id).await, 404);
    for path in [
        "/api/threads/no-such-thread".to_owned(),
        "/api/threads/no-such-thread/runs/r".to_owned(),
        format!("/api/threads/{thread_id}/runs/no-such-run"),
        format!("/api/threads/{thread_id}/runs/no-such-run/stream"),
        format!("/api/threads/{thread_id}/runs/{run_id}/tasks/no-such-task/card"),
    ] {
        assert_refused(&client.get(&path).await, 404, "not_found", "not found");
    }
    assert_refused(&client.get("/api/nothing").await, 404, "not_found", "no such route");
    let wrong = client.send(client.request(Method::DELETE, "/api/threads")).await;
    assert_refused(&wrong, 405, "method_not_allowed", "Allow");
    let again = client.post("/api/threads", &json!({"thread_id": thread_id})).await;
    assert_refused(&again, 409, "conflict", "exists already");
    assert_works(client).await;
}
