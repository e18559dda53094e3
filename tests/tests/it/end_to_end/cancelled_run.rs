//! Cancelling: everything that was open ends once, in words that say why, and the thread can be
//! used again.

use serde_json::{Value, json};
use tests::{
    invariants::assert_whole,
    record::{of_type, only, text},
    server::{Setup, TestServer},
    stub_model::{Asked, Call, Gate, Reply, StubModel},
};

/// A lead that delegates three times; the first child answers, the others are held.
fn script(gate: Gate) -> impl Fn(&Asked) -> tests::stub_model::Answer + Send + Sync {
    move |asked: &Asked| match (asked.is_lead(), asked.turn) {
        (true, _) if asked.is_about("go on") => Reply::says("going on").into(),
        (true, 0) => {
            let tasks = ["one", "two", "three"].map(|task| Call::task("general-purpose", task).id(task));
            Reply::calls(tasks).into()
        }
        (true, _) => Reply::says("never said").into(),
        (false, _) if asked.is_about("one") => Reply::says("a report").into(),
        (false, _) => Reply::says("too late").held_by(&gate),
    }
}

// Facts §12 lines 42 and 73, field reports 16 and 23: the children of a cancelled lead are
// cancelled with it and say so; what the provider says later changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_end_with_their_lead_and_late_replies_change_nothing() {
    let gate = Gate::closed();
    let stub = StubModel::start(script(gate.clone())).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let thread_id = server.client.create_thread().await;
    let run_id = server.client.start_run(&thread_id, "delegate").await;
    stub.wait_for("all three children ask", |requests| requests.len() == 4).await;
    tests::wait::until_answer("the first child has ended", || async {
        let events = server.client.events(&thread_id, &run_id).await;
        (of_type(&events, "subagent.end").len() == 1).then_some(())
    })
    .await;
    assert_eq!(server.client.cancel(&thread_id, &run_id).await, 202);
    let run = server.client.ended(&thread_id, &run_id).await;
    assert_eq!(text(&run, "status"), "interrupted");
    gate.open();

    let ledger = server.client.ledger(&thread_id, run["seq"].as_u64().unwrap()).await;
    let shown: Vec<_> = ledger.iter().map(|row| (text(row, "task_id"), text(row, "status"))).collect();
    assert_eq!(shown, [("one", "completed"), ("two", "cancelled"), ("three", "cancelled")]);

    let next = server.client.start_run(&thread_id, "go on").await;
    let next = server.client.ended(&thread_id, &next).await;
    assert_eq!((text(&next, "status"), text(&next, "result")), ("success", "going on"), "{next}");
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    let reasons: Vec<_> =
        of_type(&events, "subagent.end").iter().map(|end| end["content"]["cancel_reason"].clone()).collect();
    assert_eq!(reasons[0], Value::Null);
    assert!(
        reasons[1..]
            .iter()
            .all(|reason| ["parent_interrupted", "cancelled_by_user"].contains(&reason.as_str().unwrap())),
        "{reasons:?}"
    );
    for end in of_type(&events, "subagent.end").iter().skip(1) {
        assert!(text(&end["content"], "error").contains("Cancelled by user"), "{end}");
    }
    // Strict providers accept a history whose calls were interrupted.
    stub.assert_strict();
}

// Facts §12 line 112: twice is no error, as long as the run is on its way to its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_twice_is_accepted() {
    let gate = Gate::closed();
    let stub = StubModel::start(script(gate)).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let thread_id = server.client.create_thread().await;
    let run_id = server.client.start_run(&thread_id, "delegate").await;
    stub.wait_for("the children ask", |requests| requests.len() == 4).await;
    let answers =
        [server.client.cancel(&thread_id, &run_id).await, server.client.cancel(&thread_id, &run_id).await];
    assert_eq!(answers[0], 202);
    assert!([202, 409].contains(&answers[1]), "{answers:?}");
    server.client.ended(&thread_id, &run_id).await;
    assert_whole(&server.client.thread_events(&thread_id).await);
}

// Facts §12 line 68: one delegation is cancelled, its lead is told and goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_task_tells_its_lead() {
    let gate = Gate::closed();
    let held = gate.clone();
    let script = move |asked: &Asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls([Call::task("general-purpose", "p").id("call_1")]).into(),
        (true, _) => Reply::says(asked.results()[0].1.clone()).into(),
        (false, 0) => Reply::calls([Call::new("ls", json!({}))]).into(),
        (false, _) => Reply::says("too late").held_by(&held),
    };
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let thread_id = server.client.create_thread().await;
    let run_id = server.client.start_run(&thread_id, "delegate").await;
    stub.wait_for("the child asks twice", |requests| requests.len() == 3).await;
    let path = format!("/api/threads/{thread_id}/runs/{run_id}/tasks/call_1/cancel");
    assert_eq!(server.client.post(&path, &json!({})).await.status, 202);
    let run = server.client.ended(&thread_id, &run_id).await;
    assert_eq!(text(&run, "status"), "success", "{run}");
    assert!(text(&run, "result").starts_with("Task cancelled by user."), "{run}");
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    let end = &only(&events, "subagent.end")["content"];
    assert_eq!(
        (text(end, "status"), text(end, "cancel_reason"), text(end, "error")),
        ("cancelled", "cancelled_by_user", "Cancelled by user")
    );
    // Field report 25: whoever asks finds the partial work.
    assert!(text(&run, "result").contains("Partial work: delegation"), "{run}");
    let delivered = &only(&events, "delegation.delivered")["content"];
    assert_eq!(text(delivered, "status"), "cancelled");
    assert_eq!(server.client.post(&path, &json!({})).await.status, 409);
}

// Facts §12 line 41, field report 22: a child that waits for its slot is cancelled, and its model is
// never asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_in_the_queue_is_cancelled_unasked() {
    let gate = Gate::closed();
    let held = gate.clone();
    let script = move |asked: &Asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls([Call::task("general-purpose", "p").id("call_1")]).into(),
        (true, _) => Reply::says(asked.results()[0].1.clone()).into(),
        (false, _) => Reply::says("report").held_by(&held),
    };
    let stub = StubModel::start(script).await;
    let one_slot = Setup::with_stub(&stub).configured(|config| config.subagent_runtime.max_running = 1);
    let server = TestServer::start(one_slot).await;
    let client = &server.client;
    let threads = [client.create_thread().await, client.create_thread().await];
    let first = client.start_run(&threads[0], "takes the slot").await;
    stub.wait_for("the first child has the slot", |requests| requests.len() == 2).await;
    let second = client.start_run(&threads[1], "waits for it").await;
    tests::wait::until_answer("the second child is queued", || async {
        let events = client.events(&threads[1], &second).await;
        (of_type(&events, "delegation.queued").len() == 1).then_some(())
    })
    .await;
    let path = format!("/api/threads/{}/runs/{second}/tasks/call_1/cancel", threads[1]);
    assert_eq!(client.post(&path, &json!({})).await.status, 202);
    let run = client.ended(&threads[1], &second).await;
    assert!(text(&run, "result").starts_with("Task cancelled by user."), "{run}");
    assert_eq!(stub.count(), 4, "two leads, one child, one answer");
    gate.open();
    assert_eq!(text(&client.ended(&threads[0], &first).await, "status"), "success");
    let events = client.thread_events(&threads[1]).await;
    assert_whole(&events);
    assert!(of_type(&events, "subagent.start").is_empty(), "it never started");
    assert_whole(&client.thread_events(&threads[0]).await);
}
