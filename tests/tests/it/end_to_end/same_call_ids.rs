//! Providers use the same call ids again and again; our delegations do not mix.

use serde_json::json;
use tests::{
    invariants::assert_whole,
    plain_fold::{assert_card, assert_ledger},
    record::{last_seq, only, text},
    server::{Setup, TestServer},
    stub_model::{Answer, Asked, Call, Gate, Reply, StubModel},
};

fn script(gate: &Gate) -> impl Fn(&Asked) -> Answer + Send + Sync + use<> {
    let gate = gate.clone();
    move |asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls([Call::task("general-purpose", &asked.task).id("call_1")]).into(),
        (true, _) => Reply::says(asked.results()[0].1.clone()).into(),
        (false, 0) => {
            Reply::calls([Call::new("ls", json!({})).id("call_1")]).and_says(asked.task.clone()).into()
        }
        (false, _) => Reply::says("report").held_by(&gate),
    }
}

// Facts §12 line 46, field report 48: two runs at once, one cancelled child, the other untouched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_runs_with_the_same_ids_do_not_touch_each_other() {
    let gate = Gate::closed();
    let stub = StubModel::start(script(&gate)).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let client = &server.client;
    let threads = [client.create_thread().await, client.create_thread().await];
    let runs = [
        client.start_run(&threads[0], "first matter").await,
        client.start_run(&threads[1], "second matter").await,
    ];
    stub.wait_for("both children are held", |requests| requests.len() == 6).await;
    let cancel = format!("/api/threads/{}/runs/{}/tasks/call_1/cancel", threads[0], runs[0]);
    assert_eq!(client.post(&cancel, &json!({})).await.status, 202);
    let first = client.ended(&threads[0], &runs[0]).await;
    assert!(text(&first, "result").starts_with("Task cancelled"), "{first}");
    assert_eq!(text(&client.run(&threads[1], &runs[1]).await, "status"), "running");
    gate.open();
    let second = client.ended(&threads[1], &runs[1]).await;
    assert!(text(&second, "result").starts_with("Task Succeeded. Result: report"), "{second}");
    for (at, matter) in ["first matter", "second matter"].into_iter().enumerate() {
        let events = client.thread_events(&threads[at]).await;
        assert_whole(&events);
        let card = client.card(&threads[at], &runs[at], "call_1", last_seq(&events)).await;
        assert_card(&card, &events);
        assert!(text(&card["steps"][0], "text").contains(matter), "{card}");
    }
}

// The same id in the next run of the same thread is another delegation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_run_on_the_thread_uses_the_same_id() {
    let gate = Gate::closed();
    gate.open();
    let stub = StubModel::start(script(&gate)).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let client = &server.client;
    let thread_id = client.create_thread().await;
    let mut runs = Vec::new();
    for matter in ["first matter", "second matter"] {
        let run_id = client.start_run(&thread_id, matter).await;
        assert_eq!(text(&client.ended(&thread_id, &run_id).await, "status"), "success");
        runs.push(run_id);
    }
    let events = client.thread_events(&thread_id).await;
    assert_whole(&events);
    let ledger = client.ledger(&thread_id, last_seq(&events)).await;
    assert_ledger(&ledger, &events);
    assert_eq!(ledger.len(), 2);
    assert_ne!(ledger[0]["delegation_id"], ledger[1]["delegation_id"]);
    for (run_id, matter) in runs.iter().zip(["first matter", "second matter"]) {
        let card = client.card(&thread_id, run_id, "call_1", last_seq(&events)).await;
        assert!(text(&card["steps"][0], "text").contains(matter), "{card}");
        assert_eq!(text(only(&client.events(&thread_id, run_id).await, "subagent.end"), "run_id"), run_id);
    }
    stub.assert_strict();
}
