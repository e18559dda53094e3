//! The same answers in the slow and obvious way: each from a plain list of events, written from what
//! the facts say and without the folds of the views.

mod delegations;

use domain::{
    card::Card,
    event::{
        Compaction, CompactionOutcome, DelegationEvent, Event, Logged, ModelEvent, RunEvent, RunSettings,
        RunStatus, RunStatusChanged, SubagentEvent, ThreadEvent,
    },
    ids::{DelegationId, RunId, ThreadId},
    ledger::LedgerEntry,
    message::Message,
    usage::Usage,
};
use eventlog::Seq;

use self::delegations::{card, ledger};
use super::history::{World, all_tasks};
use crate::{Projections, RunRow, RunUsage, SettingsSummary, TaskRef, ThreadRow, as_of};

/// Everything that can be asked about one thread.
#[derive(Debug, PartialEq)]
pub(super) struct Answers {
    thread: Option<ThreadRow>,
    runs: Vec<RunRow>,
    ledger: Vec<LedgerEntry>,
    of_runs: Vec<(Option<RunRow>, Vec<LedgerEntry>)>,
    cards: Vec<Option<Card>>,
}

/// Every task that can be asked for: all names, all delegations, and one that is nowhere.
fn tasks(world: &World, run_id: &RunId) -> Vec<TaskRef> {
    let nowhere = DelegationId::from_uuid(uuid::Uuid::nil());
    let delegations = world.delegations(run_id).chain([nowhere]).map(TaskRef::DelegationId);
    all_tasks().map(TaskRef::TaskId).chain(delegations).collect()
}

/// Every run of every thread: those of other threads must not be found.
fn runs(world: &World) -> Vec<RunId> {
    world.runs().map(|(_, run_id)| run_id.clone()).collect()
}

pub(super) fn of_views(views: &Projections, world: &World, thread: &ThreadId) -> Answers {
    let mut of_runs = Vec::new();
    let mut cards = Vec::new();
    for run in runs(world) {
        of_runs.push((views.run(thread, &run).unwrap(), views.ledger(thread, Some(&run)).unwrap()));
        cards.extend(tasks(world, &run).iter().map(|task| views.card(thread, &run, task).unwrap()));
    }
    Answers {
        thread: views.thread(thread).unwrap(),
        runs: views.runs(thread, None, usize::MAX).unwrap(),
        ledger: views.ledger(thread, None).unwrap(),
        of_runs,
        cards,
    }
}

pub(super) fn of_views_then(views: &Projections, world: &World, thread: &ThreadId, seq: Seq) -> Answers {
    let mut of_runs = Vec::new();
    let mut cards = Vec::new();
    for run in runs(world) {
        let ledger = as_of::ledger_as_of(views, thread, Some(&run), seq).unwrap();
        of_runs.push((as_of::run_as_of(views, thread, &run, seq).unwrap(), ledger));
        for task in tasks(world, &run) {
            cards.push(as_of::card_as_of(views, thread, &run, &task, seq).unwrap());
        }
    }
    Answers {
        thread: as_of::thread_as_of(views, thread, seq).unwrap(),
        runs: as_of::runs_as_of(views, thread, seq, None, usize::MAX).unwrap(),
        ledger: as_of::ledger_as_of(views, thread, None, seq).unwrap(),
        of_runs,
        cards,
    }
}

pub(super) fn of_list(facts: &[Logged], world: &World, thread: &ThreadId) -> Answers {
    let facts: Vec<&Logged> = facts.iter().filter(|fact| fact.thread_id == *thread).collect();
    let mut of_runs = Vec::new();
    let mut cards = Vec::new();
    for run in runs(world) {
        of_runs.push((run_row(&facts, &run), ledger(&facts, Some(&run))));
        cards.extend(tasks(world, &run).iter().map(|task| card(&facts, &run, task)));
    }
    let mut all_runs: Vec<RunRow> = of_runs.iter().filter_map(|(row, _)| row.clone()).collect();
    all_runs.sort_by_key(|row| std::cmp::Reverse(row.first_seq));
    Answers { thread: thread_row(&facts), runs: all_runs, ledger: ledger(&facts, None), of_runs, cards }
}

pub(super) fn is_of_run(fact: &Logged, run: &RunId) -> bool {
    fact.scope.run_id.as_ref() == Some(run)
}

/// Whether the event starts another run than it is recorded for.
fn is_contradiction(fact: &Logged) -> bool {
    matches!(&fact.event, Event::Run(RunEvent::Started(settings)) if !is_of_run(fact, &settings.run_id))
}

fn is_of_others(fact: &Logged) -> bool {
    fact.labels.is_some() || matches!(fact.event, Event::Foreign(_))
}

fn thread_row(facts: &[&Logged]) -> Option<ThreadRow> {
    let (first, last) = (facts.first()?, facts.last()?);
    let mut row = ThreadRow {
        thread_id: first.thread_id.clone(),
        owner: first.owner.clone(),
        created_at: first.recorded_at,
        updated_at: last.recorded_at,
        metadata: serde_json::Map::new(),
        workspace: None,
        runs: 0,
        last_run_id: None,
        last_seq: last.seq,
    };
    let mut started = Vec::new();
    for fact in facts {
        if let Event::Thread(ThreadEvent::Created(created)) = &fact.event {
            if !is_of_others(fact) {
                row.workspace = created.workspace.clone();
            }
            if !is_of_others(fact) || row.metadata.is_empty() {
                row.metadata = created.metadata.clone();
            }
        }
        if matches!(fact.event, Event::Run(RunEvent::Started(_))) && !is_contradiction(fact) {
            let run_id = fact.scope.run_id.clone().unwrap();
            if !started.contains(&run_id) {
                started.push(run_id);
            }
        }
    }
    row.runs = started.len() as u64;
    row.last_run_id = started.pop();
    Some(row)
}

/// What was spent, as it is recorded, by who spent it: one report for each call.
fn reports(fact: &Logged) -> Vec<(String, Usage)> {
    let reply = |message: &Message| message.as_assistant().and_then(|reply| reply.usage);
    match &fact.event {
        Event::Model(ModelEvent::AiResponse(message)) => {
            let caller = fact.caller().unwrap_or("lead_agent").to_owned();
            reply(message).map(|usage| (caller, usage)).into_iter().collect()
        }
        Event::Subagent(SubagentEvent::Message(captured)) => {
            reply(&captured.message).map(|usage| ("subagent:".to_owned(), usage)).into_iter().collect()
        }
        Event::Subagent(SubagentEvent::Compacted(compacted)) => {
            of_compaction("subagent:", &compacted.compaction)
        }
        Event::Run(RunEvent::Compacted(compaction)) => of_compaction("middleware:", compaction),
        _ => Vec::new(),
    }
}

fn of_compaction(caller: &str, compaction: &Compaction) -> Vec<(String, Usage)> {
    let mut all: Vec<_> = compaction.failures.iter().filter_map(|failure| failure.usage).collect();
    if let CompactionOutcome::Compacted(compacted) = &compaction.outcome {
        all.extend(compacted.usage);
    }
    all.into_iter().map(|usage| (caller.to_owned(), usage)).collect()
}

fn spent(facts: &[&Logged], is_by: impl Fn(&str) -> bool) -> Option<Usage> {
    let reports = facts.iter().flat_map(|fact| reports(fact)).filter(|(caller, _)| is_by(caller));
    reports.map(|(_, usage)| usage).reduce(Usage::plus)
}

fn is_lead(caller: &str) -> bool {
    !caller.starts_with("subagent:") && !caller.starts_with("middleware:")
}

fn chars(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// What says where a run stands: up to its first end, and of a run of ours only by ourselves.
fn told<'a>(facts: &[&'a Logged]) -> Vec<&'a Logged> {
    let is_theirs = is_of_others(facts[0]);
    let mut told = Vec::new();
    for fact in facts.iter().filter(|fact| is_theirs || !is_of_others(fact)) {
        told.push(*fact);
        if status_of(fact).is_some_and(|changed| changed.status.is_terminal()) {
            break;
        }
    }
    told
}

fn status_of(fact: &Logged) -> Option<&RunStatusChanged> {
    if let Event::Run(RunEvent::StatusChanged(changed)) = &fact.event { Some(changed) } else { None }
}

fn run_row(facts: &[&Logged], run: &RunId) -> Option<RunRow> {
    let facts: Vec<_> =
        facts.iter().copied().filter(|fact| is_of_run(fact, run) && !is_contradiction(fact)).collect();
    let (first, last) = (facts.first()?, facts.last()?);
    let Event::Run(RunEvent::Started(settings)) = &first.event else { panic!("{first:?}") };
    let told = told(&facts);
    let statuses: Vec<_> =
        told.iter().filter_map(|fact| status_of(fact).map(|changed| (fact.recorded_at, changed))).collect();
    let pending = RunStatusChanged { status: RunStatus::Pending, stop_reason: None, error: None };
    let now = statuses.last().map_or(&pending, |(_, changed)| changed);
    let count = |is_counted: &dyn Fn(&Logged) -> bool| {
        u32::try_from(facts.iter().filter(|fact| is_counted(fact)).count()).unwrap()
    };
    let ended = told.iter().rev().find_map(|fact| {
        if let Event::Run(RunEvent::Ended(ended)) = &fact.event { Some(ended) } else { None }
    });
    let error = told.iter().rev().find_map(|fact| match &fact.event {
        Event::Run(RunEvent::Failed(failed)) => Some(failed.error.clone()),
        _ => status_of(fact).and_then(|changed| changed.error.clone()),
    });
    let time_of = |is_it: fn(RunStatus) -> bool| {
        statuses.iter().find(|(_, changed)| is_it(changed.status)).map(|(at, _)| *at)
    };
    Some(RunRow {
        thread_id: first.thread_id.clone(),
        run_id: run.clone(),
        status: now.status,
        stop_reason: now.stop_reason,
        error: error.map(|error| chars(&error, 8_192)),
        model_name: settings.model_name.clone(),
        created_at: first.recorded_at,
        started_at: time_of(|status| status == RunStatus::Running),
        ended_at: time_of(RunStatus::is_terminal),
        updated_at: last.recorded_at,
        usage: RunUsage {
            total: spent(&facts, |_| true),
            lead: spent(&facts, is_lead),
            subagents: spent(&facts, |caller| caller.starts_with("subagent:")),
        },
        turns: count(&|fact| {
            matches!(fact.event, Event::Model(ModelEvent::AiResponse(_)))
                && is_lead(fact.caller().unwrap_or_default())
        }),
        delegations_requested: count(&|fact| {
            fact.scope.delegation_id.is_some()
                && matches!(fact.event, Event::Delegation(DelegationEvent::Requested(_)))
        }),
        delegations_refused: count(&|fact| {
            fact.scope.delegation_id.is_some()
                && matches!(fact.event, Event::Delegation(DelegationEvent::Refused(_)))
        }),
        result: ended.map(|ended| chars(&ended.result, 8_192)),
        result_truncated: ended
            .is_some_and(|ended| ended.result_truncated || ended.result.chars().count() > 8_192),
        first_seq: first.seq,
        last_seq: last.seq,
        settings: summary(settings),
        is_of_others: is_of_others(first),
    })
}

/// The settings but for the tools and the prompt.
fn summary(settings: &RunSettings) -> SettingsSummary {
    SettingsSummary {
        assistant_id: settings.assistant_id.clone(),
        subagent_enabled: settings.subagent_enabled,
        max_concurrent_subagents: settings.max_concurrent_subagents,
        max_total_subagents: settings.max_total_subagents,
        allowed_subagents: settings.allowed_subagents.clone(),
        max_turns: settings.max_turns,
        metadata: settings.metadata.clone(),
    }
}
