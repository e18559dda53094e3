//! A disk that fills up while the server writes.

use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    client::{Answered, Client},
    process::Remit,
    volume::Volume,
    wait,
};

/// Enough for the journals of log and views, little enough to fill.
const DISK_MEBIBYTES: u64 = 64;
/// What is left when the disk is filled: above what is kept back, so that writing fills it.
const LEFT_MEBIBYTES: u64 = 12;
const EVENT_BYTES: usize = 200_000;
/// More than fits.
const EVENTS_MAX: usize = 400;
const EVENTS: &str = "/api/threads/t/events";

async fn append(client: &Client, number: usize) -> Answered {
    let content = json!({"number": number, "filler": "x".repeat(EVENT_BYTES)});
    let event = json!({"event_type": "note", "category": "trace", "content": content,
        "idempotency_key": format!("event {number}")});
    client.send(client.request(Method::POST, EVENTS).json(&event)).await
}

async fn numbers(client: &Client) -> Vec<Value> {
    let events = client.thread_events("t").await;
    events.iter().map(|event| event["content"]["number"].clone()).collect()
}

fn up_to(end: usize) -> Vec<Value> {
    (0..end).map(|number| json!(number)).collect()
}

/// Appends until one is refused; says how many were taken, and what was said.
async fn fill(client: &Client, from: usize) -> (usize, Answered) {
    for number in from..EVENTS_MAX {
        let answered = append(client, number).await;
        if answered.status != 200 {
            return (number, answered);
        }
    }
    panic!("{EVENTS_MAX} events fit");
}

// Field report 76.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writers_and_loses_nothing() {
    let remit = super::remit();
    let data = remit.data();
    std::fs::create_dir(&data).unwrap();
    let Some(volume) = Volume::mount(&data, DISK_MEBIBYTES) else {
        eprintln!("skipped: this system lets us make no namespace with a disk of its own");
        return;
    };
    let remit: Remit = remit.run_by(volume.words_before());
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    append(&client, 0).await.ok();
    let secret = json!({"event_type": "note", "category": "trace", "content": "to be forgotten"});
    client.post("/api/threads/gone/events", &secret).await.ok();
    volume.fill(LEFT_MEBIBYTES);
    let (taken, refused) = fill(&client, 1).await;
    assert!(taken > 5, "the disk was full too early: {}", refused.detail());
    assert_eq!(refused.status, 503, "{refused:?}");
    for word in ["the disk of", "is full", "are kept back", "free some"] {
        assert!(refused.detail().contains(word), "{}", refused.detail());
    }
    // Reads go on, and so does the server.
    assert_eq!(numbers(&client).await, up_to(taken));
    assert_eq!(append(&client, taken).await.status, 503);
    assert_eq!(client.get("/healthz").await.status, 200);
    let metrics = client.send(client.request(Method::GET, "/metrics")).await;
    assert_eq!(metrics.status, 200);

    // Forgetting, which makes room, is not refused.
    let erased = client.send(client.request(Method::DELETE, "/api/threads/gone")).await.ok();
    assert!(erased["erasure_id"].is_string(), "{erased}");
    assert_eq!(client.post("/api/threads/gone/events", &secret).await.status, 503);

    // There is room again: no restart is needed, and what was refused is recorded once.
    volume.empty();
    append(&client, taken).await.ok();
    assert_eq!(numbers(&client).await, up_to(taken + 1));
    assert_eq!(client.post("/api/threads/gone/events", &secret).await.status, 410);

    // The disk is full to the last block, and the process dies of it or not: after a restart with
    // room everything that was answered is there.
    volume.fill_up();
    assert_eq!(append(&client, taken + 1).await.status, 503);
    assert_eq!(numbers(&client).await, up_to(taken + 1));
    served.crash().await;
    volume.empty();
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    append(&client, taken + 1).await.ok();
    assert_eq!(numbers(&client).await, up_to(taken + 2));
    assert_eq!(served.stop("-TERM").await, Some(0));
    assert_eq!(remit.run(&["verify", "--json"]).await.exited(0).json()["whole"], true);
}

// The same when the disk fills behind the log's back, so that a commit meets its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_finds_no_room_ends_the_server_and_loses_nothing() {
    let remit = super::remit();
    let data = remit.data();
    std::fs::create_dir(&data).unwrap();
    let Some(volume) = Volume::mount(&data, DISK_MEBIBYTES) else {
        eprintln!("skipped: this system lets us make no namespace with a disk of its own");
        return;
    };
    let remit: Remit = remit.run_by(volume.words_before());
    let mut served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    append(&client, 0).await.ok();
    // What is left is above what is kept back, and less than one large append takes.
    volume.fill(8);
    let filler = "x".repeat(2_400_000);
    let large = |number| {
        json!({"event_type": "note", "category": "trace",
        "content": {"number": number, "filler": filler}})
    };
    let body = json!([large(1), large(2), large(3), large(4)]);
    let refused = client.post(EVENTS, &body).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.detail().contains("refuses writes since one failed"), "{}", refused.detail());
    assert!(refused.detail().contains("No space left on device"), "{}", refused.detail());
    let status = wait::within(wait::PATIENCE, "the server's end", served.child.wait()).await.unwrap();
    assert!(!status.success(), "{status}");
    let mut said = served.said;
    while let Some(line) = served.lines.next_line().await.unwrap() {
        said.push(line);
    }
    assert!(said.iter().any(|line| line.contains("free what it needs, and start")), "{said:?}");
    volume.empty();
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    // All of it is there, or nothing.
    let found = numbers(&client).await;
    assert!(found == up_to(1) || found == up_to(5), "{found:?}");
    append(&client, 5).await.ok();
    assert_eq!(served.stop("-TERM").await, Some(0));
    assert_eq!(remit.run(&["verify", "--json"]).await.exited(0).json()["whole"], true);
}
