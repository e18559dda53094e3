//! Views are made again by a real server while it answers, over a `kill -9` in the middle.

use std::path::PathBuf;

use eventlog::{EventLog, Options};
use projections::bench::{BenchHistory, DelegationSize};
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
    let before = answers(&client).await;
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
