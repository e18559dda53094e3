//! A server that is killed again and again under load keeps everything that it answered.
//!
//! `REMIT_TEST_KILLS` says how often, and `REMIT_TEST_SEED` when.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use reqwest::Method;
use serde_json::{Value, json};
use tests::{client::Client, process::Remit, seed::Seed, wait};
use tokio::task::JoinSet;

const KILLS_VARIABLE: &str = "REMIT_TEST_KILLS";
const KILLS: usize = 50;
/// The first append after a start is answered within this, the start included (field report 74).
const FIRST_ANSWER_WITHIN: Duration = Duration::from_secs(5);
const WRITERS: usize = 6;
/// Two writers share each thread.
const THREADS: usize = 3;
/// Answers after which the server is killed: from one to so many.
const ANSWERS_MAX: u64 = 40;
/// Every so many rounds a command appends as well.
const COMMAND_EVERY: usize = 10;

/// What was answered: thread and seq to content.
type Answered = BTreeMap<(String, u64), Value>;

/// One writer and what it has not been answered yet.
struct Writer {
    number: usize,
    requests: u64,
    unanswered: Option<Value>,
}

impl Writer {
    fn thread(&self) -> String {
        format!("t{}", self.number % THREADS)
    }

    /// The next request, or the one that was not answered once more: its key makes that harmless.
    fn body(&mut self) -> Value {
        if let Some(body) = &self.unanswered {
            return body.clone();
        }
        self.requests += 1;
        let key = format!("writer {} request {}", self.number, self.requests);
        let events = (0..1 + self.requests % 4).map(|index| {
            json!({"run_id": format!("r{}", self.number), "event_type": "note", "category": "trace",
                "content": {"key": key, "index": index}, "idempotency_key": key})
        });
        let body = Value::Array(events.collect());
        self.unanswered = Some(body.clone());
        body
    }

    /// Appends once. Says whether that was answered.
    async fn append(&mut self, client: &Client, answered: &Mutex<Answered>) -> bool {
        let (thread, body) = (self.thread(), self.body());
        let request = client.request(Method::POST, &format!("/api/threads/{thread}/events")).json(&body);
        let Ok(response) = request.send().await else { return false };
        let status = response.status();
        let Ok(records) = response.json::<Value>().await else { return false };
        assert!(status.is_success(), "{status}: {records}");
        self.unanswered = None;
        let mut answered = answered.lock().unwrap();
        for (record, event) in records.as_array().unwrap().iter().zip(body.as_array().unwrap()) {
            let place = (thread.clone(), record["seq"].as_u64().unwrap());
            assert_eq!(record["content"], event["content"]);
            let other = answered.insert(place.clone(), event["content"].clone());
            assert!(other.is_none_or(|other| other == event["content"]), "{place:?} was given out twice");
        }
        true
    }
}

fn kills() -> usize {
    std::env::var(KILLS_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS)
}

/// One round: a start, a first answer in time, load, and the end of the process.
async fn round(
    remit: &Remit,
    number: usize,
    writers: &mut Vec<Writer>,
    answered: &Arc<Mutex<Answered>>,
    kill_after: usize,
) {
    let (served, first) =
        wait::within(FIRST_ANSWER_WITHIN, &format!("the first answer of round {number}"), async {
            let served = remit.serve(&[]).await;
            let client = Client::new(&served.url);
            let first = writers[0].append(&client, answered).await;
            (served, first)
        })
        .await;
    assert!(first, "the first append of round {number} was not answered");
    let client = Client::new(&served.url);
    let command = number
        .is_multiple_of(COMMAND_EVERY)
        .then(|| remit.command(&["run", "Look at the files here", "--server", &served.url]).spawn().unwrap());
    let enough = answered.lock().unwrap().len() + kill_after;
    let mut at_work = JoinSet::new();
    for mut writer in writers.drain(..) {
        let (client, answered) = (client.clone(), Arc::clone(answered));
        at_work.spawn(async move {
            while writer.append(&client, &answered).await {}
            writer
        });
    }
    wait::until("there are answers enough", || answered.lock().unwrap().len() >= enough).await;
    served.crash().await;
    drop(command);
    writers.extend(at_work.join_all().await);
    writers.sort_by_key(|writer| writer.number);
}

// Field report 74.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_again_and_again_keeps_what_it_answered() {
    let mut seed = Seed::from_time();
    println!("{seed}");
    let (remit, answered) = (super::remit(), Arc::new(Mutex::new(Answered::new())));
    let mut writers: Vec<_> =
        (0..WRITERS).map(|number| Writer { number, requests: 0, unanswered: None }).collect();
    for number in 0..kills() {
        let kill_after = 1 + usize::try_from(seed.below(ANSWERS_MAX)).unwrap();
        round(&remit, number, &mut writers, &answered, kill_after).await;
    }
    let served = remit.serve(&[]).await;
    let client = Client::new(&served.url);
    for writer in &mut writers {
        assert!(writer.append(&client, &answered).await);
    }
    let answered = answered.lock().unwrap().clone();
    for thread in 0..THREADS {
        check_thread(&client, &format!("t{thread}"), &answered).await;
    }
    assert_eq!(served.stop("-TERM").await, Some(0));
    let verified = remit.run(&["verify", "--json"]).await.exited(0).json();
    assert_eq!(verified["whole"], true);
    println!("{} events were answered in {} rounds", answered.len(), kills());
}

/// Everything that was answered is there, in its place, and of each request all or nothing, once.
async fn check_thread(client: &Client, thread: &str, answered: &Answered) {
    let events = client.thread_events(thread).await;
    let (mut keys, mut open): (BTreeMap<String, u64>, Option<(String, u64)>) = (BTreeMap::new(), None);
    for (seq, event) in (1..).zip(&events) {
        assert_eq!(event["seq"], seq, "{thread} has a gap, or a seq twice");
        if let Some(content) = answered.get(&(thread.to_owned(), seq)) {
            assert_eq!(event["content"], *content, "{thread} has changed at {seq}");
        }
        let (key, index) =
            (event["content"]["key"].as_str().unwrap(), event["content"]["index"].as_u64().unwrap());
        assert_eq!(index, open.filter(|(last, _)| last == key).map_or(0, |(_, last)| last + 1));
        *keys.entry(key.to_owned()).or_default() += 1;
        open = Some((key.to_owned(), index));
    }
    for (key, count) in keys {
        let request: u64 = key.rsplit(' ').next().unwrap().parse().unwrap();
        assert_eq!(count, 1 + request % 4, "{key} is there in part, or twice");
    }
    let last = answered.keys().filter(|(of, _)| of == thread).map(|(_, seq)| *seq).max();
    assert!(last.unwrap_or(0) <= events.len() as u64, "{thread} has lost its end");
}
