//! A reader that does not read, a thousand events, and then a cancel: the end comes soon, and
//! nothing is lost.

use std::time::Duration;

use serde_json::json;
use tests::{
    invariants::assert_whole,
    record::of_type,
    server::{Setup, TestServer},
    sse::records,
    stub_model::{Asked, Call, Gate, Reply, StubModel},
    wait,
};

/// Calls of one reply, and replies that call.
const CALLS: usize = 120;
const REPLIES: usize = 9;

// Field report 21.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_gets_the_end_soon_after_a_cancel() {
    let gate = Gate::closed();
    let held = gate.clone();
    let script = move |asked: &Asked| match asked.turn {
        turn if turn < REPLIES => {
            let look = || Call::new("ls", json!({"path": "/mnt/user-data/workspace"}));
            Reply::calls(std::iter::repeat_with(look).take(CALLS)).into()
        }
        _ => Reply::says("never said").held_by(&held),
    };
    let stub = StubModel::start(script).await;
    let setup = Setup::with_stub(&stub).configured(|config| config.loop_detection.enabled = false);
    let server = TestServer::start(setup).await;
    let thread_id = server.client.create_thread().await;
    let mut reader = server.client.start_and_follow(&thread_id, "look often").await;
    let run_id = reader.expect().await.data["run_id"].as_str().unwrap().to_owned();
    stub.wait_for("the last question", |requests| requests.len() == REPLIES + 1).await;
    assert_eq!(server.client.cancel(&thread_id, &run_id).await, 202);
    let run =
        wait::within(Duration::from_secs(5), "the end of the run", server.client.ended(&thread_id, &run_id))
            .await;
    assert_eq!(run["status"], "interrupted");
    let frames = reader.rest_within(Duration::from_secs(10)).await;
    assert_eq!(frames.last().unwrap().event, "end");
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    assert_eq!(of_type(&events, "llm.tool.result").len(), CALLS * REPLIES);
    assert_eq!(records(&frames), server.client.events(&thread_id, &run_id).await);
}
