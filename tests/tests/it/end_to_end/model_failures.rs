//! A provider that refuses or fails: a clear error that names it, events where they belong, and
//! the next request works.

use std::time::Duration;

use serde_json::{Value, json};
use tests::{
    invariants::assert_whole,
    record::{number, of_type, only, text},
    server::{Setup, TestServer},
    stub_model::{Answer, Call, Reply, StubModel},
};

/// One way to fail, and what is to come of it.
struct Case {
    /// The answers, in order; after them the stub answers well.
    answers: Vec<Answer>,
    /// Requests of the failing run.
    requests: usize,
    /// The run's status.
    status: &'static str,
    /// The reason in `llm.retry` or `llm.error`.
    reason: &'static str,
    /// Part of the error, if the run fails.
    error: &'static str,
}

fn cases() -> Vec<Case> {
    let refusal = Answer::refusal;
    vec![
        Case {
            answers: vec![refusal(400, "the model does not exist")],
            requests: 1,
            status: "error",
            reason: "generic",
            error: "the provider answered 400: the model does not exist",
        },
        Case {
            answers: vec![refusal(401, "invalid api key")],
            requests: 1,
            status: "error",
            reason: "auth",
            error: "the provider answered 401: invalid api key",
        },
        Case {
            answers: vec![refusal(429, "you have no quota left")],
            requests: 1,
            status: "error",
            reason: "quota",
            error: "the provider answered 429",
        },
        Case {
            answers: vec![refusal(429, "slow down").header("retry-after", "2")],
            requests: 2,
            status: "success",
            reason: "transient",
            error: "",
        },
        Case {
            answers: vec![refusal(500, "oops"), refusal(503, "busy")],
            requests: 3,
            status: "success",
            reason: "transient",
            error: "",
        },
        Case {
            answers: vec![refusal(500, "oops"), refusal(500, "oops"), refusal(500, "oops")],
            requests: 3,
            status: "error",
            reason: "transient",
            error: "the provider answered 500: oops",
        },
        Case {
            answers: vec![Answer::raw(200, b"<html>a captive portal</html>".to_vec())],
            requests: 1,
            status: "error",
            reason: "generic",
            error: "not a chat completion",
        },
        Case {
            answers: vec![Answer::raw(
                200,
                b"{\"error\": {\"message\": \"no such model\", \"code\": 404}}".to_vec(),
            )],
            requests: 1,
            status: "error",
            reason: "generic",
            error: "no such model",
        },
    ]
}

// Every failure is told in events, none is silent, and the thread can be used again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lead_s_model_fails_in_every_way() {
    for (at, case) in cases().into_iter().enumerate() {
        check(at, case).await;
    }
}

async fn check(at: usize, case: Case) {
    let answers = case.answers.clone();
    let script = move |asked: &tests::stub_model::Asked| match answers.get(asked.number - 1) {
        Some(answer) => answer.clone(),
        None => Reply::says("all is well").into(),
    };
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, run) = server.client.run_to_end("do it").await;
    assert_eq!((text(&run, "status"), stub.count()), (case.status, case.requests), "case {at}: {run}");
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    let retries = of_type(&events, "llm.retry");
    let failures = of_type(&events, "llm.error");
    let told = retries.iter().chain(&failures).map(|event| text(&event["content"], "reason"));
    assert!(told.into_iter().all(|reason| reason == case.reason), "case {at}: {retries:?} {failures:?}");
    assert_eq!(retries.len(), case.requests - 1, "case {at}");
    for retry in retries {
        let wait = Duration::from_millis(number(&retry["content"], "wait_ms"));
        assert!(server.pauses.waits().contains(&wait), "case {at}: {retry}");
    }
    if case.status == "error" {
        let failure = &only(&events, "llm.error")["content"];
        assert!(text(failure, "error").contains(case.error), "case {at}: {failure}");
        assert!(text(failure, "error").contains("stub"), "case {at} names no model: {failure}");
        let error = text(&only(&events, "run.error")["content"], "error");
        assert!(error.contains(case.error), "case {at}: {error}");
        assert_eq!(text(&run, "error"), error, "case {at}");
    }
    assert_goes_on(&server, &thread_id).await;
    stub.assert_strict();
}

/// The next request on the same thread works, with the failed one in its history.
async fn assert_goes_on(server: &TestServer, thread_id: &str) {
    let run_id = server.client.start_run(thread_id, "and again").await;
    let run = server.client.ended(thread_id, &run_id).await;
    assert_eq!((text(&run, "status"), text(&run, "result")), ("success", "all is well"), "{run}");
}

// Field report 11, for one agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_the_provider_asks_for_is_kept() {
    let script = |asked: &tests::stub_model::Asked| match asked.number {
        1 => Answer::refusal(429, "slow down").header("retry-after", "7"),
        _ => Reply::says("done").into(),
    };
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, _) = server.client.run_to_end("do it").await;
    let events = server.client.thread_events(&thread_id).await;
    let retry = &only(&events, "llm.retry")["content"];
    assert_eq!(
        (number(retry, "wait_ms"), number(retry, "attempt"), number(retry, "max_attempts")),
        (7_000, 1, 3)
    );
    assert!(server.pauses.waits().iter().all(|wait| *wait >= Duration::from_secs(7)));
}

// Facts §12 lines 32 and 66: a subagent whose model fails has failed with the provider's words; its
// lead goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subagent_s_model_fails_and_the_lead_goes_on() {
    let script = |asked: &tests::stub_model::Asked| match (asked.is_lead(), asked.turn) {
        (false, _) => Answer::refusal(400, "context length exceeded"),
        (true, 0) => Reply::calls([Call::task("general-purpose", "p").id("call_1")]).into(),
        (true, _) => Reply::says(asked.results()[0].1.clone()).into(),
    };
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, run) = server.client.run_to_end("delegate").await;
    assert_eq!(text(&run, "status"), "success");
    assert!(text(&run, "result").starts_with("Task failed. Error: "), "{run}");
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    let end = &only(&events, "subagent.end")["content"];
    assert_eq!((text(end, "status"), &end["stop_reason"]), ("failed", &Value::Null), "{end}");
    assert!(text(end, "error").contains("context length exceeded"), "{end}");
    let failure = only(&events, "llm.error");
    assert_eq!(
        (text(&failure["content"], "caller"), &failure["content"]["status"]),
        ("subagent:general-purpose", &json!(400))
    );
    assert_eq!(failure["task_id"], "call_1");
    stub.assert_strict();
}

// Field report 13: one child that fails takes no other with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_middle_one_of_three_fails_alone() {
    let script = |asked: &tests::stub_model::Asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => {
            let tasks = ["one", "two", "three"].map(|task| Call::task("general-purpose", task).id(task));
            Reply::calls(tasks).into()
        }
        (true, _) => {
            let ids: Vec<String> = asked.results().into_iter().map(|(id, _)| id).collect();
            Reply::says(ids.join(" ")).into()
        }
        (false, _) if asked.is_about("two") => Answer::refusal(500, "broken"),
        (false, _) => Reply::says("a report").into(),
    };
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, run) = server.client.run_to_end("delegate").await;
    assert_eq!((text(&run, "status"), text(&run, "result")), ("success", "one two three"));
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    let ledger = server.client.ledger(&thread_id, events.len() as u64).await;
    let shown: Vec<_> = ledger.iter().map(|row| (text(row, "task_id"), text(row, "status"))).collect();
    assert_eq!(shown, [("one", "completed"), ("two", "failed"), ("three", "completed")]);
    assert!(text(&ledger[1], "error").contains("the provider answered 500: broken"), "{}", ledger[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_is_named() {
    let stub = StubModel::start(|_| Reply::says("never").into()).await;
    let (setup, address) = (Setup::with_stub(&stub), stub.base_url());
    drop(stub);
    let server = TestServer::start(setup).await;
    let (thread_id, run) = server.client.run_to_end("do it").await;
    assert_eq!(text(&run, "status"), "error");
    assert!(text(&run, "error").contains(&address), "{run}");
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    assert_eq!(of_type(&events, "llm.retry").len(), 2);
    assert_eq!(number(&only(&events, "llm.error")["content"], "attempts"), 3);
}
