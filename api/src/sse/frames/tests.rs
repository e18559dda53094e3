use std::sync::Arc;

use domain::event::RunStatus;
use eventlog::{EventLog, Position};
use tokio::sync::{Semaphore, mpsc};

use super::*;
use crate::{
    shutdown::ShutdownSwitch,
    testing::{append, log, run, run_event, run_status, thread},
};

const PATIENCE: Duration = Duration::from_secs(10);

struct Given {
    log: EventLog,
    switch: ShutdownSwitch,
    shutdown: Shutdown,
    places: Arc<Semaphore>,
    cancelled: (mpsc::UnboundedSender<()>, mpsc::UnboundedReceiver<()>),
}

impl Given {
    fn new() -> Self {
        let (switch, shutdown) = ShutdownSwitch::new();
        let places = Arc::new(Semaphore::new(1));
        Self { log: log(), switch, shutdown, places, cancelled: mpsc::unbounded_channel() }
    }

    fn open(&self, after: u64) -> Frames {
        let feed = RunFeed::open(&self.log, thread("t"), run("r"), Position::new(after)).unwrap();
        let sender = self.cancelled.0.clone();
        let opening = Opening {
            place: Arc::clone(&self.places).try_acquire_owned().unwrap(),
            shutdown: self.shutdown.clone(),
            on_disconnect: Some(CancelOnDrop::new(move || sender.send(()).unwrap())),
        };
        Frames::new(feed, opening)
    }
}

async fn next(frames: &mut Frames) -> Option<String> {
    let frame = tokio::time::timeout(PATIENCE, frames.next()).await.unwrap();
    frame.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

/// The first line of each frame, to the end of the stream.
async fn rest(mut frames: Frames) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(frame) = next(&mut frames).await {
        assert!(frame.ends_with("\n\n"), "{frame:?}");
        lines.push(frame.lines().next().unwrap().to_owned());
    }
    lines
}

// Field report 58: history and end at once, with a cursor and without.
#[tokio::test]
async fn a_run_that_has_ended_gives_its_history_and_the_end() {
    let mut given = Given::new();
    let events = vec![run_event("r", "run.start", "{}"), run_status("r", RunStatus::Success)];
    append(&given.log, "t", events).await;
    append(&given.log, "t", vec![run_event("r", "late", "{}")]).await;
    for (after, ids) in [(0, vec!["id: 1", "id: 2"]), (1, vec!["id: 2"]), (2, vec![]), (3, vec![])] {
        let expected = [vec!["event: metadata"], ids, vec!["event: end"]].concat();
        assert_eq!(rest(given.open(after)).await, expected, "after {after}");
        assert_eq!(given.places.available_permits(), 1);
    }
    assert!(given.cancelled.1.try_recv().is_err());
}

#[tokio::test]
async fn a_live_run_is_followed_to_its_end() {
    let given = Given::new();
    append(&given.log, "t", vec![run_status("r", RunStatus::Running)]).await;
    let mut frames = given.open(1);
    assert!(next(&mut frames).await.unwrap().starts_with("event: metadata\n"));
    append(&given.log, "t", vec![run_event("r2", "x", "1"), run_event("r", "x", "\"\u{2028}\"")]).await;
    let frame = next(&mut frames).await.unwrap();
    assert!(
        frame.starts_with("id: 3\nevent: x\ndata: {\"thread_id\":\"t\",\"run_id\":\"r\",\"seq\":3,"),
        "{frame}"
    );
    assert_eq!(frame.matches('\n').count(), 4);
    append(&given.log, "t", vec![run_status("r", RunStatus::Interrupted)]).await;
    assert_eq!(rest(frames).await, ["id: 4", "event: end"]);
}

#[tokio::test]
async fn silence_is_filled_with_comments() {
    let given = Given::new();
    append(&given.log, "t", vec![run_status("r", RunStatus::Running)]).await;
    let mut frames = given.open(1);
    frames.heartbeat = Duration::from_millis(10);
    next(&mut frames).await;
    for _ in 0..3 {
        assert_eq!(next(&mut frames).await.unwrap(), ": heartbeat\n\n");
    }
}

#[tokio::test]
async fn a_client_that_leaves_cancels_only_when_it_leaves_early() {
    let mut given = Given::new();
    append(&given.log, "t", vec![run_status("r", RunStatus::Running)]).await;
    let mut frames = given.open(0);
    next(&mut frames).await;
    drop(frames);
    assert_eq!(given.cancelled.1.recv().await, Some(()));

    let frames = given.open(1);
    given.switch.begin();
    assert_eq!(rest(frames).await, ["event: metadata"]);
    assert!(given.cancelled.1.try_recv().is_err(), "the server's stop is nobody's leaving");
}

#[tokio::test]
async fn a_foreign_event_cannot_pass_for_our_frames() {
    let given = Given::new();
    append(&given.log, "t", vec![run_event("r", "end", "null"), run_status("r", RunStatus::Success)]).await;
    let mut frames = given.open(0);
    next(&mut frames).await;
    assert!(next(&mut frames).await.unwrap().starts_with("id: 1\nevent: record\n"));
}

#[tokio::test]
async fn a_log_that_closes_is_said_aloud() {
    let given = Given::new();
    append(&given.log, "t", vec![run_status("r", RunStatus::Running)]).await;
    let mut frames = given.open(1);
    next(&mut frames).await;
    given.log.clone().close().await;
    let frame = next(&mut frames).await.unwrap();
    assert!(frame.starts_with("event: error\ndata: {\"message\":\"the log is closed\""), "{frame}");
    assert_eq!(next(&mut frames).await, None);
}
