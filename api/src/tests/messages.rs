use axum::http::StatusCode;
use serde_json::{Value, json};

use super::app::App;

/// What somebody recorded as said in run `r`.
fn said(event_type: &str, caller: Option<&str>) -> Value {
    let metadata = caller.map_or_else(|| json!({}), |caller| json!({"caller": caller}));
    json!({"run_id": "r", "event_type": event_type, "category": "message", "content": "x", "metadata": metadata})
}

/// What is in no feed.
fn other() -> Value {
    json!({"run_id": "r", "event_type": "x.y", "category": "trace", "content": "x"})
}

async fn record(app: &App, thread_id: &str, events: Vec<Value>) {
    for events in events.chunks(1_000) {
        let reply = app.post(&format!("/api/threads/{thread_id}/events"), json!(events)).await;
        assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
    }
}

/// A thread whose messages have these seqs.
async fn with_messages_at(app: &App, thread_id: &str, seqs: &[u64]) {
    let last = seqs.iter().copied().max().unwrap_or(0);
    let event = |seq| if seqs.contains(&seq) { said("llm.human.input", None) } else { other() };
    record(app, thread_id, (1..=last).map(event).collect()).await;
}

fn seqs(rows: &Value) -> Vec<u64> {
    rows.as_array().unwrap().iter().map(|row| row["seq"].as_u64().unwrap()).collect()
}

async fn check(app: &App, query: &str, expected: &[u64]) {
    let reply = app.get(&format!("/api/threads/t/messages?{query}")).await;
    assert_eq!(seqs(&reply.json()), expected, "{query}");
}

// Facts §12 line 99.
#[tokio::test]
async fn cursors_are_exclusive_and_pages_ascend() {
    let app = App::new();
    with_messages_at(&app, "t", &(1..=10).collect::<Vec<_>>()).await;
    check(&app, "before_seq=6&limit=3", &[3, 4, 5]).await;
    check(&app, "after_seq=7&limit=3", &[8, 9, 10]).await;
    check(&app, "limit=3", &[8, 9, 10]).await;
    check(&app, "", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).await;
    check(&app, "after_seq=10", &[]).await;
    check(&app, "before_seq=1", &[]).await;
    // Both cursors bound the page, and `after_seq` decides its direction, on every route (facts §7.3 has
    // three rules for it).
    check(&app, "after_seq=2&before_seq=9&limit=3", &[3, 4, 5]).await;
    check(&app, "after_seq=9&before_seq=2", &[]).await;
    check(&app, "after_seq=18446744073709551615", &[]).await;
    check(&app, "as_of=4&limit=2", &[3, 4]).await;
    check(&app, "as_of=4&after_seq=1", &[2, 3, 4]).await;
}

// Facts §12 line 100.
#[tokio::test]
async fn cursors_may_fall_into_gaps() {
    let app = App::new();
    with_messages_at(&app, "t", &[1, 3, 5, 7, 9]).await;
    check(&app, "before_seq=6&limit=2", &[3, 5]).await;
    check(&app, "after_seq=4&limit=2", &[5, 7]).await;
}

// Facts §12 line 107.
#[tokio::test]
async fn one_more_than_the_limit_is_more() {
    let app = App::new();
    with_messages_at(&app, "t", &(1..=51).collect::<Vec<_>>()).await;
    let page = async |query: &str| {
        let reply = app.get(&format!("/api/threads/t/runs/r/messages?{query}")).await.json();
        let rows = seqs(&reply["data"]);
        (rows.first().copied(), rows.len(), reply["has_more"].clone())
    };
    assert_eq!(page("").await, (Some(2), 50, json!(true)));
    assert_eq!(page("after_seq=1&limit=50").await, (Some(2), 50, json!(false)));
    assert_eq!(page("before_seq=51").await, (Some(1), 50, json!(false)));
    assert_eq!(page("after_seq=1&limit=49").await, (Some(2), 49, json!(true)));
    let all_after_the_first = app.get("/api/threads/t/runs/r/messages?limit=50&after_seq=1").await.json();
    assert_eq!(all_after_the_first.as_object().unwrap().len(), 2, "data and has_more");
    let other_run = app.get("/api/threads/t/runs/other/messages").await.json();
    assert_eq!(other_run, json!({"data": [], "has_more": false}));
}

// Facts §12 line 108.
#[tokio::test]
async fn cursors_and_limits_out_of_range_are_refused_by_name() {
    let app = App::new();
    with_messages_at(&app, "t", &[1]).await;
    for route in ["messages", "messages/page", "runs/r/messages"] {
        for (name, bad) in
            [("before_seq", "0"), ("before_seq", "-1"), ("limit", "0"), ("limit", "201"), ("as_of", "0")]
        {
            let reply = app.get(&format!("/api/threads/t/{route}?{name}={bad}")).await;
            reply.check_problem(422, "invalid", name);
        }
    }
    for route in ["messages", "runs/r/messages"] {
        for bad in ["0", "-1"] {
            let reply = app.get(&format!("/api/threads/t/{route}?after_seq={bad}")).await;
            reply.check_problem(422, "invalid", "after_seq");
        }
    }
    for any in ["0", "1", "7"] {
        let reply = app.get(&format!("/api/threads/t/messages/page?after_seq={any}")).await;
        reply.check_problem(422, "invalid", "after_seq");
    }
    app.get("/api/threads/t/messages/last-ai").await.check_problem(422, "invalid", "run_ids");
    app.get("/api/threads/t/messages/last-ai?run_ids=a.b").await.check_problem(422, "invalid", "run_ids");
    let many = vec!["r"; 201].join(",");
    let reply = app.get(&format!("/api/threads/t/messages/last-ai?run_ids={many}")).await;
    reply.check_problem(422, "invalid", "at most 200");
    app.get("/api/threads/t/messages/count?limit=1").await.check_problem(422, "invalid", "limit");
}

// Facts §12 line 109.
#[tokio::test]
async fn the_page_goes_backward() {
    let app = App::new();
    with_messages_at(&app, "t", &[1, 2, 3, 4, 5, 6]).await;
    let newest = app.get("/api/threads/t/messages/page?limit=3").await.json();
    assert_eq!((seqs(&newest["data"]), &newest["has_more"]), (vec![4, 5, 6], &json!(true)));
    assert_eq!(newest["next_before_seq"], 4);
    let oldest = app.get("/api/threads/t/messages/page?limit=3&before_seq=4").await.json();
    assert_eq!((seqs(&oldest["data"]), &oldest["has_more"]), (vec![1, 2, 3], &json!(false)));
    assert_eq!(oldest.as_object().unwrap().get("next_before_seq"), Some(&Value::Null));
}

// Facts §12 line 110, and §8: what each route shows.
#[tokio::test]
async fn the_page_shows_what_readers_are_to_see() {
    let app = App::new();
    let events = vec![
        said("llm.human.input", None),
        said("llm.ai.response", Some("lead_agent")),
        said("llm.ai.response", Some("subagent:bash")),
        said("llm.tool.result", Some("subagent:bash")),
        said("llm.ai.response", Some("middleware:title")),
        said("llm.tool.result", Some("middleware:title")),
        other(),
        said("ai_message", None),
    ];
    record(&app, "t", events).await;
    let page = app.get("/api/threads/t/messages/page").await.json();
    assert_eq!(seqs(&page["data"]), [1, 2, 4, 8]);
    assert_eq!(seqs(&app.get("/api/threads/t/messages").await.json()), [1, 2, 3, 4, 5, 6, 8]);
    let of_run = app.get("/api/threads/t/runs/r/messages").await.json();
    assert_eq!(seqs(&of_run["data"]), [1, 2, 3, 4, 5, 6, 8]);
    assert_eq!(app.get("/api/threads/t/messages/count").await.json(), json!({"count": 7}));
    assert_eq!(app.get("/api/threads/t/messages/count?as_of=3").await.json(), json!({"count": 3}));
    // The last answer is the last one that the page shows.
    let last = async |query: &str| app.get(&format!("/api/threads/t/messages/last-ai?{query}")).await.json();
    assert_eq!(last("run_ids=r").await, json!({"r": 8}));
    assert_eq!(last("run_ids=r,nowhere&as_of=7").await, json!({"r": 2}));
    assert_eq!(last("run_ids=r&as_of=1").await, json!({}));
    assert_eq!(last("run_ids=").await, json!({}));
}

// Facts §12 line 98, field report 61: what a subagent did is in the events and not in the messages.
#[tokio::test]
async fn steps_are_events_and_not_messages() {
    let app = App::new();
    app.thread("t").await;
    let run = app.run("t").await;
    let run_id = run["run_id"].as_str().unwrap();
    let events = app.get(&format!("/api/threads/t/runs/{run_id}/events?event_types=subagent.step")).await;
    assert!(!events.json().as_array().unwrap().is_empty());
    let messages = app.get("/api/threads/t/messages").await.json();
    let kinds: Vec<_> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            assert_eq!(message["category"], "message");
            message["event_type"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(kinds, ["llm.human.input", "llm.ai.response", "llm.tool.result", "llm.ai.response"]);
    let last = app.get(&format!("/api/threads/t/messages/last-ai?run_ids={run_id}")).await.json();
    assert_eq!(last[run_id], messages[3]["seq"]);
    // A message is the record of its event.
    let path =
        format!("/api/threads/t/events?after_seq={}&limit=1", messages[0]["seq"].as_u64().unwrap() - 1);
    assert_eq!(app.get(&path).await.json()[0], messages[0]);
}

// Field report 41: the union of the pages, forward and backward, also where they just fit.
#[tokio::test]
async fn pages_join_without_gap_or_repeat() {
    let app = App::new();
    for count in [50, 66, 100] {
        let (thread, all) = (format!("t{count}"), (2..=count + 1).collect::<Vec<_>>());
        with_messages_at(&app, &thread, &all).await;
        let (mut forward, mut pages) = (vec![1], 0);
        loop {
            let after = forward.last().copied().unwrap_or_default();
            let path = format!("/api/threads/{thread}/runs/r/messages?limit=50&after_seq={after}");
            let page = app.get(&path).await.json();
            forward.extend(seqs(&page["data"]));
            pages += 1;
            if page["has_more"] == false {
                break;
            }
        }
        assert_eq!((&forward[1..], pages), (all.as_slice(), count.div_ceil(50)));
        let (mut backward, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = app.get(&format!("/api/threads/{thread}/messages/page?limit=50{cursor}")).await.json();
            backward.splice(0..0, seqs(&page["data"]));
            if page["has_more"] == false {
                assert!(page["next_before_seq"].is_null());
                break;
            }
            cursor = format!("&before_seq={}", page["next_before_seq"]);
        }
        assert_eq!(backward, all, "{count}");
    }
}

#[tokio::test]
async fn what_is_not_there_has_no_messages() {
    let app = App::new();
    assert_eq!(app.get("/api/threads/nowhere/messages").await.json(), json!([]));
    assert_eq!(app.get("/api/threads/nowhere/messages/count").await.json(), json!({"count": 0}));
    let page = app.get("/api/threads/nowhere/messages/page").await.json();
    assert_eq!(page, json!({"data": [], "has_more": false, "next_before_seq": null}));
    app.get("/api/threads/nowhere/messages?min_seq=1").await.check_problem(409, "stale", "at seq 0");
    with_messages_at(&app, "t", &[1, 2]).await;
    app.get("/api/threads/t/messages?as_of=3").await.check_problem(409, "stale", "not yet at 3");
    let erased = axum::http::Method::DELETE;
    let reply = app.send(super::app::request(erased, "/api/threads/t", None)).await;
    assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
    for (route, nothing) in [
        ("messages", json!([])),
        ("messages/count", json!({"count": 0})),
        ("messages/last-ai?run_ids=r", json!({})),
        ("messages/page", page),
        ("runs/r/messages", json!({"data": [], "has_more": false})),
    ] {
        assert_eq!(app.get(&format!("/api/threads/t/{route}")).await.json(), nothing, "{route}");
    }
}

#[tokio::test]
async fn a_feed_that_is_behind_says_so() {
    let app = App::without_followers();
    with_messages_at(&app, "t", &[1]).await;
    let paths = ["messages", "messages/page", "messages/count", "runs/r/messages", "caps", "receipts"];
    let replies = paths.map(|path| format!("/api/threads/t/{path}"));
    for reply in futures::future::join_all(replies.iter().map(|path| app.get(path))).await {
        reply.check_problem(409, "stale", "the views are at position 0");
    }
    app.server.projections.catch_up().unwrap();
    assert_eq!(seqs(&app.get("/api/threads/t/messages?min_seq=1").await.json()), [1]);
}
