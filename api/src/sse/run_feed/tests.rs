use std::time::Duration;

use domain::event::RunStatus;

use super::*;
use crate::testing::{append, log, run, run_event, run_status, thread};

const PATIENCE: Duration = Duration::from_secs(10);

/// Two runs of one thread in turn, beside another thread, so that seqs, positions and counts differ.
async fn two_runs(log: &EventLog) {
    for number in 0..40 {
        append(log, "other", vec![run_event("r1", "x", "0")]).await;
        append(log, "t", vec![run_event("r1", "x", &number.to_string())]).await;
        append(log, "t", vec![run_event("r2", "x", &number.to_string())]).await;
    }
}

fn open(log: &EventLog, after: u64) -> Answer<RunFeed> {
    RunFeed::open(log, thread("t"), run("r1"), Position::new(after))
}

async fn take(feed: &mut RunFeed, count: usize) -> Vec<RecordedEvent> {
    let mut events = Vec::new();
    while events.len() < count {
        events.push(
            tokio::time::timeout(PATIENCE, feed.next()).await.unwrap().unwrap().expect("it is not erased"),
        );
    }
    events
}

#[tokio::test]
async fn what_is_there_and_what_comes_are_one_sequence() {
    let log = log();
    two_runs(&log).await;
    let mut feed = open(&log, 0).unwrap();
    let mut seen = take(&mut feed, 40).await;
    two_runs(&log).await;
    seen.extend(take(&mut feed, 40).await);
    append(&log, "t", vec![run_event("r2", "x", "0"), run_status("r1", RunStatus::Success)]).await;
    seen.extend(take(&mut feed, 1).await);

    let expected = log.read_run(&thread("t"), &run("r1"), &EventFilter::default(), Seq::ZERO, 1_000).unwrap();
    assert_eq!(seen, expected);
    assert!(feed.is_over());
}

#[tokio::test]
async fn every_position_resumes_after_itself() {
    let log = log();
    two_runs(&log).await;
    let all = take(&mut open(&log, 0).unwrap(), 40).await;
    for position in 1..=log.head().get() {
        let expected: Vec<_> = all.iter().filter(|event| event.position.get() > position).cloned().collect();
        let mut feed = open(&log, position).unwrap();
        assert_eq!(take(&mut feed, expected.len()).await, expected, "after {position}");
    }
}

#[tokio::test]
async fn a_reader_that_has_the_ending_has_all() {
    let log = log();
    append(&log, "t", vec![run_status("r1", RunStatus::Running), run_status("r1", RunStatus::Error)]).await;
    append(&log, "t", vec![run_status("r2", RunStatus::Running)]).await;
    for (after, is_over) in [(0, false), (1, false), (2, true), (3, true)] {
        assert_eq!(open(&log, after).unwrap().is_over(), is_over, "after {after}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let log = log();
    append(&log, "t", vec![run_status("r2", RunStatus::Running)]).await;
    assert_eq!(open(&log, 0).err(), Some(ApiError::no_run(&run("r1"))));
    let feed = RunFeed::open(&log, thread("nowhere"), run("r1"), Position::ZERO);
    assert_eq!(feed.err(), Some(ApiError::no_thread(&thread("nowhere"))));
}
