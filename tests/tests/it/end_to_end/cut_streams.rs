//! A stream that is cut at any byte: the reply is asked for again, or was whole; nothing of half a
//! reply is ever done.

use runtime::models::{ModelSettings, Models};
use serde_json::json;
use tests::{
    invariants::assert_whole,
    record::{of_type, only, text},
    server::{Setup, TestServer},
    stub_model::{Answer, Asked, Call, Cut, Reply, StubModel},
};

const FILE: &str = "/mnt/user-data/workspace/once.txt";

fn first_reply() -> Reply {
    let write = Call::new("write_file", json!({"path": FILE, "content": "größe 😀"}));
    Reply::calls([write.id("call_1")]).and_says("I write it.")
}

async fn check(cut: Cut) {
    let script = move |asked: &Asked| -> Answer {
        match (asked.number, asked.turn) {
            (1, _) => first_reply().cut(cut),
            (_, 0) => first_reply().into(),
            (_, _) => Reply::says(asked.results()[0].1.clone()).into(),
        }
    };
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, run) = server.client.run_to_end("write").await;
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    assert_eq!(text(&run, "status"), "success", "{cut:?}: {run}");
    let (retries, replies) = (of_type(&events, "llm.retry").len(), of_type(&events, "llm.ai.response"));
    assert_eq!((replies.len(), stub.count()), (2, 2 + retries), "{cut:?}");
    assert_eq!(of_type(&events, "tool.started").len(), 1, "{cut:?}: the tool ran once");
    let call = &replies[0]["content"]["tool_calls"][0];
    assert_eq!(call["args"], json!({"path": FILE, "content": "größe 😀"}), "{cut:?}");
    stub.assert_strict();
}

/// Where the reply's last chunk begins that matters: the one with the finish reason.
fn complete_at() -> usize {
    let body = Answer::from(first_reply()).body(1);
    let text = String::from_utf8_lossy(&body).into_owned();
    let finish = text.find("\"finish_reason\":\"tool_calls\"").unwrap();
    assert!(finish > 500 && finish < body.len());
    body.len()
}

// The connection breaks, at many bytes of the body.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connection_breaks_at_any_byte() {
    for at in (0..complete_at()).step_by(61) {
        check(Cut::Break(at)).await;
    }
}

// A body that ends properly is not believed either, unless the reply had ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_body_ends_early_at_any_byte() {
    for at in (0..complete_at()).step_by(83) {
        check(Cut::Close(at)).await;
    }
}

// The reply arrives in pieces that end anywhere, inside characters too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_may_end_anywhere() {
    for bytes in [1, 2, 3, 7, 1_000] {
        let script = move |asked: &Asked| match asked.turn {
            0 => Answer::from(first_reply()).in_pieces_of(bytes),
            _ => Reply::says("größe 😀").into(),
        };
        let stub = StubModel::start(script).await;
        let server = TestServer::start(Setup::with_stub(&stub)).await;
        let (_, run) = server.client.run_to_end("write").await;
        assert_eq!((text(&run, "status"), text(&run, "result")), ("success", "größe 😀"), "{bytes}");
        assert_eq!(stub.count(), 2, "{bytes}: asked again");
    }
}

// A stream that goes quiet is not waited for longer than the chunk time-out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_goes_quiet_is_given_up() {
    let script = |asked: &Asked| -> Answer {
        match asked.number {
            1 => Reply::says("half of this never comes").cut(Cut::Stall(400)),
            _ => Reply::says("all of it").into(),
        }
    };
    let stub = StubModel::start(script).await;
    let impatient = ModelSettings { chunk_timeout_seconds: 1, ..stub.settings("stub") };
    let models = Models::from_settings(&[impatient], None, &|_| None).unwrap();
    let server = TestServer::start(Setup { models, ..Setup::with_stub(&stub) }).await;
    let (thread_id, run) = server.client.run_to_end("say it").await;
    assert_eq!((text(&run, "status"), text(&run, "result")), ("success", "all of it"), "{run}");
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    let retry = &only(&events, "llm.retry")["content"];
    assert_eq!(text(retry, "reason"), "transient");
    assert!(text(retry, "message").contains("took longer than 1s"), "{retry}");
}
