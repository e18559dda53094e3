//! A run that goes on after a crash obeys what its start recorded, whatever was configured, changed or
//! deleted since.

use std::sync::Arc;

use domain::{
    definition::CustomAgent,
    event::{DelegationEvent, DelegationRequested, Event, Logged, RunStatus, SubagentEvent},
    ids::{RunId, SubagentType},
    message::Message,
    tool_spec::{SideEffect, TASK_TOOL},
};
use eventlog::{
    EventLog, Options, Position,
    store::{LogStore, SegmentStore},
};
use serde_json::{Value, json};

use super::start::copy;
use crate::{
    ManageOrder, Runtime,
    config::Recovery,
    testing::{
        Script, Setup, World, asking, calling, saying,
        tools::{Behaviour, Counting},
        world::request,
    },
};

fn reviewer() -> SubagentType {
    SubagentType::new("reviewer").unwrap()
}

fn definition(prompt: &str, max_turns: u32) -> Box<CustomAgent> {
    let definition = json!({
        "description": "Reviews", "system_prompt": prompt, "tools": ["ls", "grep", "mark"], "max_turns": max_turns,
        "timeout_seconds": 77,
    });
    Box::new(serde_json::from_value(definition).unwrap())
}

/// What becomes of the definition between the crash and the restart.
#[derive(Debug, Clone, Copy)]
enum Since {
    Nothing,
    Changed,
    Disabled,
    Deleted,
}

async fn change(runtime: &Runtime, since: Since) {
    let order = match since {
        Since::Nothing => return,
        Since::Changed => ManageOrder::Update(definition("NEW WORDS", 9)),
        Since::Disabled => ManageOrder::Disable,
        Since::Deleted => ManageOrder::Delete,
    };
    runtime.manage(&reviewer(), order, None).await.unwrap();
}

fn script() -> Script {
    let asks = |id: &'static str, kind: &str, prompt: &str| (id, TASK_TOOL, asking(kind, prompt));
    let both = [asks("1", "reviewer", "review"), asks("2", "general-purpose", "anything")];
    Script::new()
        .lead("go", [calling(&both), saying("done")])
        .sub("review", [saying("reviewed")])
        .sub("anything", [saying("never asked")])
}

/// A run with a managed definition that may delegate to that one alone, with its whole log.
async fn recorded(store: Arc<dyn LogStore>) -> (World, RunId) {
    let log = EventLog::with_store(store, Options::default()).unwrap();
    let world = Setup::new(script()).log(log).build().await;
    let create = ManageOrder::Create { definition: definition("OLD WORDS", 3), enabled: true };
    world.runtime.manage(&reviewer(), create, None).await.unwrap();
    let mut asked = request("go");
    asked.allowed_subagents = Some(vec!["reviewer".to_owned()]);
    let run = world.runtime.start_run(&world.thread, asked).await.unwrap();
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    (world, run)
}

/// What is recorded on threads: the registry has the definitions.
fn facts(log: &EventLog) -> Vec<Logged> {
    let recorded = log.read_all(Position::ZERO, 10_000).unwrap();
    let on_threads = recorded.iter().filter(|event| event.stream.thread_id().is_some());
    on_threads.map(|event| eventlog::decode(event).unwrap()).collect()
}

fn requests(log: &EventLog) -> Vec<DelegationRequested> {
    let requested = |fact: Logged| match fact.event {
        Event::Delegation(DelegationEvent::Requested(request)) => Some(request),
        _ => None,
    };
    facts(log).into_iter().filter_map(requested).collect()
}

/// The system messages that subagents were given.
fn briefings(log: &EventLog) -> Vec<String> {
    let briefing = |fact: Logged| match fact.event {
        Event::Subagent(SubagentEvent::Message(captured)) => match captured.message {
            Message::System(system) => Some(system.content),
            _ => None,
        },
        _ => None,
    };
    facts(log).into_iter().filter_map(briefing).collect()
}

fn refusals(log: &EventLog) -> Vec<&'static str> {
    let reason = |fact: Logged| match fact.event {
        Event::Delegation(DelegationEvent::Refused(refused)) => Some(refused.reason.as_str()),
        _ => None,
    };
    facts(log).into_iter().filter_map(reason).collect()
}

/// The `task` tool as the lead's model was shown it last, if it was.
fn offered(script: &Script) -> Option<Value> {
    let requests = script.requests();
    let of_lead = requests.iter().rfind(|request| request.agent == crate::models::AgentTag::Lead)?;
    let tool = of_lead.tools.iter().find(|tool| tool.name == TASK_TOOL)?;
    Some(tool.parameters["properties"]["subagent_type"]["description"].clone())
}

/// Everything after the run's start is lost at some commit, and what is configured is another thing then:
/// the prompt, the `task` tool and what is carried out are those of the start all the same.
#[tokio::test]
async fn definitions_and_permissions_are_those_of_the_start_after_a_crash_at_any_moment() {
    let store: Arc<dyn LogStore> = Arc::new(SegmentStore::in_memory());
    let (world, run) = recorded(store.clone()).await;
    let whole = (requests(&world.log), briefings(&world.log), refusals(&world.log));
    assert_eq!((whole.0.len(), whole.2.as_slice()), (1, &["not_allowed"][..]));
    assert!(whole.1[0].contains("OLD WORDS"));
    let all = world.log.read_all(Position::ZERO, 10_000).unwrap();
    let start = all.iter().position(|event| event.event_type == "run.start").unwrap() + 1;
    let ends = (start..all.len()).filter(|at| store.commit_at(Position::new(*at as u64)).unwrap().is_some());
    let mut crashes = 0;
    for end in ends {
        for since in [Since::Nothing, Since::Changed, Since::Disabled, Since::Deleted] {
            let log = copy(end, &world.log, Arc::new(SegmentStore::in_memory())).await;
            let (script, data) = (script(), tempfile::tempdir().unwrap());
            let other = Setup::new(script.clone()).log(log.clone()).config(|config| {
                let own =
                    json!({"reviewer": {"description": "Another", "system_prompt": "CONFIGURED WORDS"}});
                config.subagents.custom_agents = serde_json::from_value(own).unwrap();
                config.subagents.agents =
                    serde_json::from_value(json!({"reviewer": {"max_turns": 1, "timeout_seconds": 1}}))
                        .unwrap();
            });
            // A tool that this process has and the one before it had not.
            let other = other.tool(Counting::new("mark", SideEffect::ReadOnly, Behaviour::Return));
            let runtime = other.runtime(&data);
            change(&runtime, since).await;
            runtime.recover(Recovery::Resume).await.unwrap();
            let ended = world.done(runtime.wait(&world.thread, &run)).await.unwrap();
            assert_eq!(ended, RunStatus::Success, "{since:?} after {end}");
            let gone_on = (requests(&log), briefings(&log), refusals(&log));
            assert_eq!(gone_on, whole, "{since:?} after {end}");
            if script.calls_for("go") > 0 {
                assert_eq!(offered(&script), Some(json!("The type of subagent: reviewer.")));
            }
            crashes += 1;
        }
    }
    assert!(crashes >= 32, "{crashes}");
}

/// An empty list is nobody: the lead hears of no delegation, and what it asks for all the same is refused
/// and recorded, before and after a crash.
#[tokio::test]
async fn a_lead_with_nobody_to_delegate_to_is_not_offered_the_tool() {
    let script = Script::new()
        .lead("go", [calling(&[("1", TASK_TOOL, asking("general-purpose", "anything"))]), saying("done")]);
    let world = Setup::new(script).build().await;
    let mut asked = request("go");
    asked.allowed_subagents = Some(Vec::new());
    let run = world.runtime.start_run(&world.thread, asked).await.unwrap();
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    assert_eq!((offered(&world.script), refusals(&world.log)), (None, vec!["not_allowed"]));
    let first = &world.script.requests()[0];
    assert!(first.messages.iter().all(|message| !message.content().contains("subagent")), "{first:?}");
    world.check_ended_once();
}
