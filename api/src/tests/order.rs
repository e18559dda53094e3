//! Events are in the order of their numbers, whatever the clock says and however large they are.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use eventlog::{EventLog, Options, StreamId, store::EngineStore};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::app::App;
use crate::testing;

const EVENTS: &str = "/api/threads/t/events";
/// The last whole number that every reader of JSON keeps.
const SAFE_MAX: u64 = 1 << 53;

fn column<'a>(events: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().map(move |event| &event[name])
}

async fn append(app: &App, number: usize, created_at: &str) -> Value {
    let event = json!({"run_id": "r", "event_type": "note", "category": "trace", "content": number,
        "created_at": created_at});
    app.post(EVENTS, event).await.json()
}

/// All events, by pages of so many.
async fn pages(app: &App, path: &str, limit: usize) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = app.get(&format!("{path}?limit={limit}{after}")).await.json();
        let page = page.as_array().unwrap().clone();
        let Some(last) = page.last() else { return all };
        after = format!("&after_seq={}", last["seq"]);
        all.extend(page);
    }
}

// Facts §6: events are ordered by seq. The clock goes back by an hour with each event.
#[tokio::test]
async fn a_clock_that_is_set_back_changes_no_order() {
    let hours = Arc::new(AtomicI64::new(500_000));
    let clock = Arc::clone(&hours);
    let now = move || Timestamp::from_second(clock.fetch_sub(1, Ordering::Relaxed) * 3_600).unwrap();
    let app = App::on(EventLog::in_memory(Options::new(Arc::new(now))));
    for number in 0..7 {
        append(&app, number, &format!("2026-01-0{}T00:00:00Z", 9 - number)).await;
    }
    for path in [EVENTS, "/api/threads/t/runs/r/events"] {
        for limit in [1, 2, 3, 7] {
            let events = pages(&app, path, limit).await;
            assert!(
                column(&events, "seq").eq(&(1..=7).map(Value::from).collect::<Vec<_>>()),
                "{path} {limit}"
            );
            assert!(column(&events, "content").eq(&(0..7).map(Value::from).collect::<Vec<_>>()), "{path}");
        }
    }
    let events = pages(&app, EVENTS, 7).await;
    let recorded: Vec<_> = column(&events, "recorded_at").map(|at| at.as_str().unwrap().to_owned()).collect();
    assert!(recorded.is_sorted_by(|one, other| one > other), "the clock went back: {recorded:?}");
}

// One time for many events: pages that end among them give each once.
#[tokio::test]
async fn many_events_of_one_time_are_paged_without_loss() {
    let time: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let app = App::on(EventLog::in_memory(Options::new(Arc::new(move || time))));
    for number in 0..50 {
        append(&app, number, "2026-01-01T00:00:00Z").await;
    }
    for limit in [1, 7, 25, 49, 50, 51] {
        let events = pages(&app, EVENTS, limit).await;
        assert!(column(&events, "content").eq(&(0..50).map(Value::from).collect::<Vec<_>>()), "{limit}");
    }
}

#[tokio::test]
async fn numbers_beyond_what_a_double_holds_are_kept() {
    let thread = testing::thread("t");
    let first = testing::event("note", "0");
    let store = EngineStore::in_memory_after(SAFE_MAX, &StreamId::Thread(thread), first).unwrap();
    let app = App::on(EventLog::with_store(Arc::new(store), Options::default()).unwrap());
    for number in 1..=4 {
        let record = append(&app, number, "2026-01-01T00:00:00Z").await;
        let place = SAFE_MAX + number as u64;
        assert_eq!((&record["seq"], &record["position"]), (&json!(place), &json!(place)));
    }
    // As text, too: 2^53 + 1 is what a double cannot hold.
    let text = app.get(EVENTS).await.text;
    for number in 0..=4 {
        let place = SAFE_MAX + number;
        assert!(text.contains(&format!("\"seq\":{place},")), "{text}");
        assert!(text.contains(&format!("\"position\":{place},")), "{text}");
    }
    for limit in [1, 2, 5] {
        let events = pages(&app, EVENTS, limit).await;
        let expected: Vec<_> = (0..=4).map(|number| json!(SAFE_MAX + number)).collect();
        assert!(column(&events, "seq").eq(&expected), "{limit}: {events:?}");
    }
    let after = app.get(&format!("/api/events?after_position={}", SAFE_MAX + 1)).await.json();
    assert_eq!(column(after.as_array().unwrap(), "content").collect::<Vec<_>>(), [2, 3, 4]);
    let conflict = app.get(&format!("{EVENTS}?after_seq={}", u64::MAX)).await.json();
    assert_eq!(conflict, json!([]));
}
