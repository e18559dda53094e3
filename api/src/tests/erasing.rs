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

/// Two runs on a thread, of which the first has a delegation: their ids, and the delegation's.
async fn two_runs(app: &App) -> (String, String, String) {
    app.thread("t").await;
    let id = |run: Value| run["run_id"].as_str().unwrap().to_owned();
    let (first, second) = (id(app.run("t").await), id(app.run("t").await));
    let delegations = app.get(&format!("/api/threads/t/delegations?run_id={first}")).await.json();
    let task = delegations[0]["delegation_id"].as_str().unwrap().to_owned();
    (first, second, task)
}

/// What is answered about one run of a thread.
async fn of_run(app: &App, run: &str) -> Vec<Value> {
    let mut answers = Vec::new();
    for path in ["", "/events?limit=2000"] {
        answers.push(app.get(&format!("/api/threads/t/runs/{run}{path}")).await.json());
    }
    answers.push(app.get(&format!("/api/threads/t/delegations?run_id={run}")).await.json());
    answers
}

// Facts §12 line 106: given run A deleted, B intact.
#[tokio::test]
async fn an_erased_run_is_as_one_that_never_was_and_the_others_stay() {
    let app = App::new();
    let (first, second, task) = two_runs(&app).await;
    let (kept, count) =
        (of_run(&app, &second).await, of_run(&app, &first).await[1].as_array().unwrap().len());
    let before = app.get("/api/threads/t/events?limit=2000").await.json().as_array().unwrap().len();
    let then = before - 1;

    let erased = delete(&app, &format!("/api/threads/t/runs/{first}")).await;
    assert_eq!((erased.status, &erased.json()["deleted"]), (StatusCode::OK, &json!(count)));
    let run = format!("/api/threads/t/runs/{first}");
    for path in [
        run.clone(),
        format!("{run}?as_of={then}"),
        format!("{run}/stream"),
        format!("{run}/tasks/{task}/card"),
        format!("{run}/tasks/{task}/card?as_of={then}"),
        format!("{run}/tasks/{task}/receipts"),
    ] {
        app.get(&path).await.check_problem(404, "not_found", "not found");
    }
    app.post(&format!("{run}/cancel"), json!({})).await.check_problem(404, "not_found", "Run");
    assert_eq!(app.get(&format!("{run}/events")).await.json(), json!([]));
    for ledger in ["", "&as_of=9"] {
        let path = format!("/api/threads/t/delegations?run_id={first}{ledger}");
        assert_eq!(app.get(&path).await.json(), json!([]));
    }
    let left = app.get("/api/threads/t/events?limit=2000").await.json();
    assert_eq!(left.as_array().unwrap().len(), before - count);
    let everything = [
        left,
        app.get("/api/events?limit=500").await.json(),
        app.get("/api/threads").await.json(),
        app.get("/api/threads/t").await.json(),
        app.get("/api/threads/t/runs").await.json(),
        app.get(&format!("/api/threads/t/runs?as_of={then}")).await.json(),
        app.get("/api/threads/t/delegations").await.json(),
        app.get("/api/erasures").await.json(),
    ];
    for answer in &everything {
        assert!(!answer.to_string().contains(&first), "{answer}");
    }
    assert_eq!(of_run(&app, &second).await, kept);
    assert_eq!(everything[4]["data"].as_array().unwrap().len(), 1);

    for again in [first.as_str(), "nobody"] {
        let path = format!("/api/threads/t/runs/{again}");
        delete(&app, &path).await.check_problem(404, "not_found", &format!("Run {again} not found"));
    }
    delete(&app, "/api/threads/nobody/runs/r").await.check_problem(404, "not_found", "Thread nobody");
}

#[tokio::test]
async fn an_erased_run_takes_nothing_more() {
    let app = App::new();
    app.thread("t").await;
    let fact = |run: &str| json!({"run_id": run, "event_type": "note", "category": "trace", "content": "x", "metadata": {}});
    let mut once = fact("r");
    once["if_absent"] = json!(true);
    let mut keyed = fact("r");
    keyed["idempotency_key"] = json!("k");
    assert_eq!(app.post("/api/threads/t/events", keyed.clone()).await.status, StatusCode::OK);
    assert_eq!(delete(&app, "/api/threads/t/runs/r").await.status, StatusCode::OK);
    let batch = json!([fact("other"), fact("r")]);
    for body in [fact("r"), once, keyed, batch] {
        let refused = app.post("/api/threads/t/events", body).await;
        refused.check_problem(410, "gone", "run r of stream thread/t was erased");
    }
    let next = app.post("/api/threads/t/events", fact("other")).await.json();
    assert_eq!(next["seq"], json!(3), "seqs go on, and nothing of the batch was recorded");
}

#[tokio::test]
async fn erasures_are_asked_for_in_one_place_too() {
    let app = App::new();
    let (first, ..) = two_runs(&app).await;
    let asked = app.post("/api/erasures", json!({"thread_id": "t", "run_id": first})).await;
    assert_eq!(asked.status, StatusCode::OK);
    let erasure = asked.json();
    assert_eq!((&erasure["reason"], &erasure["state"]), (&json!("run"), &json!("done")));
    assert_eq!(erasure["run_hash"].as_str().unwrap().len(), 32);
    let path = format!("/api/erasures/{}", erasure["erasure_id"].as_str().unwrap());
    assert_eq!(app.get(&path).await.json(), erasure);
    let asked = app.post("/api/erasures", json!({"thread_id": "t"})).await.json();
    assert_eq!((&asked["reason"], &asked["thread_id"]), (&json!("thread"), &json!("t")));
    for thread in ["a", "b"] {
        app.thread(thread).await;
    }
    let asked = app.post("/api/erasures", json!({"owner": "default"})).await;
    assert_eq!(asked.status, StatusCode::OK);
    let erased = asked.json();
    assert_eq!((&erased["state"], &erased["deleted"]), (&json!("done"), &json!(2)));
    let threads: Vec<_> =
        erased["erasures"].as_array().unwrap().iter().map(|one| &one["thread_id"]).collect();
    assert_eq!(threads, ["a", "b"]);
    assert_eq!(app.get("/api/threads").await.json()["data"], json!([]));
    for nobody in ["default", "nobody"] {
        let refused = app.post("/api/erasures", json!({"owner": nobody})).await;
        refused.check_problem(404, "not_found", &format!("no thread of {nobody:?} found"));
    }
    let refused = app.post("/api/erasures", json!({"thread_id": "t"})).await;
    refused.check_problem(404, "not_found", "Thread t not found");
    for body in
        [json!({}), json!({"run_id": "r"}), json!({"owner": "o", "thread_id": "t"}), json!({"thread": "t"})]
    {
        let refused = app.post("/api/erasures", body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
    }
}
