//! An older copy of the keys that is put back revives nothing that was erased.

use std::{fs, path::Path};

use domain::{
    event::{Event, RegistryEvent, RunStatus},
    ids::RunId,
};
use eventlog::{EventLog, Options, Position, StreamId};

use crate::{
    Runtime, SystemClock, SystemIds,
    config::Recovery,
    enforce_erasures,
    request::StartRunError,
    testing::{Script, Setup, World, saying, world::request},
};

const SECRET: &str = "zq-secret-answer";

fn setup() -> Setup {
    Setup::new(Script::new().lead("go", [saying(SECRET)]))
}

fn open(folder: &Path) -> EventLog {
    EventLog::open(folder, Options::default()).unwrap()
}

fn can_be_read(log: &EventLog) -> bool {
    let events = log.read_all(Position::ZERO, 10_000).unwrap();
    events.iter().any(|event| event.content.get().contains(SECRET))
}

/// A log on disk with two runs on a thread; then what `erase` does, and the keys from before put back.
async fn with_old_keys<Erased>(
    folder: &Path,
    erase: impl AsyncFnOnce(&World, &RunId) -> Erased,
) -> (World, RunId, Erased) {
    let world = setup().log(open(folder)).build().await;
    let run = world.start("go").await;
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    let keys = folder.join("keys/threads");
    let old = fs::read(&keys).unwrap();
    let erased = erase(&world, &run).await;
    assert!(!can_be_read(&world.log));
    world.runtime.shutdown().await;
    world.log.clone().close().await;
    fs::write(&keys, old).unwrap();
    (world, run, erased)
}

fn next_runtime(world: &World, log: &EventLog) -> Runtime {
    setup().log(log.clone()).runtime(&world.data)
}

fn repeated(log: &EventLog) -> Vec<domain::event::ErasureRepeated> {
    let registry = log.read_stream(&StreamId::Registry, eventlog::Seq::ZERO, 100).unwrap();
    let repeated = |event: &eventlog::RecordedEvent| match event.fact().unwrap() {
        Event::Registry(RegistryEvent::ErasureRepeated(repeated)) => Some(repeated),
        _ => None,
    };
    registry.iter().filter_map(repeated).collect()
}

#[tokio::test]
async fn an_erased_thread_stays_erased() {
    let folder = tempfile::tempdir().unwrap();
    let (world, _, erasure_id) = with_old_keys(folder.path(), async |world, _| {
        world.runtime.erase_thread(&world.thread).await.unwrap()
    })
    .await;
    let log = open(folder.path());
    assert!(can_be_read(&log), "the old keys have revived it");
    let runtime = next_runtime(&world, &log);
    runtime.recover(Recovery::Resume).await.unwrap();
    assert!(!can_be_read(&log) && log.is_erased(&world.thread));
    let started = runtime.start_run(&world.thread, request("go")).await;
    assert!(matches!(started, Err(StartRunError::Erased(_))), "{started:?}");
    let [repeated] = &repeated(&log)[..] else { panic!("it is recorded once") };
    assert_eq!(
        (repeated.erasure_id, &repeated.thread_id, repeated.run_hash),
        (erasure_id, &world.thread, None)
    );
    let head = log.head();
    runtime.recover(Recovery::Resume).await.unwrap();
    assert_eq!(log.head(), head, "and not again");
    log.close().await;
    let log = open(folder.path());
    assert!(!can_be_read(&log), "it stays so");
}

#[tokio::test]
async fn an_erased_run_stays_erased_and_its_thread_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (world, run, erasure_id) = with_old_keys(folder.path(), async |world, run| {
        world.runtime.erase_run(&world.thread, run).await.unwrap()
    })
    .await;
    let log = open(folder.path());
    assert!(can_be_read(&log), "the old keys have revived it");
    let destroyed = enforce_erasures(&log, &SystemIds, &SystemClock).await.unwrap();
    assert_eq!(destroyed.iter().map(|one| one.erasure_id).collect::<Vec<_>>(), [erasure_id]);
    assert!(!can_be_read(&log) && log.is_run_erased(&world.thread, &run) && !log.is_erased(&world.thread));
    let [repeated] = &repeated(&log)[..] else { panic!("it is recorded once") };
    assert_eq!(repeated.run_hash, Some(eventlog::run_hash(&world.thread, &run)));
    assert_eq!(enforce_erasures(&log, &SystemIds, &SystemClock).await.unwrap(), []);
    let runtime = next_runtime(&world, &log);
    let next = runtime.start_run(&world.thread, request("go")).await.unwrap();
    assert_eq!(runtime.wait(&world.thread, &next).await.unwrap(), RunStatus::Success);
    runtime.shutdown().await;
}

/// The old copy is from before the thread: nothing in it says that there was a key.
#[tokio::test]
async fn a_thread_that_the_old_keys_do_not_know_stays_erased() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    log.close().await;
    let keys = folder.path().join("keys/threads");
    let old = fs::read(&keys).unwrap();
    let world = setup().log(open(folder.path())).build().await;
    world.run("go").await;
    world.runtime.erase_thread(&world.thread).await.unwrap();
    world.runtime.shutdown().await;
    world.log.clone().close().await;
    fs::write(&keys, old).unwrap();
    let log = open(folder.path());
    assert!(log.read_all(Position::ZERO, 100).is_err(), "its key is lost, which is damage");
    next_runtime(&world, &log).recover(Recovery::Resume).await.unwrap();
    assert!(log.is_erased(&world.thread) && !can_be_read(&log));
    assert!(log.verify(eventlog::VerifyRequest::default()).unwrap().is_whole());
}
