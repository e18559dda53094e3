//! Readers that are connected and read nothing, while a hundred megabytes are recorded.

use serde_json::json;
use tests::{client::Client, wait};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use super::remit;

const EVENTS: usize = 100;
const EVENT_BYTES: usize = 1024 * 1024;
const READERS: usize = 4;
/// What the server may need more meanwhile: a page for each reader, for the views and for an answer. What
/// is recorded, once for each reader, is three times as much.
const MEMORY_KIB_MAX: u64 = 128 * 1024;

async fn idle(address: &str, path: &str) -> TcpStream {
    let mut reader = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
    reader.write_all(request.as_bytes()).await.unwrap();
    reader
}

// Field report 64: memory is bounded however many do not read, and a cursor gets all of it afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_do_not_read_cost_no_memory_and_miss_nothing() {
    let remit = remit();
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    let ingest = |number: usize, body: &str| {
        let event =
            json!({"run_id": "r", "event_type": "note", "category": "trace", "content": [number, body]});
        let client = client.clone();
        async move { client.post("/api/threads/t/events", &event).await.ok() }
    };
    let body = "x".repeat(EVENT_BYTES);
    for number in 0..4 {
        ingest(number, &body).await;
    }
    let address = served.url.trim_start_matches("http://").to_owned();
    let mut readers = Vec::new();
    for number in 0..READERS {
        let of_run = number % 2 == 0;
        readers
            .push(idle(&address, if of_run { "/api/threads/t/runs/r/stream" } else { "/api/events" }).await);
    }
    wait::until_answer("the streams are open", || async {
        let capacity = client.get("/api/capacity").await.ok();
        (capacity["open_streams"] == READERS).then_some(())
    })
    .await;
    let before = served.peak_kib();
    for number in 4..EVENTS {
        ingest(number, &body).await;
    }
    // Whoever reads gets all of it, in one answer, which is not held whole either.
    let events = client.thread_events("t").await;
    let numbers: Vec<_> = events.iter().map(|event| event["content"][0].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..EVENTS as u64).collect::<Vec<_>>());
    let more = served.peak_kib() - before;
    assert!(more < MEMORY_KIB_MAX, "{more} KiB more");
    drop(readers);
    served.crash().await;
}
