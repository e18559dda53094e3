//! Erasing: whatever it is cut off after, it is carried on to the same end.

use domain::{
    event::{ErasureReason, RunStatus},
    ids::{ErasureId, RunId, ThreadId, UserId},
};
use eventlog::{EventLog, Position, Seq, StreamId};

use crate::{
    config::Recovery,
    erasure::{Erasure, ErasureState},
    request::{CancelError, CreateThreadError, EraseError, NewThread, StartRunError},
    runtime::erase::{Target, destroy_keys},
    sandbox::ThreadFolders,
    testing::{Script, Setup, Turn, World, saying, world::request},
};

fn script() -> Script {
    Script::new().lead("go", [saying("done")]).lead("hang", [Turn::Hang])
}

async fn world() -> World {
    Setup::new(script()).build().await
}

fn has_folders(world: &World) -> bool {
    ThreadFolders::root(world.data.path(), &world.thread).exists()
}

fn places(log: &EventLog) -> Vec<(Position, Seq, [u8; 32])> {
    let events = log.read_all(Position::ZERO, 10_000).unwrap();
    events.iter().map(|event| (event.position, event.seq, event.hash)).collect()
}

fn thread_events(world: &World) -> u64 {
    world.log.stream_tail(&StreamId::Thread(world.thread.clone())).unwrap().unwrap().get()
}

#[track_caller]
fn check_erased(world: &World, erasure: &Erasure) {
    assert_eq!((erasure.state, &erasure.thread_id), (ErasureState::Done, &world.thread));
    assert_eq!(erasure.events, thread_events(world));
    assert!(erasure.done_at.is_some_and(|at| at >= erasure.requested_at));
    assert!(!has_folders(world) && world.log.is_erased(&world.thread));
}

#[tokio::test]
async fn a_thread_is_erased_and_its_id_is_not_used_again() {
    let world = world().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let other = world.runtime.create_thread(NewThread::default()).await.unwrap();
    let before = places(&world.log);
    assert!(has_folders(&world));
    let erasure_id = world.runtime.erase_thread(&world.thread).await.unwrap();
    check_erased(&world, &world.runtime.erasure(erasure_id).unwrap().unwrap());
    assert_eq!(places(&world.log)[..before.len()], before, "nothing has moved");
    assert_eq!(places(&world.log).len(), before.len() + 2, "asked for, and done");
    let again = world.runtime.erase_thread(&world.thread).await;
    assert!(matches!(again, Err(EraseError::UnknownThread(_))), "{again:?}");
    let started = world.runtime.start_run(&world.thread, request("go")).await;
    assert!(matches!(started, Err(StartRunError::Erased(_))), "{started:?}");
    let new = NewThread { thread_id: Some(world.thread.clone()), ..NewThread::default() };
    let made = world.runtime.create_thread(new).await;
    assert!(matches!(made, Err(CreateThreadError::Erased(_))), "{made:?}");
    let run = world.runtime.start_run(&other, request("go")).await.unwrap();
    assert_eq!(world.runtime.wait(&other, &run).await.unwrap(), RunStatus::Success);
    assert_eq!(world.runtime.erasures().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_not_there_is_not_erased() {
    let world = world().await;
    let nobody = ThreadId::new("nobody").unwrap();
    let refused = world.runtime.erase_thread(&nobody).await.unwrap_err();
    assert_eq!(refused.to_string(), "Thread nobody not found");
    assert_eq!(world.runtime.erasures().unwrap(), []);
    let no_erasure = ErasureId::from_uuid(uuid::Uuid::nil());
    assert_eq!(world.runtime.erasure(no_erasure).unwrap(), None);
    let run = RunId::new("nothing").unwrap();
    let refused = world.runtime.erase_run(&world.thread, &run).await.unwrap_err();
    assert_eq!(refused.to_string(), "Run nothing not found");
    let refused = world.runtime.erase_run(&nobody, &run).await.unwrap_err();
    assert_eq!(refused.to_string(), "Thread nobody not found");
    let refused = world.runtime.erase_owner(&UserId::new("nobody").unwrap()).await.unwrap_err();
    assert_eq!(refused.to_string(), "no thread of \"nobody\" found");
    assert_eq!(world.runtime.erasures().unwrap(), []);
}

#[tokio::test]
async fn a_run_at_work_is_cancelled_first() {
    let world = world().await;
    let run = world.start("hang").await;
    world.until_recorded("run.status", 2).await;
    let begun = thread_events(&world);
    let erasure_id = world.done(world.runtime.erase_thread(&world.thread)).await.unwrap();
    let erasure = world.runtime.erasure(erasure_id).unwrap().unwrap();
    check_erased(&world, &erasure);
    assert!(erasure.events > begun, "its end was recorded before the keys were destroyed");
    let gone = world.runtime.wait(&world.thread, &run).await;
    assert!(matches!(gone, Err(CancelError::UnknownRun(_))), "{gone:?}");
    world.until_idle().await;
}

#[tokio::test]
async fn two_erasures_of_a_thread_are_one() {
    let world = world().await;
    let (one, other) =
        tokio::join!(world.runtime.erase_thread(&world.thread), world.runtime.erase_thread(&world.thread));
    let erasures = world.runtime.erasures().unwrap();
    assert_eq!(erasures.len(), 1);
    for erased in [&one, &other] {
        // The second joins the first, or comes after its end.
        let is_joined = erased.as_ref().is_ok_and(|id| *id == erasures[0].erasure_id);
        assert!(is_joined || matches!(erased, Err(EraseError::UnknownThread(_))), "{erased:?}");
    }
    assert!(one.is_ok() || other.is_ok());
    assert_eq!(world.count("thread.erased"), 1);
}

#[tokio::test]
async fn an_owner_takes_all_their_threads_along() {
    let world = world().await;
    let ada = UserId::new("ada").unwrap();
    let theirs = || NewThread { owner: ada.clone(), ..NewThread::default() };
    let one = world.runtime.create_thread(theirs()).await.unwrap();
    let other = world.runtime.create_thread(theirs()).await.unwrap();
    let erased = world.runtime.erase_owner(&ada).await.unwrap();
    assert_eq!(erased.len(), 2);
    assert!(world.log.is_erased(&one) && world.log.is_erased(&other));
    assert!(!world.log.is_erased(&world.thread));
    assert!(world.runtime.erasures().unwrap().iter().all(|one| one.reason == ErasureReason::Owner));
    let again = world.runtime.erase_owner(&ada).await;
    assert!(matches!(again, Err(EraseError::UnknownOwner(_))), "{again:?}");
}

/// Does the first `steps` steps and drops what is left of the process; then another carries on.
async fn check_carried_on(steps: usize, state: ErasureState, recovery: Recovery) {
    let setup = Setup::new(script());
    let world = setup.build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let target = Target::Thread(world.thread.clone());
    let begun = world.runtime.request_erasure(&target, ErasureReason::Thread, &[]).await.unwrap();
    if steps > 1 {
        destroy_keys(&world.log, &begun).await.unwrap();
    }
    if steps > 2 {
        world.runtime.remove_folders(&begun).await.unwrap();
    }
    let cut_off = world.runtime.erasure(begun.erasure_id).unwrap().unwrap();
    assert_eq!((cut_off.state, cut_off.done_at), (state, None), "after {steps} steps");
    world.runtime.shutdown().await;
    let next = Setup::new(script()).log(world.log.clone()).runtime(&world.data);
    assert_eq!(next.recover(recovery).await.unwrap(), []);
    let erasures = next.erasures().unwrap();
    assert_eq!(erasures.len(), 1, "after {steps} steps");
    assert_eq!(erasures[0].erasure_id, begun.erasure_id);
    check_erased(&world, &erasures[0]);
    let head = world.log.head();
    next.recover(recovery).await.unwrap();
    assert_eq!(world.log.head(), head, "what is done is not done again");
}

#[tokio::test]
async fn an_erasure_that_was_cut_off_is_carried_on() {
    for recovery in [Recovery::Resume, Recovery::Fail] {
        check_carried_on(1, ErasureState::Requested, recovery).await;
        check_carried_on(2, ErasureState::Erasing, recovery).await;
        check_carried_on(3, ErasureState::Erasing, recovery).await;
    }
}

#[tokio::test]
async fn asking_again_carries_on_too() {
    let world = world().await;
    let target = Target::Thread(world.thread.clone());
    let begun = world.runtime.request_erasure(&target, ErasureReason::Thread, &[]).await.unwrap();
    destroy_keys(&world.log, &begun).await.unwrap();
    assert_eq!(world.runtime.erase_thread(&world.thread).await.unwrap(), begun.erasure_id);
    check_erased(&world, &world.runtime.erasure(begun.erasure_id).unwrap().unwrap());
}

#[tokio::test]
async fn a_shutdown_leaves_an_erasure_to_the_next_start() {
    let world = world().await;
    world.runtime.shutdown().await;
    let refused = world.runtime.erase_thread(&world.thread).await;
    assert!(matches!(refused, Err(EraseError::ShuttingDown)), "{refused:?}");
    assert!(!world.log.is_erased(&world.thread));
}

#[tokio::test]
async fn a_workspace_that_a_person_chose_stays() {
    let world = world().await;
    let theirs = tempfile::tempdir().unwrap();
    std::fs::write(theirs.path().join("notes.txt"), "mine").unwrap();
    let new = NewThread { workspace: Some(theirs.path().to_owned()), ..NewThread::default() };
    let thread = world.runtime.create_thread(new).await.unwrap();
    let run = world.runtime.start_run(&thread, request("go")).await.unwrap();
    world.runtime.wait(&thread, &run).await.unwrap();
    std::os::unix::fs::symlink(theirs.path(), ThreadFolders::root(world.data.path(), &thread).join("link"))
        .unwrap();
    world.runtime.erase_thread(&thread).await.unwrap();
    assert!(!ThreadFolders::root(world.data.path(), &thread).exists());
    assert_eq!(std::fs::read_to_string(theirs.path().join("notes.txt")).unwrap(), "mine");
}
