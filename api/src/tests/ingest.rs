use axum::{
    body::Body,
    http::{Method, Request, StatusCode, header},
};
use eventlog::{Seq, StreamId};
use serde_json::{Value, json};

use super::app::{App, Reply};
use crate::{ingest::Incoming, testing};

const EVENTS: &str = "/api/threads/t/events";

fn event(run_id: &str, event_type: &str) -> Value {
    json!({"run_id": run_id, "event_type": event_type, "category": "trace", "content": event_type})
}

fn with(mut event: Value, more: Value) -> Value {
    let more = more.as_object().unwrap().clone();
    event.as_object_mut().unwrap().extend(more);
    event
}

/// A body as it is, with an idempotency key.
fn raw(body: &str, key: Option<&str>) -> Request<Body> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(EVENTS)
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json");
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

async fn post(app: &App, body: Value) -> Value {
    let reply = app.post(EVENTS, body).await;
    assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
    reply.json()
}

fn column(records: &Value, key: &str) -> Vec<Value> {
    records.as_array().unwrap().iter().map(|record| record[key].clone()).collect()
}

/// Pages are bounded by bytes too, so that it is read page by page.
fn count(app: &App) -> usize {
    let (mut count, mut after) = (0, Seq::ZERO);
    loop {
        let page = app.log.read_stream(&StreamId::Thread(testing::thread("t")), after, 10_000).unwrap();
        let Some(last) = page.last() else { return count };
        (count, after) = (count + page.len(), last.seq);
    }
}

// Facts §7.1 and §7.2: put, put_batch.
#[tokio::test]
async fn the_first_event_makes_the_thread_and_comes_back_as_it_was_given() {
    let app = App::new();
    let given = json!({"run_id": "r", "event_type": "someone.elses", "category": "their own",
        "content": {"a": [1, null]}, "metadata": {"task_id": "call_1", "k": "v"},
        "created_at": "2024-02-29T13:14:15.123456789+02:00"});
    let record = post(&app, given).await;
    for (key, expected) in [
        ("thread_id", json!("t")),
        ("run_id", json!("r")),
        ("seq", json!(1)),
        ("event_type", json!("someone.elses")),
        ("category", json!("their own")),
        ("content", json!({"a": [1, null]})),
        ("metadata", json!({"task_id": "call_1", "k": "v"})),
        ("created_at", json!("2024-02-29T11:14:15.123456789Z")),
        ("task_id", json!("call_1")),
        ("schema_version", json!(0)),
        ("created", json!(true)),
    ] {
        assert_eq!(record[key], expected, "{key}");
    }
    let list =
        post(&app, json!([event("r", "a"), event("r2", "b"), {"event_type": "c", "category": "d"}])).await;
    assert_eq!(column(&list, "seq"), [2, 3, 4]);
    assert_eq!(column(&list, "run_id"), [json!("r"), json!("r2"), json!(null)]);
    assert_eq!((&list[2]["content"], &list[2]["metadata"]), (&json!(""), &json!({})));
    let mut stored = app.get(EVENTS).await.json();
    assert_eq!(column(&stored, "seq"), [1, 2, 3, 4]);
    stored[0]["created"] = json!(true);
    assert_eq!(stored[0], record);
    assert_eq!(app.get("/api/threads/t").await.status, StatusCode::OK);
    assert_eq!(app.post(EVENTS, json!([])).await.text, "[]");
    assert_eq!(count(&app), 4);
}

// Facts §12 line 101 and field report 43, of events that others recorded.
#[tokio::test]
async fn events_are_found_by_their_task() {
    let app = App::without_followers();
    let of = |task: &str| with(event("r", "subagent.step"), json!({"metadata": {"task_id": task}}));
    let named = with(event("r", "subagent.step"), json!({"task_id": "a"}));
    post(&app, json!([of("a"), of("b"), named, event("r", "x"), of("a"), of("")])).await;
    for (filter, expected) in [("a", vec![1, 3, 5]), ("b", vec![2])] {
        for base in [EVENTS, "/api/threads/t/runs/r/events"] {
            let (mut seen, mut after) = (Vec::new(), String::new());
            loop {
                let page = app.get(&format!("{base}?task_id={filter}&limit=2{after}")).await.json();
                seen.extend(column(&page, "seq"));
                if page.as_array().unwrap().len() < 2 {
                    break;
                }
                after = format!("&after_seq={}", seen.last().unwrap());
            }
            assert_eq!(seen, expected, "{base} {filter}");
        }
    }
    let page = app.get(&format!("{EVENTS}?event_types=x")).await.json();
    assert_eq!(column(&page, "seq"), [4]);
    // Field 98: what a subagent did is in the events, under its own category.
    assert_eq!(column(&app.get(EVENTS).await.json(), "category"), vec!["trace"; 6]);
}

#[tokio::test]
async fn every_byte_of_content_and_metadata_comes_back() {
    let app = App::without_followers();
    let texts = [
        "null",
        "\"\"",
        "-0.0",
        "1E400",
        "123456789012345678901234567890",
        "9007199254740993",
        r#"{"b":1.50,"a" : 1e2,"b":"twice"}"#,
        "\"\u{2028}\u{2029}\u{85}\u{7f}\u{feff}\u{1F600}e\u{301}\"",
        r#""\u2028\u2029\u0085\u0000\u001f\/\ud83d\ude00 \\ud800""#,
        "[[[]],{\"\":{}}]",
    ];
    for (index, text) in texts.iter().enumerate() {
        let metadata = format!("{{\"v\":{text} , \"n\":1.0}}");
        let body = format!(
            r#" {{"run_id":"r","event_type":"x","category":"y","content": {text} ,"metadata":{metadata}}} "#
        );
        let reply = app.send(raw(&body, None)).await;
        let page = app.get(&format!("{EVENTS}?limit=1{}", after(index))).await;
        for text_back in [&reply.text, &page.text] {
            let expected = format!(r#""content":{text},"metadata":{metadata},"#);
            assert!(text_back.contains(&expected), "{text} came back as {text_back}");
            assert!(serde_json::from_str::<Vec<Box<serde_json::value::RawValue>>>(&page.text).is_ok());
        }
    }
    assert_eq!(count(&app), texts.len());
}

fn after(seq: usize) -> String {
    if seq == 0 { String::new() } else { format!("&after_seq={seq}") }
}

#[tokio::test]
async fn half_characters_are_stored_as_something_that_every_reader_reads() {
    let app = App::without_followers();
    let body = r#"{"run_id":"r","event_type":"x","category":"y","content":"a\ud800b","metadata":{"\udfff":"\ud83d"}}"#;
    let record = app.send(raw(body, None)).await;
    assert_eq!(record.status, StatusCode::OK, "{record:?}");
    let stored = app.get(EVENTS).await.json();
    assert_eq!(stored[0]["content"], "a\u{fffd}b");
    assert_eq!(stored[0]["metadata"], json!({"\u{fffd}": "\u{fffd}"}));
}

// Field report 36.
#[tokio::test]
async fn a_batch_of_several_runs_is_each_runs_own_and_whole_or_not_there() {
    let app = App::without_followers();
    let batch = json!([event("a", "1"), event("b", "2"), event("c", "3"), event("a", "4")]);
    post(&app, batch).await;
    for (run, expected) in [("a", vec!["1", "4"]), ("b", vec!["2"]), ("c", vec!["3"])] {
        let page = app.get(&format!("/api/threads/t/runs/{run}/events")).await.json();
        assert_eq!(column(&page, "event_type"), expected, "{run}");
        assert!(column(&page, "run_id").iter().all(|id| id == run));
    }
    let long = "x".repeat(33);
    let broken = json!([event("a", "5"), event("b", &long), event("c", "6")]);
    app.post(EVENTS, broken).await.check_problem(422, "invalid", "invalid [1].event_type");
    assert_eq!(count(&app), 4);
}

#[tokio::test]
async fn every_refusal_names_the_event_and_the_field_and_leaves_nothing() {
    let app = App::without_followers();
    let good = event("r", "x");
    for (more, field) in [
        (json!({"event_type": ""}), "event_type"),
        (json!({"event_type": "é".repeat(33)}), "event_type"),
        (json!({"category": "c".repeat(17)}), "category"),
        (json!({"category": ""}), "category"),
        (json!({"event_type": 1}), "event_type"),
        (json!({"run_id": "a/b"}), "run_id"),
        (json!({"run_id": ""}), "run_id"),
        (json!({"task_id": ""}), "task_id"),
        (json!({"metadata": [1]}), "metadata"),
        (json!({"metadata": null}), "metadata"),
        (json!({"created_at": "yesterday"}), "created_at"),
        (json!({"created_at": "2026-11-30T12:00:00"}), "created_at"),
        (json!({"idempotency_key": ""}), "idempotency_key"),
        (json!({"if_absent": "yes"}), "if_absent"),
        (json!({"if_absent": true, "run_id": null}), "run_id"),
        (json!({"seq": 1}), "seq"),
    ] {
        let bad = with(good.clone(), more);
        app.post(EVENTS, bad.clone()).await.check_problem(422, "invalid", field);
        let second = app.post(EVENTS, json!([good, bad])).await;
        let words = if field == "idempotency_key" { field.to_owned() } else { format!("[1].{field}") };
        second.check_problem(422, "invalid", &words);
    }
    for (body, status, code, words) in [
        ("{", 400, "bad_request", "not JSON"),
        ("\"text\"", 422, "invalid", "an event or a list of events"),
        ("[1]", 422, "invalid", "[0]"),
        ("[[\"r\",\"x\",\"y\"]]", 422, "invalid", "[0]"),
    ] {
        app.send(raw(body, None)).await.check_problem(status, code, words);
    }
    let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
    let body = format!(r#"[{{"event_type":"x","category":"y","content":{deep}}}]"#);
    app.send(raw(&body, None)).await.check_problem(422, "invalid", "[0].content");
    app.post(EVENTS, json!(vec![good.clone(); 1_001])).await.check_problem(
        422,
        "invalid",
        "at most 1000 events",
    );
    app.post("/api/threads/a.b/events", good.clone()).await.check_problem(422, "invalid", "thread_id");
    app.post(&format!("{EVENTS}?x=1"), good).await.check_problem(422, "invalid", "x");
    assert_eq!(count(&app), 0);
}

#[tokio::test]
async fn lengths_count_characters_and_a_thousand_events_fit() {
    let app = App::without_followers();
    let widest = with(event("r", &"é".repeat(32)), json!({"category": "ü".repeat(16)}));
    let records = post(&app, json!(vec![widest; 1_000])).await;
    assert_eq!(column(&records, "seq"), (1..=1_000).map(Value::from).collect::<Vec<_>>());
}

// Field report 40: the last event is as large as allowed, and the next gets the next seq.
#[tokio::test]
async fn the_largest_event_is_taken_and_a_larger_body_is_not() {
    let app = App::without_followers();
    let of = |bytes: usize| {
        let content = "x".repeat(bytes);
        format!(r#"{{"run_id":"r","event_type":"x","category":"y","content":"{content}"}}"#)
    };
    let limit = domain::limits::EVENT_BODY_BYTES_MAX;
    assert_eq!(app.send(raw(&of(limit - 4), None)).await.status, StatusCode::OK);
    assert_eq!(post(&app, event("r", "next")).await["seq"], 2);
    app.send(raw(&of(limit - 3), None)).await.check_problem(422, "invalid", "content");
    app.send(raw(&of(16 * 1024 * 1024), None)).await.check_problem(
        413,
        "payload_too_large",
        "16777216 bytes",
    );
    assert_eq!(count(&app), 2);
}

// Facts §12 line 102.
#[tokio::test]
async fn the_first_of_a_run_and_type_wins() {
    let app = App::without_followers();
    let if_absent =
        |content: &str| with(event("r", "run.delivery"), json!({"content": content, "if_absent": true}));
    post(&app, event("other", "run.delivery")).await;
    let first = post(&app, if_absent("first")).await;
    assert_eq!((&first["created"], &first["seq"]), (&json!(true), &json!(2)));
    let mut second = post(&app, if_absent("second")).await;
    assert_eq!(second["created"], false);
    second["created"] = json!(true);
    assert_eq!(second, first);
    // Without the flag there may be more, and the first still answers.
    post(&app, event("r", "run.delivery")).await;
    assert_eq!(post(&app, if_absent("third")).await["seq"], 2);
    // Within one request too, and whether the first of them has the flag or not.
    let of = |event_type: &str, flag: bool| with(event("r", event_type), json!({"if_absent": flag}));
    let batch = json!([
        of("a", true),
        of("a", true),
        of("b", false),
        of("b", true),
        of("a", false),
        of("run.delivery", true)
    ]);
    let records = post(&app, batch).await;
    assert_eq!(column(&records, "seq"), [4, 4, 5, 5, 6, 2]);
    assert_eq!(column(&records, "created"), [true, false, true, false, true, false]);
    assert_eq!(count(&app), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_at_once_one_is_first() {
    let app = App::without_followers();
    let thread = testing::thread("t");
    let writers = (0..32).map(|number| {
        let mut event = testing::run_event("r", if number % 4 == 3 { "noise" } else { "first" }, "1");
        event.content = eventlog::Json::from_serialize(&number).unwrap();
        let incoming = Incoming { event, is_if_absent: number % 4 != 3 };
        let (server, thread) = (app.server.clone(), thread.clone());
        tokio::spawn(async move {
            // A run at work, which knows nothing of the gates.
            testing::append(&server.log, "t", vec![testing::run_event("r", "work", "1")]).await;
            server.ingest(&thread, vec![incoming], None).await.unwrap()
        })
    });
    let answers = futures::future::join_all(writers.collect::<Vec<_>>()).await;
    let stored: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().remove(0)).collect();
    let first: Vec<_> = stored.iter().filter(|stored| stored.event.event_type == "first").collect();
    assert_eq!(first.iter().filter(|stored| stored.is_created).count(), 1);
    assert!(first.iter().all(|stored| stored.event == first[0].event));
    assert_eq!(count(&app), 32 + 8 + 1);
}

// Field report 44.
#[tokio::test]
async fn a_repeat_gets_the_first_answer_and_stores_nothing() {
    let app = App::without_followers();
    let body = json!([event("r", "a"), event("r", "b")]).to_string();
    let first = app.send(raw(&body, Some("k1"))).await;
    post(&app, event("r", "between")).await;
    let again = app.send(raw(&body, Some("k1"))).await;
    assert_eq!((again.status, &again.text), (first.status, &first.text));
    let other = json!([event("r", "a"), event("r", "c")]).to_string();
    app.send(raw(&other, Some("k1"))).await.check_problem(409, "conflict", "k1");
    // In the first event, for one and for a list; a list has one key.
    let keyed = |event_type: &str, key: &str| with(event("r", event_type), json!({"idempotency_key": key}));
    let one = post(&app, keyed("d", "k2")).await;
    assert_eq!(post(&app, keyed("d", "k2")).await, one);
    app.post(EVENTS, keyed("e", "k2")).await.check_problem(409, "conflict", "k2");
    let list = post(&app, json!([keyed("f", "k3"), event("r", "g"), keyed("h", "k3")])).await;
    assert_eq!(column(&list, "seq"), [5, 6, 7]);
    assert_eq!(post(&app, json!([keyed("f", "k3"), event("r", "g"), keyed("h", "k3")])).await, list);
    let mixed = app.post(EVENTS, json!([keyed("f", "k4"), keyed("g", "k5")])).await;
    mixed.check_problem(422, "invalid", "[1].idempotency_key");
    let against = app.send(raw(&keyed("f", "k6").to_string(), Some("k7"))).await;
    against.check_problem(422, "invalid", "idempotency_key");
    assert_eq!(count(&app), 7);
}

#[tokio::test]
async fn a_repeat_of_what_was_absent_gets_the_first_answer_too() {
    let app = App::without_followers();
    let if_absent = |event_type: &str| with(event("r", event_type), json!({"if_absent": true}));
    post(&app, event("r", "there")).await;
    for (key, body) in [
        ("k1", json!(if_absent("a"))),
        ("k2", json!([if_absent("there"), if_absent("b"), event("r", "c")])),
        ("k3", json!([if_absent("there"), if_absent("d")])),
        ("k4", json!([if_absent("there")])),
    ] {
        let first = app.send(raw(&body.to_string(), Some(key))).await;
        assert_eq!(first.status, StatusCode::OK, "{first:?}");
        let again = app.send(raw(&body.to_string(), Some(key))).await;
        assert_eq!(again.text, first.text, "{key}");
    }
    let reused = app.send(raw(&json!(if_absent("there")).to_string(), Some("k1"))).await;
    reused.check_problem(409, "conflict", "idempotency key");
    let reused = app.send(raw(&json!([if_absent("a"), event("r", "z")]).to_string(), Some("k2"))).await;
    reused.check_problem(409, "conflict", "idempotency key");
    assert_eq!(count(&app), 5);
}

// Field report 35, over HTTP; the log's own test has the whole number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_and_mixed_batches_leave_no_gap() {
    let app = std::sync::Arc::new(App::without_followers());
    let writers = (0..16).map(|writer| {
        let app = std::sync::Arc::clone(&app);
        tokio::spawn(async move {
            for number in 0..12 {
                let batch = json!([event("a", "x"), event("b", "x"), event(&format!("w{writer}"), "x")]);
                let body = if number % 3 == 0 { batch } else { event("a", "x") };
                post(&app, body).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let total = 16 * (4 * 3 + 8);
    let page = app.get(&format!("{EVENTS}?limit=2000")).await.json();
    assert_eq!(column(&page, "seq"), (1..=total).map(Value::from).collect::<Vec<_>>());
    for (run, expected) in [("a", 16 * 12), ("b", 16 * 4), ("w7", 4)] {
        let page = app.get(&format!("/api/threads/t/runs/{run}/events?limit=2000")).await.json();
        let seqs: Vec<u64> = column(&page, "seq").iter().map(|seq| seq.as_u64().unwrap()).collect();
        assert_eq!(seqs.len(), expected, "{run}");
        assert!(seqs.is_sorted_by(|one, next| one < next), "{seqs:?}");
        assert!(column(&page, "run_id").iter().all(|id| id == run));
    }
}

#[tokio::test]
async fn our_own_types_in_other_shapes_are_shown_and_break_no_view() {
    let app = App::new();
    let step = json!({"run_id": "r", "event_type": "subagent.step", "category": "subagent",
        "content": {"message_index": 0, "kind": "ai", "text": "hello", "truncated": false}, "metadata": {"task_id": "call_1"}});
    let catalogue = domain::event::Event::catalogue();
    let mut events = vec![step];
    for (event_type, category) in catalogue {
        for content in [json!("text"), json!({}), json!(null), json!({"status": 7})] {
            events.push(json!({"run_id": "r", "event_type": event_type, "category": category.as_str(), "content": content}));
        }
    }
    let expected = events.len();
    post(&app, json!(events)).await;
    let page = app.get(&format!("{EVENTS}?limit=2000")).await.json();
    assert_eq!(page.as_array().unwrap().len(), expected);
    let steps = app.get("/api/threads/t/runs/r/events?task_id=call_1").await.json();
    assert_eq!(steps[0]["content"]["text"], "hello");
    for path in ["/api/threads/t", "/api/threads", "/api/threads/t/runs", "/api/threads/t/delegations"] {
        let reply: Reply = app.get(path).await;
        assert_eq!(reply.status, StatusCode::OK, "{path}: {reply:?}");
    }
    let views = app.get("/api/projections").await.json();
    assert!(!views.as_array().unwrap().is_empty());
    for view in views.as_array().unwrap() {
        assert_eq!((&view["parked"], &view["lag"]), (&json!(0), &json!(0)), "{view}");
    }
}

// Field report 102: masked in the answer, in every list and in the log, and marked.
#[tokio::test]
async fn secrets_are_masked_before_they_are_written() {
    let app = App::without_followers();
    let secrets = [
        "s3cr3tValue001",
        "s3cr3tValue002",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "MIIEowIBAAKCAQEAtT1xq2s3",
    ];
    let output = format!(
        "Authorization: Bearer {}\nacme_api_key={}\naws_secret_access_key = {}\n-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
        secrets[0], secrets[1], secrets[2], secrets[3]
    );
    let given = with(
        event("r", "llm.tool.result"),
        json!({"content": {"text": output}, "metadata": {"password": "s3cr3tValue003", "k": 1}}),
    );
    let record = post(&app, given).await;
    assert_eq!(record["metadata"]["redacted"], 5, "{record}");
    assert_eq!(record["metadata"]["k"], 1);
    for text in [record.to_string(), app.get(EVENTS).await.text, app.get("/api/events").await.text] {
        assert!(secrets.iter().all(|secret| !text.contains(secret)) && !text.contains("s3cr3t"), "{text}");
        for kind in ["authorization", "secret", "private_key", "password"] {
            assert!(text.contains(&format!("[redacted:{kind}:sha256=")), "{kind}: {text}");
        }
    }
}

#[tokio::test]
async fn the_whole_log_is_read_in_pages() {
    let app = App::without_followers();
    for thread_id in ["t", "u", "t"] {
        let path = format!("/api/threads/{thread_id}/events");
        assert_eq!(app.post(&path, json!([event("r", "a"), event("r", "b")])).await.status, StatusCode::OK);
    }
    let first = app.get("/api/events?limit=4").await.json();
    assert_eq!(column(&first, "position"), [1, 2, 3, 4]);
    assert_eq!(column(&first, "thread_id"), ["t", "t", "u", "u"]);
    let rest = app.get("/api/events?after_position=4&limit=4").await.json();
    assert_eq!(column(&rest, "position"), [5, 6]);
    assert_eq!(column(&rest, "seq"), [3, 4]);
    app.get("/api/events?after_seq=1").await.check_problem(422, "invalid", "after_seq");
    app.get("/api/events?limit=0").await.check_problem(422, "invalid", "limit");
}
