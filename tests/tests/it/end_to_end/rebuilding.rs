//! Views are made again by a real server while it answers, over a `kill -9` in the middle.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use eventlog::{EventLog, Options};
use projections::bench::{BenchHistory, DelegationSize};
use reqwest::Method;
use serde_json::{Value, json};
use tests::{client::Client, process::Remit, record::text, wait};

use super::remit;

/// Events of the log: several pages of a rebuild.
const EVENTS: u64 = 30_000;

/// Fills the data folder with runs and their delegations, before a server has it.
async fn fill(remit: &Remit) {
    let data: PathBuf = remit.data();
    let fill = move || {
        let log = EventLog::open(&data, Options::default()).unwrap();
        BenchHistory::new(DelegationSize::default()).fill(&log, EVENTS).unwrap();
    };
    tokio::task::spawn_blocking(fill).await.unwrap();
}

/// What the server answers about the first thread, now and as of a moment in its middle.
async fn answers(client: &Client) -> Vec<Value> {
    let threads = client.get("/api/threads?limit=1").await.ok();
    let thread = format!("/api/threads/{}", text(&threads["data"][0], "thread_id"));
    let ledger = client.get(&format!("{thread}/delegations")).await.ok();
    let first = &ledger[0];
    let task = format!("{thread}/runs/{}/tasks/{}", text(first, "run_id"), text(first, "delegation_id"));
    let mut answers = vec![threads, ledger.clone()];
    for path in [
        format!("{thread}/runs"),
        format!("{thread}/runs?as_of=300"),
        format!("{thread}/delegations?as_of=300"),
        format!("{thread}/messages?limit=20"),
        format!("{task}/card"),
        format!("{task}/card?as_of=60"),
        "/api/usage?group_by=model".to_owned(),
    ] {
        answers.push(client.get(&path).await.ok());
    }
    answers
}

/// The same once the views have caught up with what was there before the server.
async fn answers_when_there(client: &Client) -> Vec<Value> {
    wait::until_answer("the views have caught up", || async {
        views(client).await.iter().all(|view| view["lag"] == 0).then_some(())
    })
    .await;
    answers(client).await
}

async fn views(client: &Client) -> Vec<Value> {
    client.get("/api/projections").await.ok().as_array().unwrap().clone()
}

// Field report 67. Promise 9, and promise 6: nothing of a rebuild is lost, doubled or seen half done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuild_goes_on_after_a_crash_and_changes_no_answer() {
    let remit = remit();
    fill(&remit).await;
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let before = answers_when_there(&client).await;
    let begun = client.post("/api/projections/rebuild", &json!({})).await.ok();
    assert_eq!(begun["views"].as_array().unwrap().len(), views(&client).await.len());
    let position = wait::until_answer("the rebuild is under way", || async {
        let shown = views(&client).await[0]["rebuild"].clone();
        shown["position"].as_u64().filter(|position| *position > 0 && shown["phase"] == "folding")
    })
    .await;
    assert!(position < EVENTS, "it was not done");
    assert_eq!(answers(&client).await, before, "while they are made again");
    served.crash().await;

    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    assert_eq!(answers(&client).await, before, "after the crash");
    wait::until_answer("the rebuild has gone on to its end", || async {
        assert_eq!(answers(&client).await, before, "while it goes on");
        let ended = views(&client).await.iter().all(|view| view["last_rebuild"]["outcome"] == "replaced");
        ended.then_some(())
    })
    .await;
    assert_eq!(answers(&client).await, before, "from what was made");
    assert_eq!(served.stop("-TERM").await, Some(0));

    let checked = remit.run(&["rebuild", "--check", "--json"]).await.exited(0).json();
    assert_eq!((&checked["outcome"], &checked["difference"]), (&json!("same"), &Value::Null), "{checked}");
    let unknown = remit.run(&["rebuild", "nobody"]).await.exited(3);
    assert!(unknown.stderr.contains("there is no view nobody"), "{unknown:?}");
}

/// A program that writes messages into a thread of its own until the server is gone.
struct Writer {
    client: Client,
    /// Messages whose storing was answered.
    acknowledged: Arc<AtomicU64>,
}

impl Writer {
    // Behind all others, so that it is not the first of the list.
    const THREAD: &str = "zz-load";
    /// Messages of one request.
    const BATCH: u64 = 5;

    async fn work(self) {
        let path = format!("/api/threads/{}/events", Self::THREAD);
        loop {
            let first = self.acknowledged.load(Ordering::SeqCst);
            let message = |number: u64| json!({"run_id": "r", "event_type": "note", "category": "message", "content": number});
            let batch: Vec<_> = (first..first + Self::BATCH).map(message).collect();
            let sent = self.client.request(Method::POST, &path).json(&batch).send().await;
            match sent {
                Ok(answered) if answered.status().is_success() => {
                    self.acknowledged.fetch_add(Self::BATCH, Ordering::SeqCst);
                }
                Ok(answered) => panic!("{answered:?}"),
                Err(_) => return,
            }
        }
    }
}

/// Asks about what nobody changes and about what is being written. Every answer is right, and none is
/// older than what the asker knows of.
async fn ask(client: &Client, still: &[Value], acknowledged: &AtomicU64) {
    assert_eq!(answers(client).await, still, "while others write");
    let known = acknowledged.load(Ordering::SeqCst);
    if known > 0 {
        let path = format!("/api/threads/{}/messages/count?min_seq={known}", Writer::THREAD);
        let count = client.get(&path).await.ok();
        assert!(count["count"].as_u64().unwrap() >= known, "{count} and not {known}");
    }
}

/// What the thread that is written has: each number once and in order, in the log and in the views.
async fn check_written(client: &Client, acknowledged: u64) -> u64 {
    let events = client.thread_events(Writer::THREAD).await;
    let numbers: Vec<_> = events.iter().map(|event| event["content"].as_u64().unwrap()).collect();
    let count = client.get(&format!("/api/threads/{}/messages/count", Writer::THREAD)).await.ok();
    let count = count["count"].as_u64().unwrap();
    assert!(count >= acknowledged, "{acknowledged} were acknowledged and {count} are there");
    assert_eq!(numbers, (0..count).collect::<Vec<_>>());
    count
}

// A rebuild during load: whoever asks is answered throughout, before a `kill -9` in the middle and after
// it, and of what was written meanwhile nothing is lost and nothing is there twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuild_under_load_answers_throughout_and_loses_nothing() {
    let remit = remit();
    fill(&remit).await;
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let still = answers_when_there(&client).await;
    let acknowledged = Arc::new(AtomicU64::new(0));
    let writer = Writer { client: client.clone(), acknowledged: Arc::clone(&acknowledged) };
    let writing = tokio::spawn(writer.work());
    client.post("/api/projections/rebuild", &json!({})).await.ok();
    let mut asked = 0;
    loop {
        ask(&client, &still, &acknowledged).await;
        asked += 1;
        let rebuild = views(&client).await[0]["rebuild"].clone();
        assert_eq!(rebuild["phase"], "folding", "it was not done before it could be interrupted");
        let is_in_the_middle = rebuild["position"].as_u64().unwrap() > 0 && asked > 1;
        if is_in_the_middle && rebuild["seconds_left"].is_u64() {
            break;
        }
    }
    served.crash().await;
    writing.await.unwrap();

    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let known = check_written(&client, acknowledged.load(Ordering::SeqCst)).await;
    acknowledged.store(known, Ordering::SeqCst);
    let writer = Writer { client: client.clone(), acknowledged: Arc::clone(&acknowledged) };
    let writing = tokio::spawn(writer.work());
    wait::until_answer("the rebuild has gone on to its end", || async {
        ask(&client, &still, &acknowledged).await;
        let ended = views(&client).await.iter().all(|view| view["last_rebuild"]["outcome"] == "replaced");
        ended.then_some(())
    })
    .await;
    ask(&client, &still, &acknowledged).await;
    let position = views(&client).await[0]["last_rebuild"]["position"].as_u64().unwrap();
    assert!(position > EVENTS, "it took in what was written meanwhile: {position}");
    writing.abort();
    let written = check_written(&client, acknowledged.load(Ordering::SeqCst)).await;
    assert!(written > known, "others wrote meanwhile");
    assert_eq!(served.stop("-TERM").await, Some(0));
    let checked = remit.run(&["rebuild", "--check", "--json"]).await.exited(0).json();
    assert_eq!(checked["outcome"], "same", "{checked}");
}

// The same command against a running server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_is_made_again_through_a_server() {
    let remit = remit();
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let thread_id = client.create_thread().await;
    let run_id = client.start_run(&thread_id, "look").await;
    client.ended(&thread_id, &run_id).await;
    let there = ["--server", served.url.as_str(), "--json"];
    for (words, outcome) in [(["rebuild", "cards"].as_slice(), "replaced"), (&["rebuild", "--check"], "same")]
    {
        let done = remit.run(&[words, &there].concat()).await.exited(0).json();
        assert_eq!(text(&done, "outcome"), outcome, "{done}");
    }
    remit.run(&[&["rebuild", "nobody"] as &[&str], &there].concat()).await.exited(3);
    let held = remit.run(&["rebuild"]).await.exited(4);
    assert!(held.stderr.contains("--server"), "{held:?}");
    served.crash().await;
}
