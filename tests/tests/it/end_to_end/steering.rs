//! Steering from outside: one delegation, all of a run's, or the run is cancelled over HTTP and with the
//! command, and who waits for a slot sees where.

use serde_json::{Value, json};
use tests::{
    client::Client,
    invariants::assert_whole,
    process::Remit,
    record::{of_type, text},
    stub_model::{Answer, Asked, Call, Gate, Reply, StubModel},
    wait,
};

use super::remit;

/// A lead with two children that never answer.
fn script(gate: Gate) -> impl Fn(&Asked) -> Answer + Send + Sync {
    move |asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => {
            let tasks = ["one", "two"].map(|task| Call::task("general-purpose", task).id(task));
            Reply::calls(tasks).into()
        }
        (true, _) => Reply::says("the lead goes on").into(),
        (false, _) => Reply::says("too late").held_by(&gate),
    }
}

fn configured(stub: &StubModel, max_running: usize) -> Remit {
    let remit = remit();
    let model = format!("{{name: stub, provider: openai, base_url: \"{}\", api_key: k}}", stub.base_url());
    remit.write(
        "remit.yaml",
        &format!("models: [{model}]\nsubagent_runtime: {{max_running: {max_running}}}\n"),
    );
    remit
}

fn reasons(events: &[Value]) -> Vec<(String, String)> {
    let mut reasons: Vec<_> = of_type(events, "subagent.end")
        .iter()
        .map(|end| &end["content"])
        .map(|end| (text(end, "task_id").to_owned(), text(end, "cancel_reason").to_owned()))
        .collect();
    reasons.sort();
    reasons
}

/// Cancels with these words of the command, and says how the run and its delegations ended.
async fn check(words: &[&str], status: &str, expected: &[(&str, &str)]) {
    let gate = Gate::closed();
    let stub = StubModel::start(script(gate.clone())).await;
    let remit = configured(&stub, 3);
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let thread_id = client.create_thread().await;
    let run_id = client.start_run(&thread_id, "delegate").await;
    stub.wait_for("both children ask", |requests| requests.len() == 3).await;
    let words = [&["cancel", "--server", &served.url, "--json"], words].concat();
    let cancelled = remit.run(&words).await.exited(0).json();
    assert_eq!(text(&cancelled, "run_id"), run_id);
    if status == "success" && expected.len() == 1 {
        // One child is left.
        wait::until_answer("one child has ended", || async {
            let events = client.events(&thread_id, &run_id).await;
            (of_type(&events, "subagent.end").len() == 1).then_some(())
        })
        .await;
        gate.open();
    }
    let run = client.ended(&thread_id, &run_id).await;
    assert_eq!(text(&run, "status"), status, "{words:?}: {run}");
    let events = client.thread_events(&thread_id).await;
    assert_whole(&events);
    let reasons: Vec<_> = reasons(&events).into_iter().filter(|(_, reason)| !reason.is_empty()).collect();
    let expected: Vec<_> =
        expected.iter().map(|(id, reason)| ((*id).to_owned(), (*reason).to_owned())).collect();
    assert_eq!(reasons, expected, "{words:?}");
    // What is over cannot be cancelled.
    let again = remit.run(&words).await;
    assert_eq!(again.code, Some(4), "{words:?}: {}", again.stderr);
    stub.assert_strict();
    served.crash().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_delegation_all_of_them_or_the_run_is_cancelled() {
    let by_user = "cancelled_by_user";
    check(&["two"], "success", &[("two", by_user)]).await;
    check(&["--delegations"], "success", &[("one", by_user), ("two", by_user)]).await;
    let interrupted = "parent_interrupted";
    check(&[], "interrupted", &[("one", interrupted), ("two", interrupted)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_needs_a_server_and_something_that_is_there() {
    let remit = remit();
    let refused = remit.run(&["cancel"]).await.exited(2);
    assert!(refused.stderr.contains("--server URL"), "{}", refused.stderr);
    let served = remit.serve(&[]).await;
    remit.run(&["cancel", "--server", &served.url]).await.exited(3);
    let client = Client::new(&served.url);
    let path = "/api/threads/t/runs/r/delegations/cancel";
    assert_eq!(client.post(path, &json!({})).await.status, 404);
    served.crash().await;
}

// Point 5: whoever waits sees its place, and how long that will take once anything tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_in_the_queue_shows_its_place() {
    let gate = Gate::closed();
    let held = gate.clone();
    let script = move |asked: &Asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls([Call::task("general-purpose", &asked.task).id("call_1")]).into(),
        (true, _) => Reply::says("done").into(),
        (false, _) if asked.is_about("quick") => Reply::says("report").into(),
        (false, _) => Reply::says("report").held_by(&held),
    };
    let stub = StubModel::start(script).await;
    let remit = configured(&stub, 1);
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let capacity = client.get("/api/capacity").await.ok();
    assert_eq!((&capacity["queue"], &capacity["estimated_wait_seconds"]), (&json!([]), &json!(0)));
    client.run_to_end("quick").await;
    let (mut runs, mut started) = (Vec::new(), 2);
    for what in ["slow one", "slow two", "slow three"] {
        let thread_id = client.create_thread().await;
        let run_id = client.start_run(&thread_id, what).await;
        started += 1;
        wait::until_answer("it is requested", || async {
            let capacity = client.get("/api/capacity").await.ok();
            let asked = capacity["running"].as_u64()? + capacity["queued"].as_u64()?;
            (asked + 2 == started).then_some(())
        })
        .await;
        runs.push((thread_id, run_id));
    }
    let capacity = client.get("/api/capacity").await.ok();
    let queue = capacity["queue"].as_array().unwrap();
    let places: Vec<_> = queue.iter().map(|place| place["place"].clone()).collect();
    assert_eq!((places, &capacity["running"]), (vec![json!(1), json!(2)], &json!(1)));
    assert!(capacity["estimated_wait_seconds"].is_u64(), "{capacity}");
    let (thread_id, run_id) = &runs[2];
    let card = wait::until_answer("the card is there", || async {
        let card = client.get(&format!("/api/threads/{thread_id}/runs/{run_id}/tasks/call_1/card")).await;
        (card.body["status"] == "queued").then_some(card.body)
    })
    .await;
    assert_eq!((&card["queue_place"], &card["delegation_id"]), (&json!(2), &queue[1]["delegation_id"]));
    assert!(card["estimated_wait_seconds"].is_u64(), "{card}");
    let words = ["card", "call_1", "--thread", thread_id, "--server", &served.url];
    let shown = remit.run(&words).await.exited(0);
    assert!(shown.stdout.contains("place 2, about "), "{}", shown.stdout);
    gate.open();
    for (thread_id, run_id) in &runs {
        let run = client.ended(thread_id, run_id).await;
        assert_eq!(text(&run, "status"), "success", "{run}");
        let card = client.card(thread_id, run_id, "call_1", run["seq"].as_u64().unwrap()).await;
        assert_eq!((&card["status"], &card["queue_place"]), (&json!("completed"), &Value::Null));
    }
    served.crash().await;
}
