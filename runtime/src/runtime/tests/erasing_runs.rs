//! Erasing one run: nothing of it is left, and everything of the others.

use domain::{
    event::{ErasureReason, RunStatus},
    ids::{RunId, ThreadId, UserId},
    message::Message,
};
use eventlog::{
    Append, AppendError, EventFilter, Expected, Json, NewEvent, Position, RecordedEvent, Seq, StreamId,
    VerifyRequest,
};
use serde_json::json;

use crate::{
    IdSource as _, SystemIds,
    config::Recovery,
    erasure::{Erasure, ErasureState},
    request::{CancelError, EraseError, NewThread, StartRunError},
    runtime::erase::{Target, destroy_keys},
    sandbox::ThreadFolders,
    testing::{Script, Setup, Turn, World, calling, delegating, saying, world::request},
};

fn script() -> Script {
    let write = calling(&[("w", "write_file", json!({"path": "kept.txt", "content": "kept"}))]);
    Script::new()
        .lead("first", [write, delegating(&[("c1", "look")]), saying("the first answer")])
        .lead("second", [saying("the second answer")])
        .lead("third", [saying("the third answer")])
        .lead("hang", [Turn::Hang])
        .sub("look", [saying("found it")])
}

async fn world() -> World {
    Setup::new(script()).build().await
}

async fn ended(world: &World, text: &str) -> RunId {
    let run = world.start(text).await;
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    run
}

fn events(world: &World) -> Vec<RecordedEvent> {
    world.log.read_all(Position::ZERO, 10_000).unwrap()
}

fn of_run(world: &World, run: &RunId) -> Vec<RecordedEvent> {
    let all = EventFilter::default();
    world.log.read_run(&world.thread, run, &all, Seq::ZERO, 10_000).unwrap()
}

fn last_erasure(world: &World) -> Erasure {
    world.runtime.erasures().unwrap().pop().unwrap()
}

#[tokio::test]
async fn a_run_is_erased_and_the_others_are_not() {
    let world = world().await;
    let (first, second) = (ended(&world, "first").await, ended(&world, "second").await);
    let (before, kept, count) = (events(&world), of_run(&world, &second), of_run(&world, &first).len());
    assert!(count > 10);
    let erasure_id = world.runtime.erase_run(&world.thread, &first).await.unwrap();
    let erasure = world.runtime.erasure(erasure_id).unwrap().unwrap();
    assert_eq!(
        (erasure.state, erasure.reason, erasure.events),
        (ErasureState::Done, ErasureReason::Run, count as u64)
    );
    assert_eq!(erasure.run, Some(eventlog::run_hash(&world.thread, &first)));
    assert_eq!(of_run(&world, &first), []);
    assert_eq!(of_run(&world, &second), kept);
    let after = events(&world);
    for (was, is) in before.iter().zip(&after) {
        let is_gone = was.scope.run_id.as_ref() == Some(&first);
        assert_eq!(
            (was.position, was.seq, was.hash, is_gone),
            (is.position, is.seq, is.hash, is.is_erased())
        );
    }
    assert_eq!(after.len(), before.len() + 2, "asked for, and done");
    assert!(world.log.verify(VerifyRequest::default()).unwrap().is_whole());
    let again = world.runtime.erase_run(&world.thread, &first).await;
    assert!(matches!(again, Err(EraseError::UnknownRun(_))), "{again:?}");
    let gone = world.runtime.wait(&world.thread, &first).await;
    assert!(matches!(gone, Err(CancelError::UnknownRun(_))), "{gone:?}");
    let kept = ThreadFolders::root(world.data.path(), &world.thread).join("user-data/workspace/kept.txt");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "kept", "files are the thread's");
}

#[tokio::test]
async fn the_registry_does_not_name_the_run() {
    let world = world().await;
    let named =
        crate::RunRequest { run_id: Some(RunId::new("about-somebody").unwrap()), ..request("second") };
    let run = world.runtime.start_run(&world.thread, named).await.unwrap();
    world.wait(&run).await;
    world.runtime.erase_run(&world.thread, &run).await.unwrap();
    let all = serde_json::to_string(&events(&world)).unwrap();
    assert!(!all.contains("about-somebody"), "{all}");
    assert!(all.contains(&eventlog::run_hash(&world.thread, &run).to_string()));
}

#[tokio::test]
async fn the_lead_of_a_later_run_does_not_see_it() {
    let world = world().await;
    let (first, _) = (ended(&world, "first").await, ended(&world, "second").await);
    world.runtime.erase_run(&world.thread, &first).await.unwrap();
    ended(&world, "third").await;
    let requests = world.script.requests();
    let seen: Vec<&str> = requests.last().unwrap().messages.iter().map(Message::content).collect();
    let seen = seen.join("\n");
    assert!(seen.contains("second") && seen.contains("the second answer"), "{seen}");
    for gone in ["the first answer", "found it", "kept.txt"] {
        assert!(!seen.contains(gone), "{gone} in {seen}");
    }
    world.check_ended_once_but_for(&first);
}

#[tokio::test]
async fn an_erased_run_takes_nothing_more_and_its_id_is_not_used_again() {
    let world = world().await;
    let first = ended(&world, "first").await;
    world.runtime.erase_run(&world.thread, &first).await.unwrap();
    let again = crate::RunRequest { run_id: Some(first.clone()), ..request("second") };
    let started = world.runtime.start_run(&world.thread, again).await;
    assert!(matches!(started, Err(StartRunError::RunErased(_))), "{started:?}");
    let refused = world.log.append(note(&world.thread, Some(&first), "x")).await;
    assert!(matches!(refused, Err(AppendError::Erased { run_id: Some(_), .. })), "{refused:?}");
    ended(&world, "second").await;
}

fn note(thread: &ThreadId, run: Option<&RunId>, owner: &str) -> Append {
    let event = NewEvent {
        event_id: SystemIds.event_id(),
        event_type: "note".into(),
        schema_version: 0,
        category: "trace".into(),
        scope: eventlog::Scope { run_id: run.cloned(), ..Default::default() },
        owner: UserId::new(owner).unwrap(),
        causation_id: None,
        correlation_id: None,
        created_at: jiff::Timestamp::UNIX_EPOCH,
        content: Json::empty_object(),
        metadata: Json::empty_object(),
    };
    let stream = StreamId::Thread(thread.clone());
    Append { stream, expected: Expected::Any, idempotency_key: None, events: vec![event] }
}

#[tokio::test]
async fn a_run_at_work_is_cancelled_first_and_that_of_others_is_not() {
    let world = world().await;
    let first = ended(&world, "first").await;
    let hanging = world.start("hang").await;
    world.until("the hanging run", |world| world.script.calls_for("hang") == 1).await;
    world.done(world.runtime.erase_run(&world.thread, &first)).await.unwrap();
    assert!(world.runtime.cancel_run(&world.thread, &first).await.is_err());
    assert!(world.runtime.live(&world.thread, &hanging).is_some(), "the run at work goes on");
    let begun = of_run(&world, &hanging).len() as u64;
    world.done(world.runtime.erase_run(&world.thread, &hanging)).await.unwrap();
    assert!(last_erasure(&world).events > begun, "its end was recorded before the key was destroyed");
    assert_eq!(of_run(&world, &hanging), []);
    world.until_idle().await;
    ended(&world, "second").await;
}

/// Does the first `steps` steps and drops what is left of the process; then another carries on.
async fn check_carried_on(text: &str, steps: usize, state: ErasureState, recovery: Recovery) {
    let setup = Setup::new(script());
    let world = setup.build().await;
    let kept = ended(&world, "second").await;
    let run = world.start(text).await;
    if text == "hang" {
        world.until("the hanging run", |world| world.script.calls_for("hang") == 1).await;
    } else {
        world.wait(&run).await;
    }
    world.runtime.shutdown().await;
    let target = Target::Run(world.thread.clone(), run.clone());
    let begun = world.runtime.request_erasure(&target, ErasureReason::Run, &[]).await.unwrap();
    if steps > 1 {
        destroy_keys(&world.log, &begun).await.unwrap();
    }
    let cut_off = world.runtime.erasure(begun.erasure_id).unwrap().unwrap();
    assert_eq!((cut_off.state, cut_off.done_at), (state, None), "{text} after {steps} steps");
    let next = Setup::new(script()).log(world.log.clone()).runtime(&world.data);
    assert_eq!(next.recover(recovery).await.unwrap(), [], "what is erased does not go on");
    let erasures = next.erasures().unwrap();
    assert_eq!((erasures.len(), erasures[0].state), (1, ErasureState::Done));
    assert_eq!(of_run(&world, &run), []);
    assert!(!of_run(&world, &kept).is_empty());
    let head = world.log.head();
    next.recover(recovery).await.unwrap();
    assert_eq!(world.log.head(), head, "what is done is not done again");
}

#[tokio::test]
async fn an_erasure_of_a_run_that_was_cut_off_is_carried_on() {
    for recovery in [Recovery::Resume, Recovery::Fail] {
        for text in ["first", "hang"] {
            check_carried_on(text, 1, ErasureState::Requested, recovery).await;
            check_carried_on(text, 2, ErasureState::Erasing, recovery).await;
        }
    }
}

/// A thread that others made, by events of runs alone.
#[tokio::test]
async fn files_go_with_the_last_run_that_could_be_read() {
    let world = world().await;
    let thread = ThreadId::new("theirs").unwrap();
    let (one, other) = (RunId::new("one").unwrap(), RunId::new("other").unwrap());
    for run in [&one, &other] {
        world.log.append(note(&thread, Some(run), "ada")).await.unwrap();
    }
    let folder = ThreadFolders::root(world.data.path(), &thread);
    std::fs::create_dir_all(&folder).unwrap();
    world.runtime.erase_run(&thread, &one).await.unwrap();
    assert!(folder.exists());
    world.runtime.erase_run(&thread, &other).await.unwrap();
    assert!(!folder.exists());
    let started = world.runtime.start_run(&thread, request("second")).await;
    assert!(matches!(started, Err(StartRunError::UnknownThread(_))), "{started:?}");
    world.log.append(note(&thread, Some(&RunId::new("next").unwrap()), "ada")).await.unwrap();
    assert_eq!(world.log.stream_tail(&StreamId::Thread(thread)).unwrap(), Some(Seq::new(3)), "seqs go on");
}

#[tokio::test]
async fn a_thread_stays_its_owners_when_its_first_run_is_erased() {
    let world = world().await;
    let (thread, mine) = (ThreadId::new("theirs").unwrap(), UserId::unowned());
    let first = RunId::new("first").unwrap();
    for run in [Some(&first), None] {
        world.log.append(note(&thread, run, "ada")).await.unwrap();
    }
    world.runtime.erase_run(&thread, &first).await.unwrap();
    let other = world.runtime.create_thread(NewThread::default()).await.unwrap();
    world.runtime.erase_owner(&mine).await.unwrap();
    assert!(world.log.is_erased(&other) && !world.log.is_erased(&thread));
    world.runtime.erase_owner(&UserId::new("ada").unwrap()).await.unwrap();
    assert!(world.log.is_erased(&thread));
}

/// What each erasure took, in the order in which they were asked for.
fn taken(world: &World) -> Vec<u64> {
    world.runtime.erasures().unwrap().iter().map(|one| one.events).collect()
}

fn events_of_thread(world: &World) -> u64 {
    world.log.stream_tail(&StreamId::Thread(world.thread.clone())).unwrap().unwrap().get()
}

#[tokio::test]
async fn an_erasure_does_not_count_what_one_before_it_took() {
    let world = world().await;
    let (first, second) = (ended(&world, "first").await, ended(&world, "second").await);
    let of_first = of_run(&world, &first).len() as u64;
    world.runtime.erase_run(&world.thread, &first).await.unwrap();
    let again = world.runtime.erase_run(&world.thread, &first).await;
    assert!(matches!(again, Err(EraseError::UnknownRun(_))), "{again:?}");
    let of_second = of_run(&world, &second).len() as u64;
    world.runtime.erase_run(&world.thread, &second).await.unwrap();
    let all = events_of_thread(&world);
    world.runtime.erase_thread(&world.thread).await.unwrap();
    assert_eq!(taken(&world), [of_first, of_second, all - of_first - of_second]);
    assert!(all > of_first + of_second, "the thread has events of its own");
}

#[tokio::test]
async fn of_two_erasures_at_once_the_first_that_ends_counts_what_both_took() {
    let world = world().await;
    let run = ended(&world, "first").await;
    let target = Target::Run(world.thread.clone(), run);
    world.runtime.request_erasure(&target, ErasureReason::Run, &[]).await.unwrap();
    let all = events_of_thread(&world);
    world.runtime.erase_thread(&world.thread).await.unwrap();
    world.runtime.recover(Recovery::Resume).await.unwrap();
    assert!(world.runtime.erasures().unwrap().iter().all(|one| one.state == ErasureState::Done));
    assert_eq!(taken(&world), [0, all]);
}
