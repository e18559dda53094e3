//! What children say stays out of the conversation's feed.

use serde_json::{Value, json};
use tests::{
    invariants::assert_whole,
    record::{of_type, text},
    server::{Setup, TestServer},
    stub_model::{Asked, Call, Reply, StubModel},
};

const SECRET_THOUGHT: &str = "only the child says marmalade";

fn script(asked: &Asked) -> tests::stub_model::Answer {
    let reply = match (asked.is_lead(), asked.turn) {
        (true, 0) => Reply::calls([Call::task("general-purpose", "p").id("call_1")]),
        (true, _) => Reply::says("the lead is done"),
        (false, 0) => Reply::calls([Call::new("ls", json!({}))]).and_says(SECRET_THOUGHT),
        (false, _) => Reply::says("the report"),
    };
    reply.into()
}

// Facts §12 lines 52 and 98, field report 61.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_text_is_never_in_the_message_category() {
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let thread_id = server.client.create_thread().await;
    let frames = server.client.start_and_follow(&thread_id, "delegate").await.rest().await;
    let events = server.client.thread_events(&thread_id).await;
    assert_whole(&events);
    let in_feed: Vec<&Value> = events.iter().filter(|event| event["category"] == "message").collect();
    assert_eq!(in_feed.len(), 4, "a question, two replies and one result");
    for event in &in_feed {
        assert!(!event.to_string().contains(SECRET_THOUGHT), "{event}");
        assert!(!text(event, "event_type").starts_with("subagent."), "{event}");
    }
    let of_child: Vec<&Value> =
        events.iter().filter(|event| event.to_string().contains(SECRET_THOUGHT)).collect();
    assert!(!of_child.is_empty());
    for event in of_child {
        assert_eq!(text(event, "category"), "subagent", "{event}");
        assert!(event["delegation_id"].is_string() && event["task_id"] == "call_1", "{event}");
    }
    // Frames of children carry their own event name and their delegation.
    for frame in frames.iter().filter(|frame| frame.data.to_string().contains(SECRET_THOUGHT)) {
        assert!(frame.event.starts_with("subagent."), "{frame:?}");
        assert!(frame.data["delegation_id"].is_string(), "{frame:?}");
    }
    // The lead's own requests hold the report and nothing of the way there.
    for request in stub.requests().iter().filter(|asked| asked.is_lead()) {
        assert!(!request.body.to_string().contains("marmalade"), "{}", request.body);
    }
    assert!(!of_type(&events, "subagent.step").is_empty());
}

// Facts §12 line 110: the result of the task is in the feed, the child's replies are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_result_of_a_task_is_in_the_feed() {
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, _) = server.client.run_to_end("delegate").await;
    let events = server.client.thread_events(&thread_id).await;
    let results = of_type(&events, "llm.tool.result");
    assert_eq!(results.len(), 1);
    assert_eq!(
        (text(results[0], "category"), &results[0]["content"]["tool_call_id"]),
        ("message", &json!("call_1"))
    );
    assert!(text(&results[0]["content"], "content").contains("the report"));
}
