use axum::http::StatusCode;
use serde_json::json;

use super::app::App;
use crate::testing::{append, event};

#[tokio::test]
async fn a_thread_is_made_once_and_shown() {
    let app = App::new();
    let made = app.post("/api/threads", json!({"thread_id": "t", "metadata": {"k": [1]}})).await;
    assert_eq!(made.status, StatusCode::OK);
    let thread = made.json();
    assert_eq!(
        (&thread["thread_id"], &thread["status"], &thread["seq"]),
        (&json!("t"), &json!("idle"), &json!(1))
    );
    assert_eq!((&thread["metadata"], &thread["user_id"]), (&json!({"k": [1]}), &json!("default")));
    assert_eq!(app.get("/api/threads/t").await.json(), thread);

    app.post("/api/threads", json!({"thread_id": "t"})).await.check_problem(
        409,
        "conflict",
        "thread t exists",
    );
    let unnamed = app.post("/api/threads", json!({})).await.json();
    assert!(!unnamed["thread_id"].as_str().unwrap().is_empty());
}

// Facts §12 line 105.
#[tokio::test]
async fn thread_ids_hold_to_their_alphabet() {
    let app = App::new();
    let long = "a".repeat(65);
    for bad in ["", "a.b", "../x", long.as_str(), "é"] {
        let made = app.post("/api/threads", json!({"thread_id": bad})).await;
        made.check_problem(422, "invalid", "invalid thread_id");
    }
    for bad in ["a.b", "..%2Fx", long.as_str(), "%C3%A9", "%20"] {
        for rest in [
            "",
            "/runs",
            "/events",
            "/delegations",
            "/runs/r/events",
            "/runs/r/stream",
            "/runs/r/tasks/x/card",
        ] {
            let reply = app.get(&format!("/api/threads/{bad}{rest}")).await;
            reply.check_problem(422, "invalid", "1 to 64 letters, digits, '_' or '-'");
        }
    }
    app.get("/api/threads/%FF").await.check_problem(422, "invalid", "UTF-8");
    app.get("/api/threads/t/runs/a.b").await.check_problem(422, "invalid", "invalid run_id");
    app.post("/api/threads", json!({"metadata": {"auth_token": "s"}})).await.check_problem(
        422,
        "invalid",
        "auth_token",
    );
}

// Field report 42: every list can be paged to its end.
#[tokio::test]
async fn pages_of_threads_give_each_once() {
    let app = App::new();
    for number in 0..25 {
        append(&app.log, &format!("t{number:02}"), vec![event("x", "1")]).await;
    }
    for limit in [1, 5, 7, 25, 200] {
        let (mut seen, mut after, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let page = app.get(&format!("/api/threads?limit={limit}{after}")).await.json();
            seen.extend(
                page["data"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|row| row["thread_id"].as_str().unwrap().to_owned()),
            );
            pages += 1;
            if page["has_more"] == false {
                break;
            }
            after = format!("&after={}", seen.last().unwrap());
        }
        let expected: Vec<_> = (0..25).map(|number| format!("t{number:02}")).collect();
        assert_eq!((seen, pages), (expected, 25_usize.div_ceil(limit)), "limit {limit}");
    }
    for bad in ["limit=0", "limit=201", "after=a.b", "offset=3"] {
        let reply = app.get(&format!("/api/threads?{bad}")).await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{bad}");
    }
}

#[tokio::test]
async fn a_thread_is_shown_as_it_was() {
    let app = App::new();
    app.thread("t").await;
    append(&app.log, "t", vec![event("x", "1"), event("x", "2")]).await;
    for seq in 1..=3 {
        assert_eq!(app.get(&format!("/api/threads/t?as_of={seq}")).await.json()["seq"], seq);
        assert_eq!(app.get(&format!("/api/threads/t?min_seq={seq}")).await.json()["seq"], 3);
    }
    for moment in ["as_of=4", "min_seq=4", "as_of=1&min_seq=4"] {
        let reply = app.get(&format!("/api/threads/t?{moment}")).await;
        reply.check_problem(409, "stale", "thread t is at seq 3 and not yet at 4");
    }
    app.get("/api/threads/nowhere").await.check_problem(404, "not_found", "Thread nowhere not found");
}
