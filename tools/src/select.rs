//! Which thread, run or delegation is meant: what was named, by its id or the beginning of it, or
//! the newest when nothing was.

use std::collections::BTreeSet;

use contracts::wire::{delegation::Delegation, run::Run};

use crate::{
    args::Selection,
    failure::Failure,
    output::{Output, program},
    source::Source,
};

/// Ids that an ambiguous beginning could mean, as far as they are named.
const CANDIDATES_SHOWN_MAX: usize = 5;

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selected {
    /// The thread.
    pub(crate) thread_id: String,
    /// The run, where one was named.
    pub(crate) run_id: Option<String>,
    /// Whether nothing was named, so that this is the newest.
    pub(crate) is_newest: bool,
}

/// A delegation with the run that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelectedTask {
    /// The thread.
    pub(crate) thread_id: String,
    /// The run.
    pub(crate) run_id: String,
    /// Our id of the delegation.
    pub(crate) delegation_id: String,
}

impl SelectedTask {
    /// A row of a thread's ledger.
    pub(crate) fn new(thread_id: String, delegation: Delegation) -> Self {
        Self { thread_id, run_id: delegation.run_id, delegation_id: delegation.delegation_id }
    }
}

/// Finds the thread and run, and says on standard error which they are when nothing was named.
pub(crate) async fn select(source: &Source, wanted: &Selection, output: &Output) -> anyhow::Result<Selected> {
    let thread_id = match &wanted.thread {
        Some(thread) => Some(thread_id(source, thread.as_str()).await?),
        None => None,
    };
    if let (Some(thread_id), None) = (&thread_id, &wanted.run) {
        return Ok(Selected { thread_id: thread_id.clone(), run_id: None, is_newest: false });
    }
    let runs = source.runs(thread_id.as_deref()).await?;
    match &wanted.run {
        Some(run) => {
            let run = named_run(&runs, run.as_str())?;
            warn_of_abandoned(source, [run], output);
            Ok(Selected {
                thread_id: run.thread_id.clone(),
                run_id: Some(run.run_id.clone()),
                is_newest: false,
            })
        }
        None => {
            let newest = runs.first().ok_or_else(no_runs)?;
            output.note(&format!("thread {}, of the newest run {}", newest.thread_id, newest.run_id));
            warn_of_abandoned(source, [newest], output);
            Ok(Selected { thread_id: newest.thread_id.clone(), run_id: None, is_newest: true })
        }
    }
}

/// Says of runs that look as if they were at work that nobody works on them.
pub(crate) fn warn_of_abandoned<'a>(
    source: &Source,
    runs: impl IntoIterator<Item = &'a Run>,
    output: &Output,
) {
    for run in runs.into_iter().filter(|run| source.is_abandoned(run)) {
        let (run_id, program) = (&run.run_id, program());
        output.warn(&format!("run {run_id} was cut off before its end; `{program} serve` goes on with it"));
    }
}

/// The whole id of a thread.
pub(crate) async fn thread_id(source: &Source, wanted: &str) -> anyhow::Result<String> {
    let threads = source.threads().await?;
    let hint = format!("`{} threads` lists them", program());
    match pick(threads.iter().map(|thread| thread.thread_id.as_str()), wanted) {
        Picked::One(id) => Ok(id.to_owned()),
        Picked::None => Err(Failure::not_found(format!("no thread {wanted}")).hint(hint).into()),
        Picked::Several(ids) => Err(ambiguous("threads", wanted, &ids).into()),
    }
}

/// The run, the newest when an id was used on several threads.
fn named_run<'a>(runs: &'a [Run], wanted: &str) -> anyhow::Result<&'a Run> {
    let hint = format!("`{} runs` lists them", program());
    let missing = || Failure::not_found(format!("no run {wanted}")).hint(hint);
    match pick(runs.iter().map(|run| run.run_id.as_str()), wanted) {
        Picked::One(id) => Ok(runs.iter().find(|run| run.run_id == id).ok_or_else(missing)?),
        Picked::None => Err(missing().into()),
        Picked::Several(ids) => Err(ambiguous("runs", wanted, &ids).into()),
    }
}

fn no_runs() -> Failure {
    Failure::not_found("there are no runs yet").hint(format!("run `{} demo` first", program()))
}

/// Finds a delegation by its task id, its delegation id or the beginning of either. When nothing
/// else was named, and the newest thread has no such delegation, the others are asked too.
pub(crate) async fn select_task(
    source: &Source,
    wanted: &Selection,
    task: &str,
    output: &Output,
) -> anyhow::Result<SelectedTask> {
    let selected = select(source, wanted, output).await?;
    let run_id = selected.run_id.as_deref();
    if let Some(found) = task_of(source, &selected.thread_id, run_id, task).await? {
        return Ok(SelectedTask::new(selected.thread_id, found));
    }
    if selected.is_newest {
        for other in other_threads(source, &selected.thread_id).await? {
            if let Some(found) = task_of(source, &other, None, task).await? {
                output.note(&format!("{task} is in thread {other}"));
                return Ok(SelectedTask::new(other, found));
            }
        }
    }
    Err(no_task(task, &selected).into())
}

/// The id by which the events of a delegation of this thread or run are found.
pub(crate) async fn task_within(source: &Source, selected: &Selected, task: &str) -> anyhow::Result<String> {
    match task_of(source, &selected.thread_id, selected.run_id.as_deref(), task).await? {
        Some(found) => Ok(found.delegation_id),
        None => Err(no_task(task, selected).into()),
    }
}

fn no_task(task: &str, selected: &Selected) -> Failure {
    let place = match &selected.run_id {
        Some(run_id) => format!("run {run_id}"),
        None => format!("thread {}", selected.thread_id),
    };
    let missing = Failure::not_found(format!("no delegation {task} in {place}"));
    missing.hint(format!("`{} ledger` lists them", program()))
}

async fn other_threads(source: &Source, known: &str) -> anyhow::Result<Vec<String>> {
    let mut seen = BTreeSet::from([known.to_owned()]);
    let runs = source.runs(None).await?;
    Ok(runs.into_iter().map(|run| run.thread_id).filter(|thread| seen.insert(thread.clone())).collect())
}

async fn task_of(
    source: &Source,
    thread_id: &str,
    run_id: Option<&str>,
    task: &str,
) -> anyhow::Result<Option<Delegation>> {
    let delegations = source.ledger(thread_id, run_id, None).await?;
    named_task(delegations, task)
}

/// The delegation of this name. A task id may repeat across runs: then the newest is meant.
fn named_task(delegations: Vec<Delegation>, wanted: &str) -> anyhow::Result<Option<Delegation>> {
    if let Some(exact) =
        delegations.iter().rev().find(|one| one.task_id == wanted || one.delegation_id == wanted)
    {
        return Ok(Some(exact.clone()));
    }
    let ids = delegations.iter().flat_map(|one| [one.task_id.as_str(), one.delegation_id.as_str()]);
    match pick(ids, wanted) {
        Picked::None => Ok(None),
        Picked::One(id) => {
            let found = delegations.iter().rev().find(|one| one.task_id == id || one.delegation_id == id);
            Ok(found.cloned())
        }
        Picked::Several(ids) => Err(ambiguous("delegations", wanted, &ids).into()),
    }
}

/// What a name means among several ids.
#[derive(Debug, PartialEq, Eq)]
enum Picked<'a> {
    None,
    One(&'a str),
    Several(Vec<&'a str>),
}

/// The id that is the name or, if there is none, the only one that begins with it.
fn pick<'a>(ids: impl Iterator<Item = &'a str>, wanted: &str) -> Picked<'a> {
    let begin: BTreeSet<&str> = ids.filter(|id| id.starts_with(wanted)).collect();
    if let Some(exact) = begin.get(wanted) {
        return Picked::One(exact);
    }
    let mut found: Vec<&str> = begin.into_iter().collect();
    match found.len() {
        0 => Picked::None,
        1 => found.pop().map_or(Picked::None, Picked::One),
        _ => Picked::Several(found),
    }
}

fn ambiguous(kind: &str, wanted: &str, ids: &[&str]) -> Failure {
    let shown = ids.iter().take(CANDIDATES_SHOWN_MAX).copied().collect::<Vec<_>>().join(", ");
    let more = if ids.len() > CANDIDATES_SHOWN_MAX { ", …" } else { "" };
    Failure::usage(format!("{} {kind} begin with {wanted}: {shown}{more}", ids.len()))
        .hint("write more of the id")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        failure::{Exit, exit_of, explain},
        render::samples,
    };

    #[track_caller]
    fn check(ids: &[&str], wanted: &str, expected: Picked<'_>) {
        assert_eq!(pick(ids.iter().copied(), wanted), expected, "{wanted} among {ids:?}");
    }

    #[test]
    fn a_name_is_an_id_or_the_beginning_of_one() {
        check(&["abc", "abd"], "abc", Picked::One("abc"));
        check(&["abc", "xyz"], "x", Picked::One("xyz"));
        check(&["ab", "abc"], "ab", Picked::One("ab"));
        check(&["abc", "abd"], "ab", Picked::Several(vec!["abc", "abd"]));
        check(&["abc", "abc"], "ab", Picked::One("abc"));
        check(&["abc"], "b", Picked::None);
        check(&[], "b", Picked::None);
    }

    #[test]
    fn an_ambiguous_name_lists_what_it_could_mean() {
        let error = named_run(&samples::runs(), "0193a1b2").unwrap_err();
        assert_eq!(exit_of(&error), Exit::Usage);
        assert!(explain(&error).starts_with("error: 2 runs begin with 0193a1b2: 0193a1b2-c3d4-7000"));
        assert_eq!(exit_of(&named_run(&samples::runs(), "nope").unwrap_err()), Exit::NotFound);
    }

    #[test]
    fn a_task_id_that_repeats_means_the_newest() {
        let mut delegations = samples::ledger();
        delegations[2].task_id = "call_1".into();
        let found = named_task(delegations.clone(), "call_1").unwrap().unwrap();
        assert_eq!(found.subagent_type, "bash");
        assert_eq!(named_task(delegations.clone(), "call_2").unwrap().as_ref(), Some(&delegations[1]));
        assert_eq!(named_task(delegations, "call_9").unwrap(), None);
    }
}
