//! A tool that brings an agent no further: it is told, and then the tool is not run any more.

use domain::{
    event::{Event, Logged, ModelEvent, RunStatus, SubagentEvent},
    guard::tool_progress::ProgressAction,
    message::{AssistantMessage, Message, ToolMessage, ToolStatus},
    receipt::ReceiptOutcome,
    tool_meta::{MetaSource, MetaStatus, ToolErrorType, ToolMeta},
    tool_spec::SideEffect,
};
use serde_json::json;

use super::start::cut_everywhere;
use crate::{
    config::{Config, Recovery},
    testing::{
        Script, Setup, World, calling, delegating, facts_of, saying,
        tools::{Behaviour, Counting},
        world::check_ended_once,
    },
};

const TOOL: &str = "far";
/// Calls until the last answer: five run, and two are refused.
const CALLS: usize = 7;

fn far(behaviour: Behaviour) -> Counting {
    Counting::new(TOOL, SideEffect::Effectful, behaviour)
}

/// Every call is another, so that no other guard minds.
fn turns() -> Vec<AssistantMessage> {
    let call = |at: usize| calling(&[("x", TOOL, json!({"query": format!("q{at}")}))]);
    (0..CALLS).map(call).chain([saying("done")]).collect()
}

fn lead() -> Script {
    Script::new().lead("go", turns())
}

fn enabled(config: &mut Config) {
    config.tool_progress.enabled = true;
}

fn actions(facts: &[Logged]) -> Vec<(ProgressAction, u32)> {
    let stalled = |fact: &Logged| match &fact.event {
        Event::Model(ModelEvent::ToolStalled(told)) => Some((told.stalled.action, told.stalled.problems)),
        _ => None,
    };
    facts.iter().filter_map(stalled).collect()
}

const EXPECTED: [(ProgressAction, u32); 5] = [
    (ProgressAction::Warned, 3),
    (ProgressAction::Warned, 4),
    (ProgressAction::Blocked, 5),
    (ProgressAction::Refused, 5),
    (ProgressAction::Refused, 5),
];

/// In which requests the model was told, by the framework.
fn told(world: &World) -> Vec<usize> {
    let requests = world.script.requests();
    let hints =
        requests.iter().map(|request| request.messages[0].content().matches("[PROGRESS HINT]").count());
    hints.enumerate().filter(|(_, count)| *count == 1).map(|(at, _)| at).collect()
}

// Chain facts (f) line 97.
#[tokio::test]
async fn line_97_a_tool_that_only_times_out_is_not_run_a_sixth_time() {
    let tool = far(Behaviour::TimeOut);
    let world = Setup::new(lead()).tool(tool.clone()).config(enabled).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    assert_eq!(actions(&world.facts()), EXPECTED);
    // The requests after the third and the fourth result, each once.
    assert_eq!((tool.runs(), told(&world)), (5, vec![3, 4]));
    let results = world.results();
    let (ran, refused) = results.split_at(5);
    assert!(ran.iter().all(|result| result.content.contains("Error: request timed out")), "{ran:?}");
    for result in refused {
        assert!(result.content.starts_with("[TOOL_BLOCKED] "), "{result:?}");
        assert_eq!((result.status, ToolMeta::of(result)), (ToolStatus::Error, Some(ToolMeta::BLOCKED)));
    }
    // A run begins with a clean sheet.
    assert_eq!(world.run("go").await, RunStatus::Success);
    assert_eq!((tool.runs(), actions(&world.facts()).len()), (10, 2 * EXPECTED.len()));
}

// The same holds for a subagent, whose receipts say that the calls were denied.
#[tokio::test]
async fn a_subagent_is_held_to_the_same() {
    let script =
        Script::new().lead("go", [delegating(&[("1", "busy")]), saying("done")]).sub("busy", turns());
    let tool = far(Behaviour::TimeOut);
    let world = Setup::new(script).tool(tool.clone()).config(enabled).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let facts = world.facts();
    assert_eq!((actions(&facts), tool.runs()), (EXPECTED.to_vec(), 5));
    let receipt = |fact: &Logged| match &fact.event {
        Event::Subagent(SubagentEvent::Receipt(recorded)) => Some(recorded.outcome),
        _ => None,
    };
    let outcomes: Vec<_> = facts.iter().filter_map(receipt).collect();
    assert_eq!(outcomes[..5], [ReceiptOutcome::Error; 5]);
    assert_eq!(outcomes[5..], [ReceiptOutcome::Denied; 2]);
    let of_delegation = |fact: &&Logged| matches!(fact.event, Event::Model(ModelEvent::ToolStalled(_)));
    assert!(facts.iter().filter(of_delegation).all(|fact| fact.scope.delegation_id.is_some()));
    world.check_ended_once();
}

#[tokio::test]
async fn it_is_off_unless_somebody_turns_it_on() {
    let tool = far(Behaviour::TimeOut);
    let world = Setup::new(lead()).tool(tool.clone()).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    assert_eq!((tool.runs() as usize, actions(&world.facts()).len()), (CALLS, 0));
}

// Chain facts §2.7: results say what they are worth, whether or not anybody looks.
#[tokio::test]
async fn every_result_but_a_delegation_s_says_what_it_is_worth() {
    for (behaviour, expected) in [
        (Behaviour::Return, ToolMeta::SUCCESS),
        (Behaviour::TimeOut, ToolMeta::error(ToolErrorType::Transient, MetaSource::ContentAnalysis)),
        (Behaviour::Panic, ToolMeta::error(ToolErrorType::Unknown, MetaSource::Exception)),
    ] {
        let turns = [calling(&[("x", TOOL, json!({}))]), delegating(&[("1", "task")]), saying("done")];
        let script = Script::new().lead("go", turns).sub("task", [saying("found")]);
        let world = Setup::new(script).tool(far(behaviour)).build().await;
        assert_eq!(world.run("go").await, RunStatus::Success);
        let results: Vec<ToolMessage> = world.results();
        assert_eq!([ToolMeta::of(&results[0]), ToolMeta::of(&results[1])], [Some(expected), None]);
    }
    let script = Script::new().lead("go", [calling(&[("x", "nobody", json!({}))]), saying("done")]);
    let world = Setup::new(script).build().await;
    world.run("go").await;
    let meta = ToolMeta::of(&world.results()[0]).unwrap();
    assert_eq!((meta.status, meta.source), (MetaStatus::Error, MetaSource::ToolReturn));
}

/// What the lead was told of each call.
fn answers(facts: &[Logged]) -> Vec<String> {
    let answer = |fact: &Logged| match &fact.event {
        Event::Model(ModelEvent::ToolResult(Message::Tool(result))) => Some(result.content.clone()),
        _ => None,
    };
    facts.iter().filter_map(answer).collect()
}

#[tokio::test]
async fn a_resumed_run_blocks_where_an_uninterrupted_one_does() {
    let world = || Setup::new(lead()).tool(Counting::new(TOOL, SideEffect::Idempotent, Behaviour::TimeOut));
    let (expected, cuts) = cut_everywhere(world().config(enabled)).await;
    assert!(cuts.len() > 3, "{}", cuts.len());
    for log in cuts {
        let data = tempfile::tempdir().unwrap();
        // What was frozen when the run started counts, and not what is configured by now.
        let runtime = world().log(log.clone()).runtime(&data);
        for (thread, run) in runtime.recover(Recovery::Resume).await.unwrap() {
            assert_eq!(runtime.wait(&thread, &run).await.unwrap(), RunStatus::Success);
        }
        let after = facts_of(&log);
        check_ended_once(&after);
        assert_eq!(actions(&after), actions(&expected));
        assert_eq!(answers(&after), answers(&expected));
    }
}
