//! A log whose records were changed while nobody had it open: one name for it at every entrance.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tests::client::Client;

use super::remit;

/// What the first frame's header says of its length stands here.
const PAYLOAD_LENGTH_AT: usize = 12;
const FRAME_HEADER_BYTES: usize = 92;
/// Opening reads the end of the record and what the index's tables lack: the last few megabytes. So
/// there are more, of one commit each.
const EVENTS_COUNT: usize = 160;
const EVENT_CHARS: usize = 130_000;

/// Changes a byte in the middle of the commit with this number, counted from the first.
fn change_commit(data: &Path, number: usize) {
    let segment = data.join("log/segments/0000000000000000.seg");
    let mut bytes = fs::read(&segment).unwrap();
    let payload = |bytes: &[u8], at: usize| {
        let length = &bytes[at + PAYLOAD_LENGTH_AT..][..4];
        u32::from_be_bytes(length.try_into().unwrap()) as usize
    };
    let at = (1..number).fold(0, |at, _| at + FRAME_HEADER_BYTES + payload(&bytes, at));
    let middle = at + FRAME_HEADER_BYTES + payload(&bytes, at) / 2;
    bytes[middle] ^= 1;
    fs::write(&segment, &bytes).unwrap();
}

fn event(number: usize) -> Value {
    let content = format!("{number} {}", "words ".repeat(EVENT_CHARS / 6));
    json!({"run_id": "r", "event_type": "note", "category": "trace", "content": content, "metadata": {}})
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
    change_commit(&remit.data(), 3);

    let words = ["events", "--thread", "t"];
    let here = remit.run(&words).await.exited(5);
    assert!(here.stderr.contains("damaged"), "{}", here.stderr);
    remit.run(&["verify"]).await.exited(5);

    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    for path in ["/api/threads/t/events", "/api/threads/t/runs/r/events", "/api/events"] {
        let answer = client.get(path).await;
        assert_eq!((answer.status, &answer.body["code"]), (500, &json!("integrity")), "{path}: {answer:?}");
        assert!(answer.detail().contains("damaged"), "{path}: {answer:?}");
    }
    let there = remit.run(&[&words[..], &["--server", &served.url]].concat()).await.exited(5);
    assert!(there.stderr.contains("damaged"), "{}", there.stderr);
    let words = ["tail", "--after-position", "0", "--server", &served.url];
    let followed = remit.run(&words).await.exited(5);
    assert!(followed.stderr.contains("damaged"), "{}", followed.stderr);
    // What is whole is still served, and the log goes on.
    let whole = client.get("/api/threads/t/runs/r/events?after_seq=10").await.ok();
    assert!(!whole.as_array().unwrap().is_empty());
    client.post("/api/threads/t/events", &event(EVENTS_COUNT)).await.ok();
    assert_eq!(served.stop("-TERM").await, Some(0));
}
