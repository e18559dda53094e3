//! Cards as they happened, and the whole log as a stream.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use axum::http::{Method, StatusCode, header};
use domain::ids::{DelegationId, ToolCallId};
use eventlog::{EventLog, NewEvent, Options, Position};
use jiff::Timestamp;
use projections::{CardReplay, Pace, TaskRef};
use serde_json::Value;
use tokio::{sync::Semaphore, time::Instant};

use super::app::{App, Reply, request};
use crate::{
    shutdown::ShutdownSwitch,
    sse::{CardFrames, FrameSource as _, Opening},
    testing::{append, run, run_event, thread},
};

const DELEGATION: &str = "0198f000-0000-7000-8000-0000000000dd";

/// An event of one delegation, with the content of its golden file.
fn of_delegation(event_type: &str) -> NewEvent {
    let golden = format!("{}/../contracts/events/{event_type}.v1.json", env!("CARGO_MANIFEST_DIR"));
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
    let mut event = run_event("r", event_type, &golden["content"].to_string());
    event.scope.task_id = Some(ToolCallId::new("call_7Qk2").unwrap());
    event.scope.delegation_id = Some(DELEGATION.parse::<DelegationId>().unwrap());
    event
}

/// A log whose clock is set by hand.
struct Timed {
    log: EventLog,
    now_ms: Arc<AtomicI64>,
}

impl Timed {
    fn new() -> Self {
        let now_ms = Arc::new(AtomicI64::new(0));
        let clock = Arc::clone(&now_ms);
        let time = move || Timestamp::from_millisecond(clock.load(Ordering::Relaxed)).unwrap();
        Self { log: EventLog::in_memory(Options::new(Arc::new(time))), now_ms }
    }

    async fn at(&self, seconds: i64, event_type: &str) {
        self.now_ms.store(seconds * 1_000, Ordering::Relaxed);
        append(&self.log, "t", vec![of_delegation(event_type)]).await;
    }

    /// A delegation of ten seconds, with an event of somebody else in it.
    async fn recorded() -> Self {
        let timed = Self::new();
        timed.at(0, "delegation.requested").await;
        timed.at(0, "delegation.admitted").await;
        append(&timed.log, "t", vec![run_event("other", "x", "1")]).await;
        timed.at(1, "subagent.start").await;
        timed.at(4, "subagent.step").await;
        timed.at(10, "subagent.end").await;
        timed
    }

    fn frames(&self, pace: Pace, after: u64) -> (CardFrames, ShutdownSwitch) {
        let (switch, shutdown) = ShutdownSwitch::new();
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let opening = Opening { place, shutdown, on_disconnect: None };
        let task = TaskRef::DelegationId(DELEGATION.parse().unwrap());
        let replay = CardReplay::open(&self.log, thread("t"), run("r"), &task, Position::new(after));
        (CardFrames::new(replay.unwrap().unwrap(), pace, opening), switch)
    }
}

/// When each frame came, in seconds, and its first line.
async fn timed(mut frames: CardFrames, count: usize) -> Vec<(u64, String)> {
    let began = Instant::now();
    let mut seen = Vec::new();
    while seen.len() < count {
        let Some(frame) = frames.next_frame().await else { break };
        let text = String::from_utf8(frame.to_vec()).unwrap();
        let line = text.lines().next().unwrap().to_owned();
        if line != ": heartbeat" {
            seen.push((began.elapsed().as_millis() as u64, line));
        }
    }
    seen
}

// Field report 50: a card can be replayed.
#[tokio::test(start_paused = true)]
async fn a_card_is_replayed_as_fast_as_it_is_asked_for() {
    let recorded = Timed::recorded().await;
    for (pace, ms) in [
        (Pace::default(), [0, 0, 1_000, 4_000, 10_000]),
        (Pace::Times(10.0), [0, 0, 100, 400, 1_000]),
        (Pace::Times(0.5), [0, 0, 2_000, 8_000, 20_000]),
        (Pace::AtOnce, [0; 5]),
    ] {
        let (frames, _switch) = recorded.frames(pace, 0);
        let seen = timed(frames, usize::MAX).await;
        let ids = ["id: 1", "id: 2", "id: 4", "id: 5", "id: 6"];
        let states = ms.into_iter().zip(ids.map(str::to_owned));
        let first = (0, "event: metadata".to_owned());
        let last = (ms[4], "event: end".to_owned());
        let expected: Vec<_> = [first].into_iter().chain(states).chain([last]).collect();
        // Timers have the resolution of a millisecond.
        for ((at, line), (expected_at, expected_line)) in seen.iter().zip(&expected) {
            assert!(at.abs_diff(*expected_at) <= 2, "{pace:?} {seen:?}");
            assert_eq!(line, expected_line, "{pace:?}");
        }
        assert_eq!(seen.len(), expected.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_goes_on_after_the_state_that_the_client_has() {
    let recorded = Timed::recorded().await;
    for (after, expected) in [(4, vec![(3_000, "id: 5"), (9_000, "id: 6")]), (6, vec![])] {
        let (frames, _switch) = recorded.frames(Pace::default(), after);
        let seen = timed(frames, usize::MAX).await;
        let states: Vec<_> = seen.iter().filter(|(_, line)| line.starts_with("id")).collect();
        assert_eq!(states.len(), expected.len(), "{seen:?}");
        for ((at, line), (expected_at, expected_line)) in states.into_iter().zip(expected) {
            assert!(at.abs_diff(expected_at) <= 2 && line == expected_line, "{seen:?}");
        }
        assert_eq!(seen.last().unwrap().1, "event: end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_delegation_at_work_is_followed_to_its_end() {
    let given = Timed::new();
    given.at(0, "delegation.requested").await;
    given.at(0, "subagent.start").await;
    let (mut frames, switch) = given.frames(Pace::AtOnce, 0);
    let mut next = async || {
        let frame = frames.next_frame().await?;
        Some(String::from_utf8(frame.to_vec()).unwrap().lines().next().unwrap().to_owned())
    };
    for expected in ["event: metadata", "id: 1", "id: 2", ": heartbeat"] {
        assert_eq!(next().await.unwrap(), expected);
    }
    given.at(60, "subagent.step").await;
    assert_eq!(next().await.unwrap(), "id: 3");
    given.at(90, "subagent.end").await;
    for expected in ["id: 4", "event: end"] {
        assert_eq!(next().await.unwrap(), expected);
    }
    assert_eq!(next().await, None);
    drop(switch);

    let open = Timed::new();
    open.at(0, "delegation.requested").await;
    let (mut frames, switch) = open.frames(Pace::AtOnce, 0);
    frames.next_frame().await.unwrap();
    frames.next_frame().await.unwrap();
    switch.begin();
    assert_eq!(frames.next_frame().await, None, "a server that stops ends the stream");
}

/// The data of the frames of one kind.
fn data(reply: &Reply, name: &str) -> Vec<Value> {
    let frames = reply.text.split_terminator("\n\n");
    let named = frames.filter(|frame| frame.contains(&format!("event: {name}\n")));
    named.map(|frame| serde_json::from_str(frame.rsplit_once("data: ").unwrap().1).unwrap()).collect()
}

// Field report 50.
#[tokio::test]
async fn the_states_of_a_card_are_what_it_was_at_each_moment() {
    let app = App::new();
    app.thread("t").await;
    let run = app.run("t").await;
    let run_id = run["run_id"].as_str().unwrap();
    let ledger = app.get("/api/threads/t/delegations").await.json();
    let (task, delegation) = (&ledger[0]["task_id"], &ledger[0]["delegation_id"]);
    let card = format!("/api/threads/t/runs/{run_id}/tasks/{}/card", task.as_str().unwrap());
    let replay = app.get(&format!("{card}/replay?speed=max")).await;
    assert_eq!(replay.status, StatusCode::OK);
    assert_eq!(replay.header(header::CONTENT_TYPE), "text/event-stream");
    let states = data(&replay, "card");
    assert!(states.len() >= 6, "{states:?}");
    for state in &states {
        let then = app.get(&format!("{card}?as_of={}", state["seq"])).await.json();
        assert_eq!(state, &then);
    }
    assert_eq!(states.last().unwrap(), &app.get(&card).await.json());
    // Our own id names it too.
    let ours = card.replace(task.as_str().unwrap(), delegation.as_str().unwrap());
    assert_eq!(app.get(&format!("{ours}/replay?speed=0")).await.text, replay.text);

    for (path, status) in [
        (format!("{card}/replay?speed=-1"), StatusCode::UNPROCESSABLE_ENTITY),
        (format!("{card}/replay?speed=fast"), StatusCode::UNPROCESSABLE_ENTITY),
        (format!("{card}/replay?tempo=1"), StatusCode::UNPROCESSABLE_ENTITY),
        (format!("/api/threads/t/runs/{run_id}/tasks/nobody/card/replay"), StatusCode::NOT_FOUND),
        (format!("/api/threads/nobody/runs/{run_id}/tasks/x/card/replay"), StatusCode::NOT_FOUND),
    ] {
        assert_eq!(app.get(&path).await.status, status, "{path}");
    }
    let mut cursor = request(Method::GET, &format!("{card}/replay?speed=max"), None);
    cursor.headers_mut().insert("last-event-id", "abc".parse().unwrap());
    assert_eq!(app.send(cursor).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn pages_of_the_whole_log_take_filters() {
    let app = App::new();
    for (thread, run, event_type) in [("t", "r", "a"), ("u", "r", "b"), ("t", "s", "b"), ("t", "r", "b")] {
        append(&app.log, thread, vec![run_event(run, event_type, "1")]).await;
    }
    for (query, expected) in [
        ("", vec![1, 2, 3, 4]),
        ("?thread_id=t", vec![1, 3, 4]),
        ("?thread_id=t&run_id=r&event_types=b", vec![4]),
        ("?event_types=a,b&limit=2&after_position=1", vec![2, 3]),
        ("?event_types=b&limit=1", vec![2]),
        ("?after_position=head", vec![]),
        ("?task_id=none", vec![]),
    ] {
        let page = app.get(&format!("/api/events{query}")).await.json();
        let positions: Vec<_> =
            page.as_array().unwrap().iter().map(|event| event["position"].as_u64().unwrap()).collect();
        assert_eq!(positions, expected, "{query}");
    }
    assert_eq!(app.get("/api/events?after_position=tail").await.status, StatusCode::UNPROCESSABLE_ENTITY);
}

// Field report 63: no cursor of a stream starts a hidden replay.
#[tokio::test]
async fn the_whole_log_is_a_stream_for_whoever_accepts_one() {
    let app = App::new();
    append(&app.log, "t", vec![run_event("r", "a", "1"), run_event("r", "b", "2")]).await;
    let follow = |query: &str, cursor: Option<&'static str>| {
        let mut request = request(Method::GET, &format!("/api/events{query}"), None);
        request.headers_mut().insert(header::ACCEPT, "text/event-stream".parse().unwrap());
        if let Some(cursor) = cursor {
            request.headers_mut().insert("last-event-id", cursor.parse().unwrap());
        }
        app.open(request)
    };
    for cursor in ["-1", "abc", "0", "3", "18446744073709551616"] {
        assert_eq!(follow("", Some(cursor)).await.status(), StatusCode::BAD_REQUEST, "{cursor}");
    }
    for (query, cursor, expected) in [
        ("", None, ["id: 0", "id: 1"]),
        ("?after_position=1", None, ["id: 1", "id: 2"]),
        ("?event_types=b", None, ["id: 0", "id: 2"]),
        ("?after_position=head", Some("1"), ["id: 1", "id: 2"]),
    ] {
        let response = follow(query, cursor).await;
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
        let mut body = response.into_body().into_data_stream();
        for line in expected {
            let frame = tokio::time::timeout(Duration::from_secs(20), futures::StreamExt::next(&mut body));
            let frame = frame.await.unwrap().unwrap().unwrap();
            assert!(frame.starts_with(format!("{line}\n").as_bytes()), "{query} {frame:?}");
        }
    }
}
