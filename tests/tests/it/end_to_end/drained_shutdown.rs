//! A server that is told to stop while many clients append: what was answered is there, and what was
//! not answered is there once or not at all.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use reqwest::Method;
use serde_json::{Value, json};
use tests::{client::Client, wait};

use super::remit;

const CLIENTS: usize = 64;
/// Appends that are answered before the server is told to stop.
const ANSWERED_MIN: u64 = 1_000;

/// What one client knows at the end.
struct Told {
    thread: String,
    /// Numbers that were answered with success.
    answered: BTreeSet<u64>,
    /// The one that ended it, which may or may not be recorded.
    unanswered: u64,
    /// How it ended: a status, or none when the connection did.
    refusal: Option<u16>,
}

/// Appends numbers to a thread of its own until one is not answered with success.
async fn append_on(client: Client, thread: String, total: Arc<AtomicU64>) -> Told {
    let path = format!("/api/threads/{thread}/events");
    let mut answered = BTreeSet::new();
    for number in 0.. {
        let event = json!({"run_id": "r", "event_type": "note", "category": "trace", "content": number});
        let sent = client.request(Method::POST, &path).json(&event).send().await;
        match sent.map(|answer| answer.status().as_u16()) {
            Ok(200 | 201) => {
                answered.insert(number);
                total.fetch_add(1, Ordering::Relaxed);
            }
            refusal => return Told { thread, answered, unanswered: number, refusal: refusal.ok() },
        }
    }
    unreachable!("there are more numbers than the test has time for")
}

// Issue 3: a clean shutdown drains.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_loses_nothing_that_was_answered() {
    let remit = remit();
    let served = remit.serve(&[]).await;
    let (client, total) = (Client::new(&served.url), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| tokio::spawn(append_on(client.clone(), format!("t{number}"), Arc::clone(&total))))
        .collect();
    wait::until("enough is answered", || total.load(Ordering::Relaxed) >= ANSWERED_MIN).await;
    assert_eq!(served.stop("-TERM").await, Some(0));
    let mut told = Vec::new();
    for client in clients {
        told.push(client.await.unwrap());
    }

    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    for Told { thread, answered, unanswered, refusal } in &told {
        assert!(refusal.is_none_or(|status| status == 503), "{thread}: {refusal:?}");
        let events = client.thread_events(thread).await;
        let numbers: Vec<u64> = events.iter().map(|event| event["content"].as_u64().unwrap()).collect();
        let recorded: BTreeSet<u64> = numbers.iter().copied().collect();
        assert_eq!(numbers.len(), recorded.len(), "{thread} has something twice");
        let lost: Vec<_> = answered.difference(&recorded).collect();
        assert!(lost.is_empty(), "{thread} lost {lost:?}");
        let more: Vec<_> = recorded.difference(answered).copied().collect();
        assert!(more.is_empty() || more == [*unanswered], "{thread} has {more:?}");
        let seqs: Vec<&Value> = events.iter().map(|event| &event["seq"]).collect();
        assert_eq!(seqs, (1..=events.len()).map(Value::from).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    }
    assert_eq!(served.stop("-TERM").await, Some(0));
    remit.run(&["verify"]).await.exited(0);
}
