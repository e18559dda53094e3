//! Calls that cannot run as they are: unfinished JSON, no name, an unknown tool. Each gets an error
//! that says what is wrong, and the conversation stays in good shape.

use serde_json::{Value, json};
use tests::{
    invariants::assert_whole,
    record::{of_type, text},
    server::{Setup, TestServer},
    stub_model::{Asked, Call, Finish, Reply, StubModel},
};

/// What a lead's call comes to: the result that it gets.
async fn check(calls: Vec<Call>, finish: Finish, expected: &[&str]) {
    let script = move |asked: &Asked| match asked.turn {
        0 => Reply::calls(calls.clone()).finish(finish.clone()).into(),
        _ => Reply::says("done").into(),
    };
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, run) = server.client.run_to_end("look").await;
    assert_eq!(text(&run, "status"), "success", "{run}");
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    let results: Vec<_> =
        of_type(&events, "llm.tool.result").iter().map(|event| event["content"].clone()).collect();
    assert_eq!(results.len(), expected.len(), "{results:?}");
    for (result, expected) in results.iter().zip(expected) {
        assert!(text(result, "content").contains(expected), "{result}, not {expected:?}");
    }
    assert!(of_type(&events, "tool.started").is_empty(), "nothing with an effect was started");
    let next = stub.requests().pop().unwrap();
    assert_eq!(next.results().len(), expected.len(), "the model is told");
    stub.assert_strict();
}

// Field report 79: a call that was truncated under `length` never runs, nor any other that is no
// JSON object.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_json_never_runs() {
    for finish in [Finish::Proper, Finish::Said("length"), Finish::Said("stop")] {
        for arguments in [
            "{\"path\": \"/mnt/user-data/workspace/x\", \"content\": \"abc",
            "{\"path\"",
            "nothing",
            "[1]",
            "\"text\"",
        ] {
            let calls = vec![Call::raw("write_file", arguments)];
            check(calls, finish.clone(), &["the arguments are not a complete JSON object"]).await;
        }
    }
}

// Field report 85: the good call runs, the nameless one gets an error, and the history is accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_a_name_spoils_nothing() {
    let calls = vec![Call::new("ls", json!({"path": "/mnt/user-data/workspace"})), Call::new("", json!({}))];
    check(calls, Finish::Proper, &["", "the call names no tool"]).await;
    let calls = vec![Call::new("no such tool!", json!({})), Call::new("ls", json!({"path": "/etc"}))];
    check(calls, Finish::Proper, &["there is no tool \"no such tool!\"", "Error"]).await;
}

// A `task` call that cannot be carried out is refused by name, and the ledger shows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_call_with_bad_arguments_is_refused() {
    for (arguments, expected) in [
        ("{\"description\": \"d\", \"prompt\": \"p", "not a complete JSON object"),
        ("{\"description\": \"d\"}", "missing field"),
        ("{\"description\": \"d\", \"prompt\": \" \", \"subagent_type\": \"bash\"}", "the prompt is empty"),
        ("{\"description\": \"d\", \"prompt\": 5, \"subagent_type\": \"bash\"}", "invalid type"),
    ] {
        let script = move |asked: &Asked| match asked.turn {
            0 => Reply::calls([Call::raw("task", arguments).id("call_1")]).into(),
            _ => Reply::says("done").into(),
        };
        let stub = StubModel::start(script).await;
        let server = TestServer::start(Setup::with_stub(&stub)).await;
        let (thread_id, _) = server.client.run_to_end("delegate").await;
        let events = server.client.thread_events(&thread_id).await;
        assert_whole(&events);
        let ledger = server.client.ledger(&thread_id, events.len() as u64).await;
        assert_eq!(ledger.len(), 1, "{ledger:?}");
        assert_eq!((text(&ledger[0], "status"), text(&ledger[0], "task_id")), ("refused", "call_1"));
        assert!(text(&ledger[0], "error").contains(expected), "{ledger:?}");
        assert_eq!(stub.count(), 2, "no model was asked for a refused task");
        let refusal = of_type(&events, "delegation.refused");
        assert_eq!(refusal[0]["content"]["reason"], Value::from("invalid_arguments"));
        stub.assert_strict();
    }
}

// A lead that may not delegate has no `task` tool, and does not hear of one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lead_that_may_not_delegate_cannot() {
    let script = |asked: &Asked| match asked.turn {
        0 => Reply::calls([Call::task("general-purpose", "p").id("call_1")]).into(),
        _ => Reply::says(asked.results()[0].1.clone()).into(),
    };
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let thread_id = server.client.create_thread().await;
    let run_id = server.client.start_run_with(&thread_id, "x", json!({"subagent_enabled": false})).await;
    let run = server.client.ended(&thread_id, &run_id).await;
    assert!(text(&run, "result").contains("there is no tool \"task\""), "{run}");
    for asked in stub.requests() {
        assert!(!asked.tools().contains(&"task") && !asked.system().contains("<subagent_system>"));
    }
    assert_whole(&server.client.thread_events(&thread_id).await);
}
