//! The same answers in the slow and obvious way: each from a plain list of events.

use domain::{
    card::Card,
    event::{
        DelegationEvent, Event, Logged, ModelEvent, RunEvent, RunSettings, RunStatus, RunStatusChanged,
        SubagentEvent,
    },
    ids::{DelegationId, RunId, ThreadId},
    ledger::LedgerEntry,
    message::Message,
    usage::Usage,
};
use eventlog::Seq;

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

fn is_of_run(fact: &Logged, run: &RunId) -> bool {
    fact.scope.run_id.as_ref() == Some(run)
}

/// Whether the event starts another run than it is recorded for.
fn is_contradiction(fact: &Logged) -> bool {
    matches!(&fact.event, Event::Run(RunEvent::Started(settings)) if !is_of_run(fact, &settings.run_id))
}

fn thread_row(facts: &[&Logged]) -> Option<ThreadRow> {
    let (first, last) = (facts.first()?, facts.last()?);
    let created = facts.iter().rev().find_map(|fact| {
        if let Event::Thread(domain::event::ThreadEvent::Created(created)) = &fact.event {
            Some(created.clone())
        } else {
            None
        }
    });
    let created = created.unwrap_or_default();
    let started: Vec<_> = facts
        .iter()
        .filter(|fact| matches!(fact.event, Event::Run(RunEvent::Started(_))) && !is_contradiction(fact))
        .collect();
    Some(ThreadRow {
        thread_id: first.thread_id.clone(),
        owner: first.owner.clone(),
        created_at: first.recorded_at,
        updated_at: last.recorded_at,
        metadata: created.metadata,
        workspace: created.workspace,
        runs: started.len() as u64,
        last_run_id: started.last().and_then(|fact| fact.scope.run_id.clone()),
        last_seq: last.seq,
    })
}

fn spent<'a>(messages: impl Iterator<Item = &'a Message>) -> Option<Usage> {
    messages.filter_map(|message| message.as_assistant()?.usage).reduce(Usage::plus)
}

fn run_row(facts: &[&Logged], run: &RunId) -> Option<RunRow> {
    let facts: Vec<_> =
        facts.iter().copied().filter(|fact| is_of_run(fact, run) && !is_contradiction(fact)).collect();
    let (first, last) = (facts.first()?, facts.last()?);
    let Event::Run(RunEvent::Started(settings)) = &first.event else { panic!("{first:?}") };
    let statuses = facts.iter().filter_map(|fact| {
        if let Event::Run(RunEvent::StatusChanged(changed)) = &fact.event {
            Some((fact.recorded_at, changed))
        } else {
            None
        }
    });
    let statuses: Vec<(_, &RunStatusChanged)> = statuses.collect();
    let pending = RunStatusChanged { status: RunStatus::Pending, stop_reason: None, error: None };
    let now = statuses.last().map_or(&pending, |(_, changed)| changed);
    let lead = spent(facts.iter().filter_map(|fact| {
        if let Event::Model(ModelEvent::AiResponse(reply)) = &fact.event { Some(reply) } else { None }
    }));
    let subagents = spent(facts.iter().filter_map(|fact| {
        if let Event::Subagent(SubagentEvent::Message(captured)) = &fact.event {
            Some(&captured.message)
        } else {
            None
        }
    }));
    let count = |is_counted: fn(&Event) -> bool| {
        u32::try_from(facts.iter().filter(|fact| is_counted(&fact.event)).count()).unwrap()
    };
    let ended = facts.iter().find_map(|fact| {
        if let Event::Run(RunEvent::Ended(ended)) = &fact.event { Some(ended) } else { None }
    });
    let failed = facts.iter().find_map(|fact| {
        if let Event::Run(RunEvent::Failed(failed)) = &fact.event { Some(failed.error.clone()) } else { None }
    });
    let time_of = |is_it: fn(RunStatus) -> bool| {
        statuses.iter().find(|(_, changed)| is_it(changed.status)).map(|(at, _)| *at)
    };
    Some(RunRow {
        thread_id: first.thread_id.clone(),
        run_id: run.clone(),
        status: now.status,
        stop_reason: now.stop_reason,
        error: failed,
        model_name: settings.model_name.clone(),
        created_at: first.recorded_at,
        started_at: time_of(|status| status == RunStatus::Running),
        ended_at: time_of(RunStatus::is_terminal),
        updated_at: last.recorded_at,
        usage: RunUsage {
            total: [lead, subagents].into_iter().flatten().reduce(Usage::plus),
            lead,
            subagents,
        },
        turns: count(|event| matches!(event, Event::Model(ModelEvent::AiResponse(_)))),
        delegations_requested: count(|event| {
            matches!(event, Event::Delegation(DelegationEvent::Requested(_)))
        }),
        delegations_refused: count(|event| matches!(event, Event::Delegation(DelegationEvent::Refused(_)))),
        result: ended.map(|ended| ended.result.clone()),
        result_truncated: ended.is_some_and(|ended| ended.result_truncated),
        first_seq: first.seq,
        last_seq: last.seq,
        settings: summary(settings),
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

/// The delegations in the order in which they first appear.
fn delegations(facts: &[&Logged], run: Option<&RunId>) -> Vec<DelegationId> {
    let mut seen = Vec::new();
    for fact in facts {
        if let Some(id) = fact.scope.delegation_id
            && run.is_none_or(|run| is_of_run(fact, run))
            && !seen.contains(&id)
        {
            seen.push(id);
        }
    }
    seen
}

fn about<'a>(facts: &[&'a Logged], id: DelegationId) -> impl Iterator<Item = &'a Logged> {
    facts.iter().copied().filter(move |fact| fact.scope.delegation_id == Some(id))
}

fn ledger(facts: &[&Logged], run: Option<&RunId>) -> Vec<LedgerEntry> {
    let entry = |id| about(facts, id).fold(None, LedgerEntry::fold);
    delegations(facts, run).into_iter().filter_map(entry).collect()
}

fn card(facts: &[&Logged], run: &RunId, task: &TaskRef) -> Option<Card> {
    let cards =
        delegations(facts, Some(run)).into_iter().rev().filter_map(|id| Card::of_events(about(facts, id)));
    let mut newest_first = cards.filter(|card| match task {
        TaskRef::TaskId(task_id) => card.head.entry.task_id == *task_id,
        TaskRef::DelegationId(id) => card.head.entry.delegation_id == *id,
    });
    newest_first.next()
}
