//! Usage against a plain list of model calls.

use std::collections::BTreeMap;

use domain::{
    event::{CompactionOutcome, DelegationEvent, Event, Logged, ModelEvent, RunEvent, SubagentEvent},
    ids::ThreadId,
    message::AssistantMessage,
    pricing::{Price, Prices, Rate},
    usage::Usage,
};
use eventlog::Seq;
use proptest::prelude::*;

use super::{
    history::{World, all_threads, ops, thread_id},
    open, store,
};
use crate::{Projections, UsageAxis, UsageQuery, usage_as_of};

/// One model call.
#[derive(Debug, Clone)]
struct Call {
    thread: String,
    run: String,
    model: String,
    caller: String,
    usage: Option<Usage>,
}

pub(super) fn prices() -> Prices {
    let price = |input, output| Price {
        input: Rate::per_million(input).unwrap(),
        output: Rate::per_million(output).unwrap(),
        cached_input: None,
    };
    let by_model = [("model-0", price(1.5, 0.25)), ("offline", price(3.0, 0.0))];
    let by_model = by_model.into_iter().map(|(name, price)| (name.to_owned(), price)).collect();
    Prices { currency: "USD".into(), by_model }
}

/// The model of the lead of the run that a fact is of, as it was first started before.
fn lead_model(facts: &[Logged], fact: &Logged) -> Option<String> {
    let before = facts.iter().filter(|one| one.position < fact.position);
    before.filter(|one| one.scope.run_id == fact.scope.run_id).find_map(|one| {
        let Event::Run(RunEvent::Started(settings)) = &one.event else { return None };
        let is_own = one.scope.run_id.as_ref() == Some(&settings.run_id);
        is_own.then(|| settings.model_name.clone())
    })
}

/// The type and model that a delegation was asked for with. What others recorded was asked for by nobody.
fn asked_for(facts: &[Logged], fact: &Logged) -> (String, String) {
    if fact.scope.delegation_id.is_none() {
        return ("unknown".to_owned(), "unknown".to_owned());
    }
    let of_delegation = facts.iter().filter(|one| one.scope.delegation_id == fact.scope.delegation_id);
    let request = of_delegation.filter_map(|one| {
        let Event::Delegation(DelegationEvent::Requested(request)) = &one.event else { return None };
        Some((request.subagent_type.as_str().to_owned(), request.model_name.clone()))
    });
    request.into_iter().next().expect("who works was asked to")
}

fn calls_of(facts: &[Logged], fact: &Logged) -> Vec<Call> {
    let (compaction, caller) = match &fact.event {
        Event::Run(RunEvent::Compacted(compaction)) => (compaction, "middleware:summarize".to_owned()),
        Event::Subagent(SubagentEvent::Compacted(compacted)) => {
            (&compacted.compaction, format!("subagent:{}", asked_for(facts, fact).0))
        }
        _ => return reply_of(facts, fact).into_iter().collect(),
    };
    let useless = compaction.failures.iter().filter(|failure| failure.usage.is_some());
    let mut calls: Vec<_> =
        useless.map(|failure| call(fact, &failure.model_name, &caller, failure.usage)).collect();
    if let CompactionOutcome::Compacted(compacted) = &compaction.outcome {
        calls.push(call(fact, &compacted.model_name, &caller, compacted.usage));
    }
    calls
}

fn call(fact: &Logged, model: &str, caller: &str, usage: Option<Usage>) -> Call {
    Call {
        thread: fact.thread_id.to_string(),
        run: fact.scope.run_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        model: model.to_owned(),
        caller: caller.to_owned(),
        usage,
    }
}

fn reply_of(facts: &[Logged], fact: &Logged) -> Option<Call> {
    let (reply, caller, model): (&AssistantMessage, String, Option<String>) =
        if let Event::Model(ModelEvent::AiResponse(message)) = &fact.event {
            let caller = fact.caller().unwrap_or("lead_agent").to_owned();
            let model = (caller == "lead_agent").then(|| lead_model(facts, fact)).flatten();
            (message.as_assistant()?, caller, model)
        } else if let Event::Subagent(SubagentEvent::Message(captured)) = &fact.event {
            let reply = captured.message.as_assistant()?;
            let (subagent_type, model) = asked_for(facts, fact);
            (reply, format!("subagent:{subagent_type}"), Some(model))
        } else {
            return None;
        };
    Some(call(fact, model.as_deref().unwrap_or("unknown"), &caller, reply.usage))
}

fn calls(world: &World, thread: &ThreadId, last: Seq) -> Vec<Call> {
    let mut facts = world.facts(world.log.head());
    facts.retain(|fact| fact.thread_id == *thread && Seq::new(fact.seq) <= last);
    facts.iter().flat_map(|fact| calls_of(&facts, fact)).collect()
}

type Sums = BTreeMap<Vec<String>, (u64, u64, Option<Usage>)>;

fn sums_by_hand(calls: &[Call], key: impl Fn(&Call) -> Vec<String>) -> Sums {
    let mut sums = Sums::new();
    for call in calls {
        let (count, unknown, usage) = sums.entry(key(call)).or_default();
        *count += 1;
        *unknown += u64::from(call.usage.is_none());
        Usage::add_to(usage, call.usage);
    }
    sums
}

fn sums_of(report: &crate::UsageReport) -> Sums {
    let figures = |group: &crate::UsageGroup| {
        let figures = group.figures;
        (group.values.clone(), (figures.calls, figures.calls_without_usage, figures.usage))
    };
    report.groups.iter().map(figures).collect()
}

fn by(axes: &[UsageAxis]) -> UsageQuery {
    UsageQuery { group_by: axes.to_vec(), ..UsageQuery::default() }
}

/// The sums of all calls of all threads, and what they cost.
pub(super) fn check(views: &Projections, world: &World) {
    use UsageAxis::{Caller, Model, Run, Thread};
    let all: Vec<_> = all_threads().flat_map(|thread| calls(world, &thread, Seq::new(u64::MAX))).collect();
    let sums = |axes: &[UsageAxis]| sums_of(&views.usage(&by(axes), &prices()).unwrap());
    assert_eq!(sums(&[Model]), sums_by_hand(&all, |call| vec![call.model.clone()]));
    assert_eq!(sums(&[Caller]), sums_by_hand(&all, |call| vec![call.caller.clone()]));
    assert_eq!(
        sums(&[Thread, Run, Model, Caller]),
        sums_by_hand(&all, |c| vec![c.thread.clone(), c.run.clone(), c.model.clone(), c.caller.clone()])
    );
    let report = views.usage(&by(&[Model, Caller]), &prices()).unwrap();
    let total = sums_by_hand(&all, |_| Vec::new()).into_values().next().unwrap_or_default();
    let known = (report.total.calls, report.total.calls_without_usage, report.total.usage);
    assert_eq!(known, total);
    let costs = report.groups.iter().filter_map(|group| group.figures.cost);
    assert_eq!(report.total.cost.unwrap_or_default(), costs.sum());
    let by_hand = all.iter().filter_map(|call| prices().of(&call.model, &call.usage?));
    assert_eq!(report.total.cost.unwrap_or_default(), by_hand.sum());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    // Field report 88: the sums by model and by caller are the calls.
    #[test]
    fn sums_are_the_calls(ops in ops(90)) {
        let world = World::of(&ops);
        let views = open(&store(), &world.log);
        while views.position() < world.log.head() {
            views.step(4).unwrap();
        }
        check(&views, &world);
    }

    #[test]
    fn usage_agrees_with_runs_and_with_every_moment(ops in ops(60)) {
        let world = World::of(&ops);
        let views = Projections::in_memory(world.log.clone()).unwrap();
        views.catch_up().unwrap();
        for thread in all_threads() {
            let thread_id = Some(thread.clone());
            for run in views.runs(&thread, None, 100).unwrap() {
                let query = UsageQuery { thread_id: thread_id.clone(), run_id: Some(run.run_id), ..by(&[]) };
                let of = |caller: Option<&str>| {
                    let query = UsageQuery { caller: caller.map(str::to_owned), ..query.clone() };
                    views.usage(&query, &prices()).unwrap().total.usage
                };
                prop_assert_eq!(of(None), run.usage.total);
                prop_assert_eq!(of(Some("subagent")), run.usage.subagents);
                prop_assert_eq!(of(Some("lead_agent")), run.usage.lead);
            }
            let last = world.log.stream_tail(&thread.clone().into()).unwrap().unwrap_or(Seq::ZERO);
            for seq in (0..=last.get()).map(Seq::new) {
                let query = by(&[UsageAxis::Run, UsageAxis::Model, UsageAxis::Caller]);
                let then = usage_as_of(&views, &thread, seq, &query, &prices()).unwrap();
                let by_hand = sums_by_hand(&calls(&world, &thread, seq), |call| {
                    vec![call.run.clone(), call.model.clone(), call.caller.clone()]
                });
                prop_assert_eq!(sums_of(&then), by_hand);
            }
        }
    }
}

#[test]
fn a_day_is_a_day_of_universal_time() {
    let world = World::of(&[super::history::Op { kind: 1, pick: 0, variant: 1 }]);
    let views = open(&store(), &world.log);
    views.catch_up().unwrap();
    let report = views.usage(&by(&[UsageAxis::Day]), &prices()).unwrap();
    assert_eq!((report.groups.len(), report.total.calls), (0, 0), "nobody has replied yet");
    let world = World::of(&[
        super::history::Op { kind: 1, pick: 0, variant: 1 },
        super::history::Op { kind: 3, pick: 0, variant: 1 },
        super::history::Op { kind: 4, pick: 0, variant: 3 },
        super::history::Op { kind: 4, pick: 0, variant: 4 },
    ]);
    let views = open(&store(), &world.log);
    views.catch_up().unwrap();
    let report = |from: &str, to: &str| {
        let (from, to) = (from.parse().ok(), to.parse().ok());
        views.usage(&UsageQuery { from, to, ..by(&[UsageAxis::Day]) }, &prices()).unwrap()
    };
    let all = report("", "");
    assert_eq!(all.groups[0].values, ["1970-01-01"]);
    // Field report 87: one of the two reported nothing.
    assert_eq!((all.total.calls, all.total.calls_without_usage), (2, 1));
    assert!(all.total.is_usage_at_least() && all.total.is_cost_at_least());
    assert_eq!(report("1970-01-01", "1970-01-01"), all);
    assert_eq!(report("1970-01-02", "").groups, []);
    assert_eq!(report("", "1969-12-31").groups, []);
}

#[test]
fn what_has_no_price_costs_at_least_what_the_rest_does() {
    let mut world = World::new();
    for (kind, variant) in [(1, 1), (3, 0), (4, 4), (6, 1), (9, 0), (11, 4)] {
        world.happen(super::history::Op { kind, pick: 0, variant });
    }
    let views = open(&store(), &world.log);
    views.catch_up().unwrap();
    let report = views.usage(&by(&[UsageAxis::Model]), &prices()).unwrap();
    let names: Vec<_> = report.groups.iter().map(|group| group.values[0].as_str()).collect();
    assert_eq!(names, ["model-1", "offline"]);
    assert_eq!(report.groups[0].figures.cost, None, "nobody knows");
    assert!(!report.groups[1].figures.is_cost_at_least());
    assert_eq!(report.total.cost, report.groups[1].figures.cost);
    assert!(report.total.is_cost_at_least() && !report.total.is_usage_at_least());
    let free = views.usage(&by(&[]), &Prices::default()).unwrap().total;
    assert_eq!((free.cost, free.is_cost_at_least()), (None, true));
    world.erase(&thread_id(0));
    assert_eq!(views.usage(&by(&[]), &prices()).unwrap().total, crate::UsageFigures::default());
}
