//! Histories that are compacted while agents work (field reports 51, 52, 53 and 56).

use std::sync::Arc;

use domain::{
    event::{Compaction, Event, Logged, ModelEvent, RunEvent, RunStatus, SubagentEvent},
    message::{AssistantMessage, Message},
    recheck::Recheck,
    usage::Usage,
};
use eventlog::{
    EventLog, Options, Position,
    store::{LogStore, SegmentStore},
};
use jiff::Timestamp;

use super::start::copy;
use crate::{
    Clock,
    config::{Config, Extent, Recovery, Summarization},
    models::{AgentTag, ModelRequest, Models},
    testing::{
        Script, Setup, World,
        diligent::{Diligent, Summaries},
        facts_of,
        world::{check_ended_once, ledger_of},
    },
};

const TURNS: usize = 12;

/// A clock that stands still.
struct Standing(&'static str);

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        self.0.parse().unwrap()
    }
}

fn compacting(config: &mut Config) {
    config.summarization = Summarization {
        enabled: true,
        trigger: vec![Extent::Messages(8)],
        keep: Extent::Messages(3),
        ..Summarization::default()
    };
}

fn setup(model: &Diligent) -> Setup {
    Setup::new(Script::new()).models(Models::of(model.clone())).config(compacting)
}

fn lead(tag: &AgentTag) -> bool {
    *tag == AgentTag::Lead
}

fn subagent(tag: &AgentTag) -> bool {
    matches!(tag, AgentTag::Subagent(_))
}

fn summary(tag: &AgentTag) -> bool {
    *tag == AgentTag::Summary
}

fn compactions(facts: &[Logged]) -> Vec<Compaction> {
    let compaction = |fact: &Logged| match &fact.event {
        Event::Run(RunEvent::Compacted(compaction)) => Some(compaction.clone()),
        Event::Subagent(SubagentEvent::Compacted(compacted)) => Some(compacted.compaction.clone()),
        _ => None,
    };
    facts.iter().filter_map(compaction).collect()
}

fn replies(facts: &[Logged]) -> Vec<AssistantMessage> {
    let reply = |fact: &Logged| match &fact.event {
        Event::Model(ModelEvent::AiResponse(message)) => message.as_assistant().cloned(),
        Event::Subagent(SubagentEvent::Message(captured)) => captured.message.as_assistant().cloned(),
        _ => None,
    };
    facts.iter().filter_map(reply).collect()
}

/// One system message and it first, a person's words next, each call answered right behind it, and
/// the task in it; what strict providers ask for.
#[track_caller]
fn check_strict(request: &ModelRequest, task: &str) {
    let messages = &request.messages;
    let is_system = |message: &&Message| matches!(message, Message::System(_));
    assert_eq!(messages.iter().filter(is_system).count(), 1);
    assert!(matches!(messages.as_slice(), [Message::System(_), Message::Human(_), ..]), "{messages:#?}");
    assert!(
        messages
            .iter()
            .any(|message| matches!(message, Message::Human(human) if human.content.contains(task)))
    );
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message {
            Message::Tool(result) => {
                let at = open.iter().position(|id| *id == result.tool_call_id);
                open.remove(at.expect("a call stands before its result"));
            }
            Message::System(_) | Message::Human(_) | Message::Assistant(_) => {
                assert!(open.is_empty(), "{open:?} were not answered");
                open = message.as_assistant().map_or_else(Vec::new, |reply| {
                    reply.tool_calls.iter().map(|call| call.id.clone()).collect()
                });
            }
        }
    }
    assert!(open.is_empty(), "{open:?} were not answered");
}

/// The recorded outcomes are the effects that the agents ask for.
#[track_caller]
fn check_replays(facts: &[Logged]) {
    let mut recheck = Recheck::default();
    for fact in facts {
        recheck.take(fact).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

// Field reports 51 and 53.
#[tokio::test]
async fn a_leads_history_is_compacted_and_its_log_is_whole() {
    let model = Diligent::named("own", TURNS);
    let world = setup(&model).build().await;
    assert_eq!(world.run("the task").await, RunStatus::Success);
    let facts = world.facts();
    let compactions = compactions(&facts);
    assert!(compactions.len() >= 3, "{}", compactions.len());
    for compaction in &compactions {
        let done = compaction.compacted().unwrap();
        assert!(done.messages_after < compaction.messages_before && done.tokens_after > 0);
        assert_eq!((done.model_name.as_str(), compaction.trigger.limit), ("own", 8));
    }
    // Everything that was said is there, in its order, and none of it twice.
    let calls: Vec<String> =
        replies(&facts).iter().flat_map(|reply| reply.tool_calls.clone()).map(|call| call.id).collect();
    assert_eq!(calls, (1..=TURNS).map(|number| format!("c{number}")).collect::<Vec<_>>());
    assert_eq!(world.results().len(), TURNS);
    assert_eq!(model.asked(summary).len(), compactions.len());
    for request in model.asked(lead) {
        check_strict(&request, "the task");
        assert!(request.messages.len() <= 3 + 8);
    }
    let last = model.asked(lead).pop().unwrap();
    let data = last.messages[1].content();
    assert!(data.starts_with("<durable_context_data>\n") && data.contains("own summed up"), "{data}");
    assert_eq!(data.matches("</durable_context_data>").count(), 1, "a summary cannot close its block");
    assert!(!data.contains("<system>"));
    // What is summed up is material: the instructions hold none of it.
    for request in model.asked(summary) {
        let [Message::System(system), Message::Human(data)] = request.messages.as_slice() else { panic!() };
        assert!(!system.content.contains("the task") && data.content.contains("<new_messages>"));
        assert!(request.tools.is_empty());
    }
    check_replays(&facts);
}

// Field report 52, and chain facts §2.9: subagents and the lead alike, each on its own.
#[tokio::test]
async fn a_subagents_steps_go_on_counting_across_compactions() {
    let model = Diligent::named("own", TURNS).delegating_at(2);
    let world = setup(&model).build().await;
    assert_eq!(world.run("the task").await, RunStatus::Success);
    let facts = world.facts();
    let ends = world.ends();
    assert_eq!(ends.len(), 2);
    for scope in ["c2", "c1002"].map(|task_id| world.scope_of(task_id)) {
        let own: Vec<&Event> =
            facts.iter().filter(|fact| fact.scope == scope).map(|fact| &fact.event).collect();
        let steps: Vec<u32> = own
            .iter()
            .filter_map(|event| match event {
                Event::Subagent(SubagentEvent::Step(step)) => Some(step.message_index),
                _ => None,
            })
            .collect();
        assert_eq!(steps, (1..=steps.len() as u32).collect::<Vec<_>>());
        assert_eq!(steps.len(), 2 * TURNS + 1);
        let compacted = own.iter().filter(|event| event.event_type() == "subagent.compaction").count();
        assert!(compacted >= 3, "{compacted}");
    }
    for request in model.asked(subagent) {
        check_strict(&request, "part");
        let system = request.messages[0].content();
        assert!(system.contains("You are a subagent.") && system.contains("<report_contract>"), "{system}");
    }
    // No child writes into its parent's memory, and the lead is told of both once it is compacted.
    let last = model.asked(lead).pop().unwrap();
    check_strict(&last, "the task");
    let data = last.messages[1].content();
    assert_eq!(data.matches("- [completed] do").count(), 2, "{data}");
    assert!(!data.contains("first part\n"), "{data}");
    check_replays(&facts);
}

#[track_caller]
fn total(facts: &[Logged]) -> Usage {
    let ended = facts.iter().find_map(|fact| match &fact.event {
        Event::Run(RunEvent::Ended(ended)) => Some(ended.usage),
        _ => None,
    });
    ended.flatten().unwrap()
}

// A summary is paid for: it is in the totals of its run and of its delegation, and no turn.
#[tokio::test]
async fn what_summaries_cost_is_counted() {
    let model = Diligent::named("own", TURNS).delegating_at(2);
    let world = setup(&model).build().await;
    assert_eq!(world.run("the task").await, RunStatus::Success);
    let facts = world.facts();
    let mut expected = None;
    replies(&facts).iter().for_each(|reply| Usage::add_to(&mut expected, reply.usage));
    compactions(&facts).iter().for_each(|one| Usage::add_to(&mut expected, one.usage()));
    assert_eq!(Some(total(&facts)), expected);
    for end in world.ends() {
        let usage = end.usage.unwrap();
        assert!(usage.input_tokens >= 100 * u64::from(end.turns) + 3 * 1_000, "{usage:?}");
        assert_eq!(end.turns as usize, TURNS + 1);
    }
    let ledger = ledger_of(&facts);
    assert_eq!(
        ledger.iter().map(|entry| entry.usage).collect::<Vec<_>>(),
        world.ends().iter().map(|end| end.usage).collect::<Vec<_>>()
    );
}

// Chain facts §2.9: the configured model, then the agent's own.
#[tokio::test]
async fn the_next_model_is_asked_when_one_gives_no_summary() {
    for (summaries, reason) in [(Summaries::Failing, "transient"), (Summaries::Blank, "blank")] {
        let small = Diligent::named("small", 0).summing_up(summaries);
        let model = Diligent::named("own", TURNS);
        let models = Models::of(model.clone()).with(small.clone());
        let setup = setup(&model).models(models).config(|config| {
            config.summarization.model_name = Some("small".into());
        });
        let world = setup.build().await;
        assert_eq!(world.run("the task").await, RunStatus::Success);
        let compactions = compactions(&world.facts());
        for compaction in &compactions {
            let [failure] = compaction.failures.as_slice() else { panic!("{compaction:?}") };
            assert_eq!((failure.model_name.as_str(), failure.reason.as_str()), ("small", reason));
            assert_eq!(compaction.compacted().unwrap().model_name, "own");
        }
        assert_eq!(small.asked(summary).len(), compactions.len(), "each model is asked once");
    }
}

// Chain facts (f) line 119.
#[tokio::test]
async fn line_119_without_any_summary_the_history_is_as_it_was_and_the_run_goes_on() {
    let model = Diligent::named("own", TURNS).summing_up(Summaries::Failing);
    let setup = setup(&model).config(|config| config.summarization.model_name = Some("gone".into()));
    let world = setup.build().await;
    assert_eq!(world.run("the task").await, RunStatus::Success);
    let compactions = compactions(&world.facts());
    assert!(!compactions.is_empty());
    for compaction in &compactions {
        let reasons: Vec<&str> = compaction.failures.iter().map(|failure| failure.reason.as_str()).collect();
        assert_eq!((compaction.compacted(), reasons), (None, vec!["unknown_model", "transient"]));
    }
    let last = model.asked(lead).pop().unwrap();
    assert_eq!(last.messages.len(), 2 + 2 * TURNS, "all of it is shown, and nothing else");
    assert_eq!(world.count("llm.error"), 0, "the agent's own calls are another matter");
    check_replays(&world.facts());
}

// Tokens and shares of the context start it as well.
#[tokio::test]
async fn tokens_and_shares_of_the_context_are_limits_too() {
    for (trigger, keep) in
        [(Extent::Tokens(150), Extent::Tokens(60)), (Extent::Fraction(0.1), Extent::Fraction(0.03))]
    {
        let model = Diligent::named("own", TURNS);
        let setup = setup(&model).config(|config| {
            config.summarization.trigger = vec![trigger];
            config.summarization.keep = keep;
        });
        let world = setup.build().await;
        assert_eq!(world.run("the task").await, RunStatus::Success);
        let facts = world.facts();
        assert!(compactions(&facts).len() >= 2, "{trigger:?}");
        model.asked(lead).iter().for_each(|request| check_strict(request, "the task"));
        check_replays(&facts);
    }
}

// The next run on the thread goes on from the summary, and is told its own day alone.
#[tokio::test]
async fn line_116_the_next_run_goes_on_from_the_summary_and_knows_its_own_day() {
    let model = Diligent::named("own", TURNS);
    let store: Arc<dyn LogStore> = Arc::new(SegmentStore::in_memory());
    let log = EventLog::with_store(store, Options::default()).unwrap();
    let day = |noon| setup(&model).log(log.clone()).clock(Standing(noon));
    let world = day("2026-09-01T12:00:00Z").build().await;
    assert_eq!(world.run("the first task").await, RunStatus::Success);
    let first = model.asked(lead).len();
    let later = day("2026-09-02T12:00:00Z").runtime(&world.data);
    let world = World { runtime: later, ..world };
    assert_eq!(world.run("the second task").await, RunStatus::Success);
    let requests = model.asked(lead).split_off(first);
    for request in &requests {
        check_strict(request, "the second task");
        let system = request.messages[0].content();
        assert_eq!(system.matches("<current_date>").count(), 1);
        assert!(system.contains("<current_date>2026-09-02, Wednesday</current_date>"), "{system}");
    }
    assert!(requests[0].messages[1].content().contains("own summed up"));
    check_replays(&world.facts());
}

/// Cuts the log at every commit and goes on, on another day and with compaction switched off: what
/// was frozen counts. Each resumed run is the uninterrupted one, and asks for a summary only where
/// none is recorded.
#[tokio::test]
async fn a_crash_anywhere_resumes_the_same_and_asks_for_no_summary_twice() {
    let store: Arc<dyn LogStore> = Arc::new(SegmentStore::in_memory());
    let whole = EventLog::with_store(store.clone(), Options::default()).unwrap();
    let model = || Diligent::named("own", 9).delegating_at(3);
    let begun = setup(&model()).log(whole.clone()).clock(Standing("2026-09-01T12:00:00Z"));
    let world = begun.build().await;
    let run = world.start("the task").await;
    assert_eq!(world.wait(&run).await, RunStatus::Success);
    let expected = world.facts();
    let mut resumed = 0;
    for end in 1..expected.len() {
        if store.commit_at(Position::new(end as u64)).unwrap().is_none() {
            continue;
        }
        let log = copy(end, &whole, Arc::new(SegmentStore::in_memory())).await;
        let before = facts_of(&log);
        let data = tempfile::tempdir().unwrap();
        let model = model();
        let setup = Setup::new(Script::new()).models(Models::of(model.clone())).log(log.clone());
        let runtime = setup.clock(Standing("2027-01-01T12:00:00Z")).runtime(&data);
        for (thread, run) in runtime.recover(Recovery::Resume).await.unwrap() {
            let patience = std::time::Duration::from_secs(30);
            let status = tokio::time::timeout(patience, runtime.wait(&thread, &run)).await.unwrap().unwrap();
            assert_eq!(status, RunStatus::Success, "cut after {end}");
            resumed += 1;
        }
        let after = facts_of(&log);
        if after.len() == before.len() {
            continue;
        }
        check_ended_once(&after);
        let of_lead = |facts: &[Logged]| {
            let own: Vec<Logged> =
                facts.iter().filter(|fact| fact.scope.delegation_id.is_none()).cloned().collect();
            (compactions(&own), replies(&own))
        };
        assert_eq!(of_lead(&after), of_lead(&expected), "cut after {end}");
        // Two subagents work side by side, so theirs are the same in another order.
        let sorted = |facts: &[Logged]| {
            let mut all: Vec<String> = compactions(facts).iter().map(|one| format!("{one:?}")).collect();
            all.sort();
            all
        };
        assert_eq!(sorted(&after), sorted(&expected), "cut after {end}");
        let asked = model.asked(summary).len();
        assert_eq!(asked, compactions(&after).len() - compactions(&before).len(), "cut after {end}");
        check_replays(&after);
        // The day is the one on which each agent began.
        for request in model.asked(lead) {
            assert!(request.messages[0].content().contains("2026-09-01"), "cut after {end}");
        }
    }
    assert!(resumed > 30, "{resumed}");
}

#[tokio::test]
async fn without_the_section_nothing_is_compacted() {
    for change in
        [(|config: &mut Config| config.summarization.enabled = false) as fn(&mut Config), |config| {
            config.summarization.trigger.clear()
        }]
    {
        let model = Diligent::named("own", TURNS);
        let world = setup(&model).config(change).build().await;
        assert_eq!(world.run("the task").await, RunStatus::Success);
        assert!(compactions(&world.facts()).is_empty() && model.asked(summary).is_empty());
    }
}
