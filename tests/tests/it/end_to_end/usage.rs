//! Tokens: what was reported is counted once, and what was not stays unknown.

use serde_json::Value;
use tests::{
    invariants::assert_whole,
    record::{last_seq, number, of_type, only, text},
    server::{Setup, TestServer},
    stub_model::{Asked, Call, Gate, Reply, StubModel, UsageSent},
};

/// A lead that delegates once; its requests and the subagent's are reported so.
async fn run_with(lead: UsageSent, subagent: UsageSent) -> (TestServer, StubModel, String, Value) {
    let script = move |asked: &Asked| {
        let reply = match (asked.is_lead(), asked.turn) {
            (true, 0) => Reply::calls([Call::task("general-purpose", "p").id("call_1")]).usage(lead),
            (true, _) => Reply::says("done").usage(lead),
            (false, 0) => Reply::calls([Call::new("ls", serde_json::json!({}))]).usage(subagent),
            (false, _) => Reply::says("report").usage(subagent),
        };
        reply.into()
    };
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, run) = server.client.run_to_end("delegate").await;
    (server, stub, thread_id, run)
}

// Facts §12 lines 63 and 80, field report 88: the sums are the calls, and agree everywhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sums_agree_everywhere() {
    for way in [UsageSent::LastChunk, UsageSent::WithFinish] {
        let (server, _stub, thread_id, run) = run_with(way(100, 50), way(200, 80)).await;
        let events = server.client.thread_events(&thread_id).await;
        assert_whole(&events);
        let end = &only(&events, "subagent.end")["content"];
        let ledger = server.client.ledger(&thread_id, last_seq(&events)).await;
        let card = server.client.card(&thread_id, text(&run, "run_id"), "call_1", last_seq(&events)).await;
        for usage in [&end["usage"], &ledger[0]["usage"], &card["usage"], &run["subagent_usage"]] {
            let counts = ["input_tokens", "output_tokens", "total_tokens"].map(|key| number(usage, key));
            assert_eq!(counts, [400, 160, 560], "{usage}");
        }
        let counts = ["input_tokens", "output_tokens", "total_tokens"].map(|key| number(&run["usage"], key));
        assert_eq!(counts, [600, 260, 860], "{run}");
        assert_eq!(only(&events, "run.end")["content"]["usage"]["total_tokens"], 860);
    }
}

// Facts §12 line 64, field report 87: no report is not a report of 0.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_reported_stays_unknown() {
    for unknown in [UsageSent::Absent, UsageSent::Null, UsageSent::LastChunk(0, 0)] {
        let (server, _stub, thread_id, run) = run_with(unknown, unknown).await;
        let events = server.client.thread_events(&thread_id).await;
        assert_whole(&events);
        let card = server.client.card(&thread_id, text(&run, "run_id"), "call_1", last_seq(&events)).await;
        for usage in [
            &only(&events, "subagent.end")["content"]["usage"],
            &card["usage"],
            &run["usage"],
            &run["subagent_usage"],
        ] {
            assert!(usage.is_null(), "{unknown:?}: {usage}");
        }
        for reply in of_type(&events, "llm.ai.response") {
            assert!(reply["content"]["usage_metadata"].is_null(), "{unknown:?}: {reply}");
        }
    }
}

// Facts §12 line 65: what a child at work has used so far is shown while it works, with its model.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_at_work_shows_what_it_has_used() {
    let gate = Gate::closed();
    let held = gate.clone();
    let script = move |asked: &Asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls([Call::task("general-purpose", "p").id("call_1")]).into(),
        (false, 0) => {
            Reply::calls([Call::new("ls", serde_json::json!({}))]).usage(UsageSent::LastChunk(100, 20)).into()
        }
        (false, _) => Reply::says("report").usage(UsageSent::LastChunk(200, 40)).held_by(&held),
        (true, _) => Reply::says("done").into(),
    };
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let thread_id = server.client.create_thread().await;
    let run_id = server.client.start_run(&thread_id, "delegate").await;
    stub.wait_for("the child's second question", |requests| requests.len() == 3).await;
    let so_far = server.client.thread_events(&thread_id).await;
    let card = server.client.card(&thread_id, &run_id, "call_1", last_seq(&so_far)).await;
    assert_eq!((text(&card, "status"), text(&card, "model_name")), ("in_progress", "stub"), "{card}");
    assert_eq!(number(&card["usage"], "total_tokens"), 120);
    gate.open();
    server.client.ended(&thread_id, &run_id).await;
    let events = server.client.thread_events(&thread_id).await;
    let card = server.client.card(&thread_id, &run_id, "call_1", last_seq(&events)).await;
    assert_eq!(number(&card["usage"], "total_tokens"), 360);
}

// Facts §12 line 18, field report 88: a child on a model of its own is asked there, and its tokens
// are under that model.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_on_another_model_is_counted_under_it() {
    let first = StubModel::start(|asked| match (asked.is_lead(), asked.turn) {
        (true, 0) => {
            let (own, inherited) = (Call::task("reviewer", "p"), Call::task("general-purpose", "q"));
            Reply::calls([own.id("own"), inherited.id("inherited")]).into()
        }
        (true, _) | (false, _) => Reply::says("done").usage(UsageSent::LastChunk(10, 1)).into(),
    })
    .await;
    let second = StubModel::start(|_| Reply::says("reviewed").usage(UsageSent::LastChunk(7, 7)).into()).await;
    let reviewer =
        r#"{"custom_agents": {"reviewer": {"description": "d", "system_prompt": "s", "model": "second"}}}"#;
    let setup = Setup::with_models(&[(&first, "first"), (&second, "second")])
        .configured(|config| config.subagents = serde_json::from_str(reviewer).unwrap());
    let server = TestServer::start(setup).await;
    let (thread_id, run) = server.client.run_to_end("delegate").await;
    assert_eq!(text(&run, "status"), "success", "{run}");
    assert_eq!((first.count(), second.count()), (3, 1));
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    let ledger = server.client.ledger(&thread_id, last_seq(&events)).await;
    let shown: Vec<_> =
        ledger.iter().map(|row| (text(row, "model_name"), number(&row["usage"], "total_tokens"))).collect();
    assert_eq!(shown, [("second", 14), ("first", 11)]);
    assert_eq!(number(&run["subagent_usage"], "total_tokens"), 25);
    assert_eq!(number(&run["usage"], "total_tokens"), 25 + 110 + 11);
}
