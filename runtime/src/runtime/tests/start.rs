//! Starting runs: who may, who is refused, and what becomes of what nobody works on.

use std::sync::Arc;

use domain::{
    event::{Event, Logged, ModelEvent, RunEvent, RunSettings, RunStatus, RunStopReason},
    ids::{EventId, RunId, UserId},
    limits::{IMAGES_CHARS_MAX, IMAGES_MAX},
    message::{Image, ImageType, Message},
};
use eventlog::{
    Append, EventLog, Expected, FOREIGN_SCHEMA_VERSION, NewEvent, Options, Position, StreamId,
    store::{LogStore, SegmentStore},
};
use jiff::Timestamp;

use crate::{
    config::Recovery,
    request::StartRunError,
    testing::{Script, Setup, Turn, World, delegating, facts_of, saying, world::request},
};

// Whoever saw the end of a run may start the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_run_starts_right_after_the_end() {
    let world = Setup::new(Script::new().lead("go", [saying("done")])).build().await;
    for _ in 0..100 {
        let run = world.start("go").await;
        assert_eq!(world.runtime.wait(&world.thread, &run).await.unwrap(), RunStatus::Success);
    }
    world.check_ended_once();
}

#[tokio::test]
async fn one_run_at_a_time_per_thread() {
    let script = Script::new().lead("go", [Turn::Held("lead", saying("done"))]);
    let world = Setup::new(script).build().await;
    let run = world.start("go").await;
    let second = world.runtime.start_run(&world.thread, request("go")).await;
    assert!(matches!(second, Err(StartRunError::ActiveRun(active)) if active == run));
    world.script.open("lead");
    world.wait(&run).await;
    let again = domain_request(&run);
    assert!(matches!(world.runtime.start_run(&world.thread, again).await, Err(StartRunError::RunExists(_))));
}

fn domain_request(run: &RunId) -> crate::RunRequest {
    crate::RunRequest { run_id: Some(run.clone()), ..request("go") }
}

// A client that hangs up while its run starts: the run is worked on all the same.
#[tokio::test]
async fn a_caller_that_goes_away_leaves_no_orphan() {
    let world = Setup::new(Script::new().lead("go", [saying("done")])).build().await;
    let mut start = Box::pin(world.runtime.start_run(&world.thread, request("go")));
    assert!(futures::poll!(start.as_mut()).is_pending());
    drop(start);
    world.until_recorded("run.end", 1).await;
    world.check_ended_once();
}

/// Cuts the log off after this many events, as a crash would.
pub(super) async fn copy(facts_until: usize, from: &EventLog, store: Arc<dyn LogStore>) -> EventLog {
    let log = EventLog::with_store(store, Options::default()).unwrap();
    for recorded in from.read_all(Position::ZERO, facts_until).unwrap() {
        let event = NewEvent {
            event_id: recorded.event_id,
            event_type: recorded.event_type,
            schema_version: recorded.schema_version,
            category: recorded.category,
            scope: recorded.scope,
            owner: recorded.owner,
            causation_id: recorded.causation_id,
            correlation_id: recorded.correlation_id,
            created_at: recorded.created_at,
            content: recorded.content,
            metadata: recorded.metadata,
        };
        let (stream, events) = (recorded.stream, vec![event]);
        let append = Append { stream, expected: Expected::Any, idempotency_key: None, events };
        log.append(append).await.unwrap();
    }
    log
}

/// Plays a run, and cuts its log at every commit between its start and its end, as a crash would.
pub(super) async fn cut_everywhere(setup: Setup) -> (Vec<Logged>, Vec<EventLog>) {
    let store: Arc<dyn LogStore> = Arc::new(SegmentStore::in_memory());
    let whole = EventLog::with_store(store.clone(), Options::default()).unwrap();
    let world = setup.log(whole.clone()).build().await;
    world.run("go").await;
    let facts = world.facts();
    let is_end = |fact: &Logged| ["run.end", "run.error"].contains(&fact.event.event_type());
    let end = facts.iter().position(is_end).unwrap();
    let mut cuts = Vec::new();
    for cut in place_of(&facts, "run.start")..=end {
        if store.commit_at(Position::new(cut as u64)).unwrap().is_some() {
            cuts.push(copy(cut, &whole, Arc::new(SegmentStore::in_memory())).await);
        }
    }
    (facts, cuts)
}

fn place_of(facts: &[Logged], event_type: &str) -> usize {
    facts.iter().position(|fact| fact.event.event_type() == event_type).unwrap() + 1
}

/// A run on a thread of its own, cut off after the first event of the type.
async fn cut_off_after(event_type: &str) -> (World, RunId) {
    let script = Script::new()
        .lead("go", [delegating(&[("1", "task")]), saying("done")])
        .lead("next", [saying("fine")])
        .sub("task", [saying("ok")]);
    let world = Setup::new(script.clone()).build().await;
    let run = world.start("go").await;
    world.wait(&run).await;
    let log =
        copy(place_of(&world.facts(), event_type), &world.log, Arc::new(SegmentStore::in_memory())).await;
    let next = Setup::new(script).log(log.clone());
    let runtime = next.runtime(&world.data);
    (World { runtime, log, ..world }, run)
}

// A run that a crash left open is ended before the next one starts on its thread.
#[tokio::test]
async fn an_orphan_is_ended_before_the_next_run() {
    let (world, orphan) = cut_off_after("subagent.start").await;
    assert_eq!(world.run("next").await, RunStatus::Success);
    assert_eq!(world.runtime.wait(&world.thread, &orphan).await.unwrap(), RunStatus::Error);
    let facts = world.facts();
    let reason = facts.iter().find_map(|fact| match &fact.event {
        Event::Run(RunEvent::StatusChanged(changed)) if changed.status.is_terminal() => changed.stop_reason,
        _ => None,
    });
    assert_eq!(reason, Some(RunStopReason::OrphanRecovered));
    assert_eq!(world.ledger()[0].status.as_str(), "failed");
    world.check_ended_once();
}

/// A request with so many pictures, each of so many characters.
fn showing(text: &str, count: usize, chars: usize) -> crate::request::RunRequest {
    let image = Image { media_type: ImageType::Png, data: "a".repeat(chars) };
    let mut request = request(text);
    for message in &mut request.input {
        message.images = vec![image.clone(); count];
    }
    request
}

// A picture is recorded with its request, and shown to the model as it was recorded; words beside it are
// not needed.
#[tokio::test]
async fn images_are_part_of_what_is_asked() {
    let world = Setup::new(Script::new().lead("", [saying("a cat")])).build().await;
    for (text, count, chars) in [("what is it?", 2, 4), ("", 1, IMAGES_CHARS_MAX)] {
        let run = world.runtime.start_run(&world.thread, showing(text, count, chars)).await.unwrap();
        assert_eq!(world.wait(&run).await, RunStatus::Success);
        let requests = world.script.requests();
        let asked = requests.last().unwrap().messages.iter().rev().find_map(|message| match message {
            Message::Human(human) => Some(human.images.iter().map(|image| image.data.len()).collect()),
            _ => None,
        });
        assert_eq!(asked, Some(vec![chars; count]));
        let recorded = facts_of(&world.log).into_iter().rev().find_map(|fact| match fact.event {
            Event::Model(ModelEvent::HumanInput(Message::Human(human))) => Some(human.images),
            _ => None,
        });
        assert_eq!(recorded.unwrap(), showing(text, count, chars).input[0].images);
    }
    for (count, chars) in [(IMAGES_MAX + 1, 4), (2, IMAGES_CHARS_MAX / 2 + 4)] {
        let refused = world.runtime.start_run(&world.thread, showing("look", count, chars)).await;
        assert!(matches!(refused, Err(StartRunError::ImagesTooLarge { .. })), "{refused:?}");
    }
}

fn foreign_start(run: &RunId) -> NewEvent {
    let settings = RunSettings {
        run_id: run.clone(),
        assistant_id: "lead".into(),
        model_name: "scripted".into(),
        subagent_enabled: true,
        max_concurrent_subagents: 3,
        max_total_subagents: 6,
        allowed_subagents: None,
        max_turns: 9,
        tools: Vec::new(),
        system_prompt: "obey".into(),
        subagents: None,
        managed_subagents: None,
        summarization_enabled: false,
        token_budget: None,
        loop_detection: None,
        tool_progress: None,
        model_retries_max: None,
        checks_last_words: true,
        summarization: None,
        metadata: Default::default(),
    };
    let encoded = eventlog::encode(&Event::Run(RunEvent::Started(settings))).unwrap();
    NewEvent {
        event_id: EventId::from_uuid(uuid::Uuid::now_v7()),
        event_type: encoded.event_type,
        schema_version: FOREIGN_SCHEMA_VERSION,
        category: encoded.category,
        scope: domain::event::Scope { run_id: Some(run.clone()), ..Default::default() },
        owner: UserId::unowned(),
        causation_id: None,
        correlation_id: None,
        created_at: Timestamp::UNIX_EPOCH,
        content: encoded.content,
        metadata: encoded.metadata,
    }
}

// What somebody else recorded is never worked on, even when it looks like a run of ours.
#[tokio::test]
async fn a_run_that_somebody_else_recorded_is_not_resumed() {
    let world = Setup::new(Script::new().lead("go", [saying("done")])).build().await;
    let foreign = RunId::new("theirs").unwrap();
    let stream = StreamId::Thread(world.thread.clone());
    let events = vec![foreign_start(&foreign)];
    let append = Append { stream, expected: Expected::Any, idempotency_key: None, events };
    world.log.append(append).await.unwrap();
    for recovery in [Recovery::Resume, Recovery::Fail] {
        assert_eq!(world.runtime.recover(recovery).await.unwrap(), []);
    }
    assert_eq!(world.run("go").await, RunStatus::Success);
    let facts = facts_of(&world.log);
    assert_eq!(facts.iter().filter(|fact| fact.scope.run_id.as_ref() == Some(&foreign)).count(), 1);
    let taken = world.runtime.start_run(&world.thread, domain_request(&foreign)).await;
    assert!(matches!(taken, Err(StartRunError::RunExists(_))));
}
