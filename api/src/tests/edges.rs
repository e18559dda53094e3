use std::sync::Arc;

use axum::{
    body::Body,
    http::{Method, Request, StatusCode, header},
};
use eventlog::{
    EventLog, Options,
    store::{FaultyStore, SegmentStore},
};
use serde_json::{Value, json};

use super::app::{App, request, saying};
use crate::testing::{append, event};

#[tokio::test]
async fn unknown_routes_and_methods_are_problems_too() {
    let app = App::new();
    for path in ["/", "/api", "/api/", "/api/thread", "/api/threads/", "/api/threads/t/runs/r/x", "/healthz/"]
    {
        app.get(path).await.check_problem(404, "not_found", "no such route");
    }
    for (method, path, allow) in [
        (Method::DELETE, "/api/capacity", "GET,HEAD"),
        (Method::PUT, "/api/threads", "GET,HEAD,POST"),
        (Method::GET, "/api/threads/t/runs/wait", "POST"),
        (Method::POST, "/api/threads/t/delegations", "GET,HEAD"),
    ] {
        let reply = app.send(request(method, path, None)).await;
        reply.check_problem(405, "method_not_allowed", "Allow");
        assert_eq!(reply.header(header::ALLOW), allow, "{path}");
    }
}

#[tokio::test]
async fn bodies_that_cannot_be_read_are_problems() {
    let app = App::new();
    app.thread("t").await;
    for path in
        ["/api/threads", "/api/threads/t/runs", "/api/threads/t/runs/stream", "/api/threads/t/runs/wait"]
    {
        let post = async |content_type: &str, body: Vec<u8>| {
            let request = Request::post(path)
                .header(header::HOST, "localhost")
                .header(header::CONTENT_TYPE, content_type);
            app.send(request.body(Body::from(body)).unwrap()).await
        };
        post("text/plain", b"{}".to_vec()).await.check_problem(415, "unsupported_media_type", "text/plain");
        post("application/json", b"{\"metadata\": {".to_vec()).await.check_problem(
            400,
            "bad_request",
            "line 1 column 14",
        );
        post("application/json", b"\xff".to_vec()).await.check_problem(400, "bad_request", "line 1");
        post("application/json", b"[]".to_vec()).await.check_problem(422, "invalid", "object");
        post("application/json", b"{\"nope\": 1}".to_vec()).await.check_problem(422, "invalid", "nope");
        post("application/json", vec![b' '; 2 * 1024 * 1024 + 1]).await.check_problem(
            413,
            "payload_too_large",
            "2097152",
        );
    }
    let unsized_body =
        Body::from_stream(futures::stream::repeat_with(|| Ok::<_, std::io::Error>("        ".repeat(1024))));
    let endless = Request::post("/api/threads")
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json");
    app.send(endless.body(unsized_body).unwrap()).await.check_problem(413, "payload_too_large", "2097152");
    let bare = app.send(request(Method::POST, "/api/threads", None)).await;
    assert_eq!(bare.status, StatusCode::OK);
}

#[tokio::test]
async fn only_requests_that_mean_this_server_are_taken() {
    let app = App::new();
    let send = async |host: Option<&str>, origin: Option<&str>| {
        let mut request = Request::get("/api/capacity");
        for (name, value) in [(header::HOST, host), (header::ORIGIN, origin)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        app.send(request.body(Body::empty()).unwrap()).await
    };
    for (host, origin) in
        [("localhost:8700", None), ("127.0.0.1", Some("http://localhost:3000")), ("[::1]:1", None)]
    {
        assert_eq!(send(Some(host), origin).await.status, StatusCode::OK, "{host}");
    }
    send(Some("rebound.example:8700"), None).await.check_problem(403, "forbidden", "rebound.example");
    send(Some("localhost"), Some("https://evil.example")).await.check_problem(
        403,
        "forbidden",
        "evil.example",
    );
    send(Some("localhost"), Some("null")).await.check_problem(403, "forbidden", "Origin");
    send(None, None).await.check_problem(400, "bad_request", "Host");
    let unknown_route =
        Request::get("/x").header(header::HOST, "rebound.example").body(Body::empty()).unwrap();
    app.send(unknown_route).await.check_problem(403, "forbidden", "Host");
}

#[tokio::test]
async fn capacity_and_views_are_shown() {
    let app = App::new();
    let capacity = app.get("/api/capacity").await.json();
    assert_eq!((&capacity["running"], &capacity["queued"]), (&json!(0), &json!(0)));
    assert_eq!((&capacity["max_running"], &capacity["queue_capacity"]), (&json!(3), &json!(256)));
    assert_eq!(capacity["models"], json!(["offline"]));
    app.get("/api/capacity?x=1").await.check_problem(422, "invalid", "unknown query parameter \"x\"");

    let views = app.get("/api/projections").await.json();
    let names: Vec<_> = views.as_array().unwrap().iter().map(|view| view["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"runs") && names.contains(&"ledger") && names.contains(&"cards"), "{names:?}");
}

#[tokio::test]
async fn probes_tell_of_lag_and_of_a_poisoned_log() {
    let store = Arc::new(FaultyStore::new(Arc::new(SegmentStore::in_memory())));
    let log = EventLog::with_store(store.clone(), Options::default()).unwrap();
    let app = App::on(log);
    append(&app.log, "t", vec![event("x", "1")]).await;
    assert_eq!(app.get("/healthz?from=probe").await.json(), json!({"status": "ok"}));
    let ready = app.get("/readyz?from=probe").await;
    assert_eq!(
        (ready.status, &ready.json()["status"], &ready.json()["head"]),
        (StatusCode::OK, &json!("ready"), &json!(1))
    );
    assert!(ready.json()["views"].as_array().unwrap().iter().all(|view| view["lag"] == 1), "{ready:?}");

    store.fail_after(0);
    let refused = app.post("/api/threads", json!({"thread_id": "u"})).await;
    refused.check_problem(503, "unavailable", "restart");
    app.get("/readyz").await.check_problem(503, "unavailable", "refuses writes since one failed");
    app.post("/api/threads/t/runs", saying("go")).await.check_problem(503, "unavailable", "refuses writes");
    assert_eq!(app.get("/healthz").await.status, StatusCode::OK);
    assert_eq!(app.get("/api/threads/t/events").await.json().as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_problem_has_nothing_but_the_members_of_its_contract() {
    let reply = App::new().get("/api/threads/nowhere").await;
    let Value::Object(problem) = reply.json() else { panic!("not an object: {reply:?}") };
    let members: Vec<_> = problem.keys().map(String::as_str).collect();
    assert_eq!(members, ["type", "title", "status", "detail", "code"]);
    assert_eq!(reply.header(header::CACHE_CONTROL), "no-store");
}
