//! Guards that end work which would not end by itself, and keep what was done (field reports,
//! group A).

use std::sync::Arc;

use domain::{
    definition::TokenBudgetSettings,
    event::{
        Cap, CapAction, CapAxis, EndStatus, Event, GuardAction, GuardTag, Logged, ModelEvent, RunEvent,
        RunStatus, RunStopReason, SubagentEvent,
    },
    message::AssistantMessage,
    status_contract::StopReason,
};
use eventlog::{
    EventLog, Options, Position,
    store::{LogStore, SegmentStore},
};
use serde_json::json;

use super::start::copy;
use crate::{
    config::{Config, Recovery},
    testing::{
        Script, Setup, World, calling, delegating, facts_of, saying, script::Using, world::check_ended_once,
    },
};

/// More turns than any guard here allows.
const FOREVER: usize = 16;

fn ls(path: &str) -> AssistantMessage {
    AssistantMessage { content: "so far".to_owned(), ..silent_ls(path) }
}

fn silent_ls(path: &str) -> AssistantMessage {
    calling(&[("x", "ls", json!({"path": path}))])
}

/// A lead with one subagent that never answers.
fn never_done(turn: impl FnMut(usize) -> AssistantMessage) -> Script {
    Script::new()
        .lead("go", [delegating(&[("1", "busy")]), saying("done")])
        .sub("busy", (0..FOREVER).map(turn).collect::<Vec<_>>())
}

const fn budget(max_tokens: u64) -> TokenBudgetSettings {
    TokenBudgetSettings {
        enabled: None,
        max_tokens: Some(max_tokens),
        max_input_tokens: None,
        max_output_tokens: None,
        warn_threshold: None,
        hard_stop_threshold: None,
    }
}

fn caps_of(facts: &[Logged]) -> Vec<Cap> {
    let cap = |fact: &Logged| match &fact.event {
        Event::Run(RunEvent::Capped(cap)) => Some(cap.clone()),
        Event::Subagent(SubagentEvent::Capped(capped)) => Some(capped.cap.clone()),
        _ => None,
    };
    facts.iter().filter_map(cap).collect()
}

fn cap(axis: CapAxis, action: CapAction, used: u64, budget: u64) -> Cap {
    Cap { axis, action, used, budget }
}

/// The framework's words in each request that a subagent made.
fn told(world: &World) -> Vec<String> {
    let requests = world.script.requests();
    let of_subagent = requests.iter().filter(|request| request.agent.caller() != "lead_agent");
    of_subagent.map(|request| request.messages[0].content().to_owned()).collect()
}

/// The one subagent ended early for this reason, and everybody is told the same.
#[track_caller]
fn check_ended(world: &World, reason: StopReason, label: &str, turns: u32) {
    let ends = world.ends();
    let [end] = ends.as_slice() else { panic!("not one end: {ends:?}") };
    assert_eq!((end.status, end.stop_reason, end.turns), (EndStatus::Completed, Some(reason), turns));
    assert_eq!(world.script.calls_for("busy") as u32, turns);
    let ledger = world.ledger();
    assert_eq!((ledger.len(), ledger[0].stop_reason), (1, Some(reason)));
    let results = world.results();
    assert!(results[0].content.contains(label), "{}", results[0].content);
    assert_eq!(results[0].additional_kwargs["subagent_stop_reason"], reason.as_str());
    assert_eq!(world.last_status().stop_reason, None);
    world.check_ended_once();
}

// Chain facts (f) lines 45 and 98.
#[tokio::test]
async fn a_subagent_that_repeats_itself_is_stopped_at_the_fifth_time() {
    let world = Setup::new(never_done(|_| ls("."))).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    check_ended(&world, StopReason::LoopCapped, "repeated tool-call loop", 5);
    assert!(world.ends()[0].result.as_deref().unwrap().starts_with("so far\n\n[FORCED STOP]"));
    assert_eq!(
        caps_of(&world.facts()),
        [cap(CapAxis::Loop, CapAction::Warn, 3, 5), cap(CapAxis::Loop, CapAction::Stop, 5, 5)]
    );
    // The fifth call was never carried out, and the model was told once.
    assert_eq!(world.ends()[0].receipts, 4);
    let warned: Vec<bool> = told(&world).iter().map(|system| system.contains("[LOOP DETECTED]")).collect();
    assert_eq!(warned, [false, false, false, true, false]);
}

// Completed is earned: who was stopped without a word has done nothing that anybody could use.
#[tokio::test]
async fn who_was_stopped_without_a_word_failed_with_the_reason() {
    let world = Setup::new(never_done(|_| silent_ls("."))).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let ends = world.ends();
    assert_eq!((ends[0].status, ends[0].stop_reason), (EndStatus::Failed, Some(StopReason::LoopCapped)));
    assert!(ends[0].error.as_deref().unwrap().starts_with("[FORCED STOP]"), "{ends:?}");
    assert_eq!((ends[0].receipts, world.ledger()[0].stop_reason), (4, Some(StopReason::LoopCapped)));
    let world = Setup::new(Script::new().lead("go", vec![silent_ls("."); FOREVER])).build().await;
    assert_eq!(world.run("go").await, RunStatus::Error);
    assert_eq!(world.last_status().stop_reason, Some(RunStopReason::LoopCapped));
}

/// What the guards without a limit did, in order.
fn fired(facts: &[Logged]) -> Vec<(GuardTag, GuardAction)> {
    let fired = |fact: &Logged| match &fact.event {
        Event::Model(ModelEvent::AnswerMissing(fired)) => Some((GuardTag::TerminalResponse, fired.action)),
        Event::Model(ModelEvent::AnswerCut(fired)) => Some((GuardTag::ModelLength, fired.action)),
        _ => None,
    };
    facts.iter().filter_map(fired).collect()
}

fn ended(reply: AssistantMessage, finish: &str) -> AssistantMessage {
    let mut reply = reply;
    reply.response_metadata.finish_reason = Some(finish.to_owned());
    reply
}

// Chain facts (f) line 103.
#[tokio::test]
async fn line_103_a_safety_stop_ends_the_work_and_keeps_the_words() {
    let mut delegates = delegating(&[("1", "never")]);
    delegates.content = "I would delegate".to_owned();
    let world = Setup::new(Script::new().lead("go", [ended(delegates, "content_filter")])).build().await;
    assert_eq!(world.run("go").await, RunStatus::Error);
    let status = world.last_status();
    assert_eq!(status.stop_reason, Some(RunStopReason::SafetyCapped));
    let error = status.error.unwrap_or_default();
    assert!(error.contains("content_filter") && error.contains("I would delegate"), "{error}");
    assert_eq!((world.count("subagent.start"), world.count("run.cap")), (0, 1));
    // A subagent's: it failed, which its lead is told, and the partial text is kept.
    let script = Script::new()
        .lead("go", [delegating(&[("1", "look")]), saying("done")])
        .sub("look", [ended(ls("."), "SAFETY")]);
    let world = Setup::new(script).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    let ends = world.ends();
    assert_eq!((ends[0].status, ends[0].stop_reason, ends[0].receipts), (EndStatus::Failed, None, 0));
    assert!(ends[0].error.as_deref().unwrap().contains("so far"), "{ends:?}");
    assert_eq!(caps_of(&world.facts()), [cap(CapAxis::Safety, CapAction::Stop, 1, 0)]);
}

// Chain facts (f) line 104.
#[tokio::test]
async fn line_104_a_cut_answer_is_an_answer_with_the_reason() {
    let world = Setup::new(Script::new().lead("go", [ended(saying("half of"), "length")])).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    check_lead(&world, RunStopReason::ModelLengthCapped, "half of");
    assert_eq!(fired(&world.facts()), [(GuardTag::ModelLength, GuardAction::Named)]);
}

// Chain facts (f) line 105. The empty reply is not in the next request, so the script says it again.
#[tokio::test]
async fn line_105_two_empty_answers_are_none() {
    let world = Setup::new(Script::new().lead("go", [ls("."), saying("")])).build().await;
    assert_eq!(world.run("go").await, RunStatus::Error);
    let facts = world.facts();
    let asked_again = (GuardTag::TerminalResponse, GuardAction::AskedAgain);
    assert_eq!(fired(&facts), [asked_again, (GuardTag::TerminalResponse, GuardAction::GaveUp)]);
    assert_eq!((world.script.calls(), world.count("llm.ai.response")), (3, 3));
    let requests = world.script.requests();
    assert!(requests[2].messages[0].content().contains("[ANSWER MISSING]"));
    assert!(replies(&facts)[2].is_error_fallback());
    assert!(world.last_status().error.unwrap_or_default().contains("gave no answer"));
    // Without a tool there is nothing to answer from, and nobody asks again.
    let world = Setup::new(Script::new().lead("go", [saying("")])).build().await;
    assert_eq!(world.run("go").await, RunStatus::Error);
    assert_eq!((world.script.calls(), fired(&world.facts())), (1, Vec::new()));
}

/// Three calls in turn, each turn dearer than the one before it, as a history that grows is.
fn three_way(at: usize) -> AssistantMessage {
    let turn = at as u64 + 1;
    ls(["a", "b", "c"][at % 3]).using(350 * turn, 350)
}

/// Work that would take 4 million tokens until its turns are used up is over below 50,000.
#[tokio::test]
async fn a_three_way_loop_is_stopped_before_it_costs_much() {
    let all: Vec<_> = (0..150).map(three_way).collect();
    let tokens = |replies: &[AssistantMessage]| -> u64 {
        replies.iter().filter_map(|reply| reply.usage).map(|usage| usage.total_tokens).sum()
    };
    assert!(tokens(&all) > 4_000_000, "{}", tokens(&all));
    let script = Script::new().lead("go", [delegating(&[("1", "busy")]), saying("done")]).sub("busy", all);
    let world = Setup::new(script).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    check_ended(&world, StopReason::LoopCapped, "repeated tool-call loop", 13);
    assert!(tokens(&replies(&world.facts())) < 50_000, "{}", tokens(&replies(&world.facts())));
    assert!(world.ends()[0].result.as_deref().unwrap().starts_with("so far"));
    assert_eq!(world.ends()[0].receipts, 12, "what was done is kept");
}

// Chain facts (f) lines 55 and 56.
#[tokio::test]
async fn a_subagent_that_used_up_its_tokens_is_stopped() {
    let turn = |at: usize| AssistantMessage {
        content: format!("note {at}"),
        ..ls(&format!("folder-{at}")).using(200, 100)
    };
    let setup =
        Setup::new(never_done(turn)).config(|config| config.subagents.token_budget = Some(budget(1_000)));
    let world = setup.build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    check_ended(&world, StopReason::TokenCapped, "token budget", 4);
    let result = world.ends()[0].result.clone().unwrap();
    assert!(result.starts_with("note 3\n\n[TOKEN BUDGET EXCEEDED]"), "{result}");
    assert!(result.contains("1,200 of 1,000 tokens"), "{result}");
    assert_eq!(
        caps_of(&world.facts()),
        [
            cap(CapAxis::Tokens, CapAction::Warn, 900, 1_000),
            cap(CapAxis::Tokens, CapAction::Stop, 1_200, 1_000)
        ]
    );
    let warned: Vec<bool> = told(&world).iter().map(|text| text.contains("[TOKEN BUDGET WARNING]")).collect();
    assert_eq!(warned, [false, false, false, true]);
}

#[track_caller]
fn check_lead(world: &World, reason: RunStopReason, last_words: &str) {
    let ended = world.facts().into_iter().find_map(|fact| match fact.event {
        Event::Run(RunEvent::Ended(ended)) => Some(ended),
        _ => None,
    });
    let result = ended.unwrap().result;
    assert!(result.contains(last_words), "{result}");
    assert_eq!(world.last_status().stop_reason, Some(reason));
}

#[tokio::test]
async fn a_lead_that_repeats_itself_is_stopped() {
    let world = Setup::new(Script::new().lead("go", vec![ls("."); FOREVER])).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    check_lead(&world, RunStopReason::LoopCapped, "[FORCED STOP]");
    assert_eq!((world.script.calls(), world.count("run.cap")), (5, 2));
}

// Chain facts §1.5: what its delegations used is part of a lead's budget.
#[tokio::test]
async fn a_leads_budget_includes_its_subagents() {
    let script = Script::new()
        .lead(
            "go",
            [delegating(&[("1", "task")]).using(100, 0), ls(".").using(100, 100), saying("never said")],
        )
        .sub("task", [saying("found").using(500, 200)]);
    let world = Setup::new(script).config(|config| config.token_budget = Some(budget(1_000))).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    check_lead(&world, RunStopReason::TokenCapped, "[TOKEN BUDGET EXCEEDED]");
    assert_eq!(caps_of(&world.facts()), [cap(CapAxis::Tokens, CapAction::Stop, 1_000, 1_000)]);
}

// Chain facts (f) line 54: a run does not pay for the ones before it.
#[tokio::test]
async fn each_run_has_its_own_budget_and_its_own_repeats() {
    let turns = || [ls(".").using(200, 0), ls(".").using(200, 0), saying("done").using(300, 0)];
    let script = Script::new().lead("one", turns()).lead("two", turns()).lead("three", turns());
    let world = Setup::new(script).config(|config| config.token_budget = Some(budget(1_000))).build().await;
    for asked in ["one", "two", "three"] {
        assert_eq!(world.run(asked).await, RunStatus::Success);
    }
    assert_eq!((caps_of(&world.facts()), world.last_status().stop_reason), (Vec::new(), None));
}

#[tokio::test]
async fn a_guard_that_is_off_stops_nothing() {
    let turns = [vec![ls(".").using(900, 900); FOREVER - 1], vec![saying("done")]].concat();
    let off = |config: &mut Config| {
        config.loop_detection.enabled = false;
        config.token_budget = Some(TokenBudgetSettings { enabled: Some(false), ..budget(1_000) });
    };
    let world = Setup::new(Script::new().lead("go", turns)).config(off).build().await;
    assert_eq!(world.run("go").await, RunStatus::Success);
    assert_eq!((world.script.calls(), world.count("run.cap")), (FOREVER, 0));
}

fn replies(facts: &[Logged]) -> Vec<AssistantMessage> {
    let reply = |fact: &Logged| match &fact.event {
        Event::Model(ModelEvent::AiResponse(message)) => message.as_assistant().cloned(),
        Event::Subagent(SubagentEvent::Message(captured)) => captured.message.as_assistant().cloned(),
        _ => None,
    };
    facts.iter().filter_map(reply).collect()
}

/// Cuts the log at every commit and goes on with every guard switched off: what was frozen counts.
async fn check_resumed(script: fn() -> Script, change: fn(&mut Config)) {
    let store: Arc<dyn LogStore> = Arc::new(SegmentStore::in_memory());
    let whole = EventLog::with_store(store.clone(), Options::default()).unwrap();
    let world = Setup::new(script()).config(change).log(whole.clone()).build().await;
    let run = world.start("go").await;
    let ending = world.wait(&run).await;
    let expected = world.facts();
    let is_started = |facts: &[Logged]| facts.iter().any(|fact| fact.event.event_type() == "run.start");
    let is_ended = |facts: &[Logged]| {
        facts.iter().any(|fact| ["run.end", "run.error"].contains(&fact.event.event_type()))
    };
    let mut resumed = 0;
    for end in 1..expected.len() {
        if store.commit_at(Position::new(end as u64)).unwrap().is_none() {
            continue;
        }
        let log = copy(end, &whole, Arc::new(SegmentStore::in_memory())).await;
        let before = facts_of(&log);
        if !is_started(&before) || is_ended(&before) {
            continue;
        }
        let data = tempfile::tempdir().unwrap();
        let setup = Setup::new(script()).log(log.clone()).config(|config| {
            config.loop_detection.enabled = false;
        });
        let runtime = setup.runtime(&data);
        for (thread, run) in runtime.recover(Recovery::Resume).await.unwrap() {
            let patience = std::time::Duration::from_secs(30);
            let status = tokio::time::timeout(patience, runtime.wait(&thread, &run)).await.unwrap().unwrap();
            assert_eq!(status, ending);
            resumed += 1;
        }
        let after = facts_of(&log);
        check_ended_once(&after);
        assert_eq!(caps_of(&after), caps_of(&expected), "cut after {end}");
        assert_eq!(replies(&after), replies(&expected), "cut after {end}");
        assert_eq!(fired(&after), fired(&expected), "cut after {end}");
    }
    assert!(resumed > 3, "{resumed}");
}

#[tokio::test]
async fn a_resumed_run_stops_where_an_uninterrupted_one_does() {
    let busy = || never_done(|_| ls(".").using(10, 0));
    check_resumed(busy, |_| {}).await;
    let costly = || never_done(|at| ls(&format!("folder-{at}")).using(300, 0));
    check_resumed(costly, |config| config.subagents.token_budget = Some(budget(1_000))).await;
    check_resumed(|| never_done(three_way), |_| {}).await;
    check_resumed(|| Script::new().lead("go", [ls("."), saying("")]), |_| {}).await;
    let lead = || Script::new().lead("go", (0..FOREVER).map(|_| ls(".").using(10, 0)).collect::<Vec<_>>());
    check_resumed(lead, |_| {}).await;
}
