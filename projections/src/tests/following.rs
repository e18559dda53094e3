//! The background task, and waiting for it.

use std::time::Duration;

use domain::{
    event::{Event, RunEvent},
    ids::{EventId, RunId, ThreadId, UserId},
};
use eventlog::{Append, Appended, EventLog, Expected, NewEvent, Position, Scope, StreamId};
use jiff::Timestamp;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{history::log, open, payloads::settings, store};
use crate::{Behind, Projections};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

async fn start_run(log: &EventLog, number: u128) -> Appended {
    let run_id = RunId::new(format!("r{number}")).unwrap();
    let encoded = eventlog::encode(&Event::Run(RunEvent::Started(settings(&run_id, 0)))).unwrap();
    let event = NewEvent {
        event_id: EventId::from_uuid(Uuid::from_u128(number)),
        event_type: encoded.event_type,
        schema_version: encoded.schema_version,
        category: encoded.category,
        scope: Scope { run_id: Some(run_id), ..Scope::default() },
        owner: UserId::unowned(),
        causation_id: None,
        correlation_id: None,
        created_at: Timestamp::UNIX_EPOCH,
        content: encoded.content,
        metadata: encoded.metadata,
    };
    let stream = StreamId::Thread(ThreadId::new("t").unwrap());
    let append = Append { stream, expected: Expected::Any, idempotency_key: None, events: vec![event] };
    log.append(append).await.unwrap()
}

fn runs(views: &Projections) -> usize {
    views.runs(&ThreadId::new("t").unwrap(), None, 100).unwrap().len()
}

#[tokio::test]
async fn a_reader_can_wait_for_what_it_wrote() {
    let log = log();
    start_run(&log, 1).await;
    let views = open(&store(), &log);
    let (stop, stopped) = oneshot::channel::<()>();
    let following = views.follow(async move { drop(stopped.await) });
    for number in 2..20 {
        let appended = start_run(&log, number).await;
        views.wait_for(appended.position(), PATIENCE).await.unwrap();
        assert_eq!(runs(&views), number as usize);
    }
    stop.send(()).unwrap();
    tokio::time::timeout(PATIENCE, following).await.expect("it ends").unwrap();
    let appended = start_run(&log, 20).await;
    let (wanted, at) = (appended.position(), Position::new(19));
    assert_eq!(views.wait_for(wanted, Duration::from_millis(20)).await, Err(Behind { wanted, at }));
    assert_eq!(views.wait_for(at, Duration::ZERO).await, Ok(()));
}

#[tokio::test]
async fn following_ends_with_the_log() {
    let log = log();
    start_run(&log, 1).await;
    let views = open(&store(), &log);
    let following = views.follow(std::future::pending());
    views.wait_for(Position::new(1), PATIENCE).await.unwrap();
    log.close().await;
    tokio::time::timeout(PATIENCE, following).await.expect("it ends").unwrap();
}

#[tokio::test]
async fn following_tries_again_after_a_failure() {
    let (log, store) = (log(), store());
    let views = open(&store, &log);
    store.commits_until_fault.store(0, std::sync::atomic::Ordering::SeqCst);
    let following = views.follow(std::future::pending());
    let appended = start_run(&log, 1).await;
    let behind = views.wait_for(appended.position(), Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(behind.at, Position::ZERO);
    store.commits_until_fault.store(u64::MAX, std::sync::atomic::Ordering::SeqCst);
    views.wait_for(appended.position(), PATIENCE).await.unwrap();
    assert_eq!(runs(&views), 1);
    following.abort();
}
