//! How models are called, as the configuration says: how many at once, how often again, and when one
//! is left alone.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::Value;
use tests::{
    client::Client,
    invariants::assert_whole,
    process::Remit,
    record::{number, of_type, text},
    stub_model::{Answer, Call, Gate, Reply, StubModel},
    wait,
};

use super::remit;

fn configured(stub: &StubModel, more: &str) -> Remit {
    let remit = remit();
    let models = format!(
        "models:\n  - {{name: stub, provider: openai, base_url: \"{}\", api_key: k}}\n",
        stub.base_url()
    );
    remit.write("remit.yaml", &(models + more));
    remit
}

// Chain facts §2.8: one limit for the process, whoever calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_calls_than_are_allowed_reach_a_provider() {
    let gate = Gate::closed();
    let held = gate.clone();
    let stub = StubModel::start(move |asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls(["a", "b", "c"].map(|task| Call::task("general-purpose", task))).into(),
        (true, _) => Reply::says("done").into(),
        (false, _) => Reply::says("found").held_by(&held),
    })
    .await;
    let remit = configured(&stub, "llm_call: {max_concurrent_calls: 1}\n");
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let thread_id = client.create_thread().await;
    let run_id = client.start_run(&thread_id, "delegate").await;
    wait::until_answer("three subagents at work", || async {
        let events = client.events(&thread_id, &run_id).await;
        (of_type(&events, "subagent.message").len() == 6).then_some(())
    })
    .await;
    stub.wait_for("the first child's call", |requests| requests.len() == 2).await;
    assert_eq!(stub.count(), 2, "the lead's, and one of three children's");
    gate.open();
    assert_eq!(text(&client.ended(&thread_id, &run_id).await, "status"), "success");
    assert_eq!(stub.count(), 5);
    served.crash().await;
}

async fn run(client: &Client, thread_id: &str) -> String {
    let run_id = client.start_run(thread_id, "go").await;
    text(&client.ended(thread_id, &run_id).await, "status").to_owned()
}

// Chain facts (f) line 89, with the attempts and waits that the configuration says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_down_is_left_alone_and_tried_again_later() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = Arc::clone(&up);
    let stub = StubModel::start(move |_| match is_up.load(Ordering::SeqCst) {
        true => Reply::says("here again").into(),
        false => Answer::refusal(503, "down"),
    })
    .await;
    let remit = configured(
        &stub,
        "llm_call: {retry_max_attempts: 2, retry_base_ms: 1, retry_cap_ms: 1}\n\
         circuit_breaker: {threshold: 2, recovery_seconds: 6}\n",
    );
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let thread_id = client.create_thread().await;
    for asked in [2, 4, 4] {
        assert_eq!(run(&client, &thread_id).await, "error");
        assert_eq!(stub.count(), asked);
    }
    up.store(true, Ordering::SeqCst);
    wait::until_answer("the provider is asked again", || async {
        (run(&client, &thread_id).await == "success").then_some(())
    })
    .await;
    assert_eq!(stub.count(), 5, "one call tried it");
    let events = client.thread_events(&thread_id).await;
    assert_whole(&events);
    let failures: Vec<&Value> = of_type(&events, "llm.error").iter().map(|event| &event["content"]).collect();
    let shown = |at: usize| (text(failures[at], "reason"), number(failures[at], "attempts"));
    assert_eq!([shown(0), shown(1), shown(2)], [("transient", 2), ("transient", 2), ("circuit_open", 0)]);
    served.crash().await;
}
