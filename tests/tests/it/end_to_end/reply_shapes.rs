//! Replies in every careless shape that providers are known for.

use serde_json::{Value, json};
use tests::{
    invariants::assert_whole,
    record::{of_type, text},
    server::{Setup, TestServer},
    stub_model::{
        Answer, Asked, Call, Finish, Fragments, IdSent, IndexSent, NameSent, Reply, Strictness, StubModel,
    },
};

const PATHS: [&str; 2] = ["/mnt/user-data/workspace/größe 😀", "/mnt/user-data/workspace/\"b\"\n"];

fn two_calls() -> Vec<Call> {
    PATHS.map(|path| Call::new("ls", json!({"path": path}))).into()
}

/// For each of these answers a run whose first reply it is: the calls that were recorded of it.
async fn recorded_calls(firsts: Vec<Answer>) -> Vec<Vec<Value>> {
    let count = firsts.len();
    let script = move |asked: &Asked| match asked.turn {
        0 => firsts[(asked.number - 1) / 2].clone(),
        _ => Reply::says("done").into(),
    };
    let stub = StubModel::start(script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let mut recorded = Vec::new();
    for at in 0..count {
        let (thread_id, run) = server.client.run_to_end("look").await;
        assert_eq!(text(&run, "status"), "success", "{at}: {run}");
        let events = server.client.thread_events(&thread_id).await;
        assert_whole(&events);
        let reply = &of_type(&events, "llm.ai.response")[0]["content"];
        let calls = reply["tool_calls"].as_array().cloned().unwrap_or_default();
        assert_eq!(of_type(&events, "llm.tool.result").len(), calls.len(), "{at}: every call has one result");
        recorded.push(calls);
    }
    stub.assert_strict();
    recorded
}

#[track_caller]
fn assert_two_calls(calls: &[Value], how: &str) {
    let args: Vec<_> = calls.iter().map(|call| call["args"].clone()).collect();
    assert_eq!(args, PATHS.map(|path| json!({"path": path})), "{how}");
    assert!(calls.iter().all(|call| call["name"] == "ls"), "{how}: {calls:?}");
    assert_ne!(calls[0]["id"], calls[1]["id"], "{how}");
}

// Field reports 81 and 83: index missing or repeated, id missing, name only first or empty,
// pieces cut inside characters. What begins a call must be told by at least one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fragments_make_the_same_two_calls() {
    let indexes = [IndexSent::Place, IndexSent::Zero, IndexSent::Missing];
    let ids = [IdSent::First, IdSent::Every, IdSent::Missing];
    let names = [NameSent::First, NameSent::Every, NameSent::ThenEmpty];
    let mut cases = Vec::new();
    for (index, id, name) in product(&indexes, &ids, &names) {
        let is_told = index == IndexSent::Place || id != IdSent::Missing || name != NameSent::Every;
        for (piece_bytes, inside_characters) in [(0, false), (5, false), (3, true)] {
            if !is_told && piece_bytes > 0 {
                continue;
            }
            cases.push(Fragments { piece_bytes, inside_characters, index, id, name });
        }
    }
    let answers = cases.iter().map(|fragments| Reply::calls(two_calls()).fragments(*fragments).into());
    let recorded = recorded_calls(answers.collect()).await;
    for (fragments, calls) in cases.iter().zip(recorded) {
        assert_eq!(calls.len(), 2, "{fragments:?}: {calls:?}");
        assert_two_calls(&calls, &format!("{fragments:?}"));
    }
}

fn product<A: Copy, B: Copy, C: Copy>(first: &[A], second: &[B], third: &[C]) -> Vec<(A, B, C)> {
    let pairs = first.iter().flat_map(|a| second.iter().map(move |b| (*a, *b)));
    pairs.flat_map(|(a, b)| third.iter().map(move |c| (a, b, *c))).collect()
}

// Field report 79: calls rule, whatever the provider says of why it stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn complete_calls_run_whatever_the_finish_reason() {
    let finishes = [
        Finish::Proper,
        Finish::Said("tool_calls"),
        Finish::Said("stop"),
        Finish::Said("other"),
        Finish::Said("length"),
        Finish::Null,
        Finish::Absent,
    ];
    let mut answers: Vec<Answer> =
        finishes.iter().map(|finish| Reply::calls(two_calls()).finish(finish.clone()).into()).collect();
    answers.push(Reply::calls(two_calls()).without_done().into());
    answers.push(Reply::calls(two_calls()).whole());
    for (at, calls) in recorded_calls(answers).await.iter().enumerate() {
        assert_two_calls(calls, &format!("{:?}", finishes.get(at)));
    }
}

// Field report 90: what a provider wants to see again is sent again, over several turns and runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_sees_its_reasoning_again() {
    let script = |asked: &Asked| match asked.turn {
        0 | 1 => {
            Reply::calls([Call::new("ls", json!({}))]).reasoning(format!("thought {}", asked.number)).into()
        }
        _ => Reply::says("done").reasoning("last thought").into(),
    };
    let stub = StubModel::start_with(Strictness { needs_reasoning: true }, script).await;
    let server = TestServer::start(Setup::with_stub(&stub)).await;
    let (thread_id, run) = server.client.run_to_end("look").await;
    assert_eq!(text(&run, "status"), "success", "{run}");
    let second = server.client.start_run(&thread_id, "again").await;
    assert_eq!(text(&server.client.ended(&thread_id, &second).await, "status"), "success");
    stub.assert_strict();
    let last = stub.requests().pop().unwrap();
    let thoughts: Vec<_> =
        last.messages().iter().filter_map(|message| message["reasoning_content"].as_str()).collect();
    assert_eq!(thoughts, ["thought 1", "thought 2", "last thought", "thought 4", "thought 5"]);
}
