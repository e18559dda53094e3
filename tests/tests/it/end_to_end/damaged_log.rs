//! A log whose records were changed while nobody had it open: one name for it at every entrance.

use std::path::Path;

use eventlog::engine::{Access, Batch, Direction, Durability, Engine, KeyRange, Keyspace};
use serde_json::{Value, json};
use tests::client::Client;

use super::remit;

/// Where the records are.
const EVENTS: Keyspace = Keyspace { name: "events", access: Access::Scanned };
/// Records of its own commit each; opening looks at the last few of them only.
const EVENTS_COUNT: usize = 150;

/// Changes a byte in the middle of the record at a position, and leaves all that is needed to find it.
fn change_record(data: &Path, position: usize) {
    let engine = Engine::open(&data.join("log"), &[EVENTS]).unwrap();
    let records = engine.view().page(EVENTS, &KeyRange::all(), Direction::Forward, position).unwrap();
    let (key, mut record) = records.last().unwrap().clone();
    let middle = record.len() / 2;
    record[middle] ^= 1;
    let mut batch = Batch::new();
    batch.put(EVENTS, key, record);
    engine.commit(batch, Durability::Synced).unwrap();
}

fn event(number: usize) -> Value {
    json!({"run_id": "r", "event_type": "note", "category": "trace", "content": number, "metadata": {}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_is_integrity_at_every_entrance() {
    let remit = remit();
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    for number in 0..EVENTS_COUNT {
        client.post("/api/threads/t/events", &event(number)).await.ok();
    }
    assert_eq!(served.stop("-TERM").await, Some(0));
    change_record(&remit.data(), 3);

    let words = ["events", "--thread", "t"];
    let here = remit.run(&words).await.exited(5);
    assert!(here.stderr.contains("damaged data"), "{}", here.stderr);
    remit.run(&["verify"]).await.exited(5);

    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    for path in ["/api/threads/t/events", "/api/threads/t/runs/r/events", "/api/events"] {
        let answer = client.get(path).await;
        assert_eq!((answer.status, &answer.body["code"]), (500, &json!("integrity")), "{path}: {answer:?}");
        assert!(answer.detail().contains("damaged data"), "{path}: {answer:?}");
    }
    let there = remit.run(&[&words[..], &["--server", &served.url]].concat()).await.exited(5);
    assert!(there.stderr.contains("damaged data"), "{}", there.stderr);
    // What is whole is still served, and the log goes on.
    let whole = client.get("/api/threads/t/runs/r/events?after_seq=10").await.ok();
    assert!(!whole.as_array().unwrap().is_empty());
    client.post("/api/threads/t/events", &event(EVENTS_COUNT)).await.ok();
    assert_eq!(served.stop("-TERM").await, Some(0));
}
