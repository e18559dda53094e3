//! Streams that are resumed: after a cursor comes exactly the rest, and no bad cursor starts a
//! hidden replay.

use std::time::Duration;

use reqwest::Method;
use tests::{
    record::{assert_ascending, text},
    server::{Setup, TestServer},
    sse::records,
    stub_model::{Asked, Call, Gate, Reply, StubModel},
};

fn script(asked: &Asked) -> tests::stub_model::Answer {
    let reply = match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls([Call::task("general-purpose", "p").id("call_1")]),
        (true, _) | (false, _) => Reply::says("done"),
    };
    reply.into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_any_cursor_comes_exactly_the_rest() {
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, run) = server.client.run_to_end("delegate").await;
    let run_id = text(&run, "run_id");
    let whole = server.client.follow(&thread_id, run_id, None).await.rest().await;
    let all = records(&whole);
    assert_ascending(&all);
    for (at, frame) in whole.iter().filter(|frame| frame.id.is_some()).enumerate() {
        let cursor = frame.id.clone().unwrap();
        assert_eq!(cursor, frame.data["position"].to_string());
        let rest = server.client.follow(&thread_id, run_id, Some(&cursor)).await.rest().await;
        assert_eq!(records(&rest), all[at + 1..], "after {cursor}");
        assert_eq!(rest.last().unwrap().event, "end");
    }
}

// A reader that leaves in the middle and comes back misses nothing and gets nothing twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_comes_back_misses_nothing() {
    let gate = Gate::closed();
    let held = gate.clone();
    let script = move |asked: &Asked| match asked.is_lead() {
        false => Reply::says("report").held_by(&held),
        true => script(asked),
    };
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let thread_id = server.client.create_thread().await;
    let mut reader = server.client.start_and_follow(&thread_id, "delegate").await;
    let run_id = text(&reader.expect().await.data, "run_id").to_owned();
    let mut before = Vec::new();
    while before.last().is_none_or(|frame: &tests::sse::Frame| frame.event != "subagent.start") {
        before.push(reader.expect().await);
    }
    drop(reader);
    let cursor = before.last().unwrap().id.clone().unwrap();
    let after = server.client.follow(&thread_id, &run_id, Some(&cursor)).await;
    gate.open();
    let after = after.rest().await;
    let both = [records(&before), records(&after)].concat();
    assert_eq!(both, server.client.events(&thread_id, &run_id).await);
}

// Field report 63.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_cursor_is_refused_and_replays_nothing() {
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, run) = server.client.run_to_end("delegate").await;
    let path = format!("/api/threads/{thread_id}/runs/{}/stream", text(&run, "run_id"));
    let future = (server.log.head().get() + 1).to_string();
    for cursor in ["-1", "abc", "0", "18446744073709551616", "1.5", "1 2", "+3", future.as_str()] {
        let request = server.client.request(Method::GET, &path).header("last-event-id", cursor);
        let answered = server.client.send(request).await;
        assert_eq!(
            (answered.status, answered.body["code"].as_str()),
            (400, Some("bad_request")),
            "{cursor:?}"
        );
        assert!(answered.detail().contains("Last-Event-ID"), "{cursor:?}: {answered:?}");
    }
    // Browsers send an empty one before they have any: that is no cursor.
    let frames = server.client.follow(&thread_id, text(&run, "run_id"), Some("")).await;
    let frames = frames.rest_within(Duration::from_secs(10)).await;
    assert_eq!(records(&frames).len(), server.client.events(&thread_id, text(&run, "run_id")).await.len());
}
