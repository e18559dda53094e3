//! How much a lead may delegate: one resolved limit, the same in the prompt, in the events and in
//! what happens.

use serde_json::json;
use tests::{
    invariants::assert_whole,
    record::{of_type, only, text},
    server::{Setup, TestServer},
    stub_model::{Asked, Call, Reply, StubModel},
};

fn tasks(turn: usize, count: usize) -> Vec<Call> {
    (1..=count)
        .map(|number| {
            Call::task("general-purpose", &format!("task {turn}.{number}")).id(&format!("t{turn}_{number}"))
        })
        .collect()
}

/// A lead that asks for so many tasks in each of its first turns.
fn asking(turns: usize, per_turn: usize) -> impl Fn(&Asked) -> tests::stub_model::Answer + Send + Sync {
    move |asked| match (asked.is_lead(), asked.turn) {
        (true, turn) if turn < turns => Reply::calls(tasks(turn, per_turn)).into(),
        (true, _) => Reply::says("I stop here.").into(),
        (false, _) => Reply::says("report").into(),
    }
}

// Facts §12 lines 22 and 26: what is over the limit per response is dropped from the reply, and
// everything else stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_over_the_limit_per_response_is_dropped() {
    let script = |asked: &Asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => {
            let mut calls = tasks(0, 4);
            calls.insert(2, Call::new("ls", json!({})).id("look"));
            Reply::calls(calls).into()
        }
        (true, _) => Reply::says("done").into(),
        (false, _) => Reply::says("report").into(),
    };
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let thread_id = server.client.create_thread().await;
    let limits = json!({"max_concurrent_subagents": 2});
    let run_id = server.client.start_run_with(&thread_id, "delegate", limits).await;
    let run = server.client.ended(&thread_id, &run_id).await;
    assert_eq!(text(&run, "status"), "success");
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    let reply = &of_type(&events, "llm.ai.response")[0]["content"];
    let kept: Vec<_> = reply["tool_calls"].as_array().unwrap().iter().map(|call| text(call, "id")).collect();
    assert_eq!(kept, ["t0_1", "t0_2", "look"]);
    let dropped: Vec<_> = of_type(&events, "delegation.refused")
        .iter()
        .map(|event| (text(&event["content"], "task_id"), text(&event["content"], "reason")))
        .collect();
    assert_eq!(dropped, [("t0_3", "per_response_limit"), ("t0_4", "per_response_limit")]);
    assert_eq!(of_type(&events, "subagent.start").len(), 2);
    let told = stub.requests().into_iter().rfind(Asked::is_lead).unwrap();
    let note = "[TASK CALL DROPPED] 2 `task` calls of your last reply";
    assert!(told.system().contains(note), "{}", told.system());
    stub.assert_strict();
}

// Facts §12 lines 23 and 24, field report 2: at most so many per run, however they are asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_delegates_at_most_so_often() {
    let stub = StubModel::start(asking(5, 3)).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, run) = server.client.run_to_end("delegate").await;
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    assert_eq!(of_type(&events, "subagent.start").len(), 6, "the default per run");
    assert!(of_type(&events, "run.cap").iter().any(|cap| cap["content"]["axis"] == "delegations"));
    assert_eq!(
        (text(&run, "status"), text(&run, "stop_reason")),
        ("success", "subagent_limit_capped"),
        "{run}"
    );
    assert!(text(&run, "result").contains("[SUBAGENT LIMIT REACHED]"), "{run}");
    // Facts §12 line 25: a new run counts from nothing.
    let run_id = server.client.start_run(&thread_id, "delegate more").await;
    server.client.ended(&thread_id, &run_id).await;
    let events = server.client.thread_events(&thread_id).await;
    assert_eq!(of_type(&events, "subagent.start").len(), 12);
    stub.assert_strict();
}

// Facts §12 line 21 and field report 4: one resolved number, in the prompt and in what runs at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_are_clamped_and_shown_as_they_are_enforced() {
    for (asked_for, per_response, asked_total, per_run) in
        [(0, 1, 0, 1), (-5, 1, -1, 1), (1, 1, 1, 1), (3, 3, 50, 50), (100, 3, 999, 50)]
    {
        let stub = StubModel::start(asking(1, 5)).await;
        let server = TestServer::start(Setup::with_stub(&stub)).await;
        let thread_id = server.client.create_thread().await;
        let limits = json!({"max_concurrent_subagents": asked_for, "max_total_subagents": asked_total});
        let run_id = server.client.start_run_with(&thread_id, "delegate", limits).await;
        server.client.ended(&thread_id, &run_id).await;
        let events = server.client.thread_events(&thread_id).await;
        assert_whole(&events);
        let started = &only(&events, "run.start")["content"];
        assert_eq!(started["max_concurrent_subagents"], per_response, "{asked_for}");
        assert_eq!(started["max_total_subagents"], per_run, "{asked_total}");
        let expected = usize::try_from(per_response.min(per_run)).unwrap();
        assert_eq!(of_type(&events, "subagent.start").len(), expected, "{asked_for} and {asked_total}");
    }
}

// Field report 7: a child that delegates gets an error that names the depth.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_do_not_delegate() {
    let script = |asked: &Asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls(tasks(0, 2)).into(),
        (true, _) => Reply::says("done").into(),
        (false, 0) => Reply::calls(tasks(9, 5)).into(),
        (false, _) => Reply::says(asked.results()[0].1.clone()).into(),
    };
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, _) = server.client.run_to_end("delegate").await;
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    assert_eq!(of_type(&events, "subagent.start").len(), 2);
    let refused = of_type(&events, "delegation.refused");
    assert_eq!(refused.len(), 10);
    assert!(refused.iter().all(|event| event["content"]["reason"] == "depth"));
    for end in of_type(&events, "subagent.end") {
        assert!(text(&end["content"], "result").contains("1 level deep"), "{end}");
    }
    for asked in stub.requests().iter().filter(|asked| !asked.is_lead()) {
        assert!(!asked.tools().contains(&"task"), "{:?}", asked.tools());
    }
    stub.assert_strict();
}

// Field report 3: a run that the command itself works on has the same cap as one over HTTP.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_the_command_has_the_same_cap() {
    let stub = StubModel::start(asking(1, 5)).await;
    let remit = super::remit();
    let model = format!("{{name: stub, provider: openai, base_url: \"{}\", api_key: k}}", stub.base_url());
    remit.write("remit.yaml", &format!("models: [{model}]\nsubagents: {{max_total_per_run: 2}}\n"));
    remit.run(&["run", "delegate"]).await.exited(0);
    let ledger = remit.run(&["ledger", "--json"]).await.exited(0).json();
    let statuses: Vec<_> = ledger.as_array().unwrap().iter().map(|row| text(row, "status")).collect();
    let count = |wanted| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!((count("completed"), count("refused"), statuses.len()), (2, 3, 5), "{statuses:?}");
    stub.assert_strict();
}
