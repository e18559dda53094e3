//! Which thread, run or delegation is meant: what was named, by its id or the beginning of it, or
//! the newest when nothing was.

use std::collections::BTreeSet;

use contracts::wire::{delegation::Delegation, run::Run};
use domain::ids::ToolCallId;

use crate::{args::Selection, failure::Failure, output::Output, render::printable, source::Source};

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

/// A thread, and what of it is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Within {
    /// The thread.
    pub(crate) thread_id: String,
    /// The run, where one was named or a delegation is in it.
    pub(crate) run_id: Option<String>,
    /// Our id of the delegation, where one was named.
    pub(crate) delegation_id: Option<String>,
}

/// Finds the thread, and the run and delegation where they were named.
pub(crate) async fn select_within(
    source: &Source,
    wanted: &Selection,
    task: Option<&ToolCallId>,
    output: &Output,
) -> anyhow::Result<Within> {
    if let Some(task) = task {
        let SelectedTask { thread_id, run_id, delegation_id } =
            select_task(source, wanted, task.as_str(), output).await?;
        return Ok(Within { thread_id, run_id: Some(run_id), delegation_id: Some(delegation_id) });
    }
    let Selected { thread_id, run_id, is_newest: _ } = select(source, wanted, output).await?;
    Ok(Within { thread_id, run_id, delegation_id: None })
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
            let run = named_run(source, &runs, run.as_str())?;
            warn_of_abandoned(source, [run], output);
            Ok(Selected {
                thread_id: run.thread_id.clone(),
                run_id: Some(run.run_id.clone()),
                is_newest: false,
            })
        }
        None => {
            let newest = runs.first().ok_or_else(|| no_runs(source))?;
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
        let (run_id, serve) = (&run.run_id, source.suggested("serve"));
        output.warn(&format!("run {run_id} was cut off before its end; {serve} goes on with it"));
    }
}

/// The whole id of a thread.
pub(crate) async fn thread_id(source: &Source, wanted: &str) -> anyhow::Result<String> {
    let threads = source.threads(None).await?;
    let hint = format!("{} lists them", source.suggested("threads"));
    match pick(threads.iter().map(|thread| thread.thread_id.as_str()), wanted) {
        Picked::One(id) => Ok(id.to_owned()),
        Picked::None => Err(Failure::not_found(format!("no thread {wanted}")).hint(hint).into()),
        Picked::Several(ids) => Err(ambiguous("threads", wanted, &ids).into()),
    }
}

/// One run, of this thread or of any.
pub(crate) async fn run_of(source: &Source, thread_id: Option<&str>, wanted: &str) -> anyhow::Result<Run> {
    let runs = source.runs(thread_id).await?;
    named_run(source, &runs, wanted).cloned()
}

/// The run, the newest when an id was used on several threads.
fn named_run<'a>(source: &Source, runs: &'a [Run], wanted: &str) -> anyhow::Result<&'a Run> {
    let hint = format!("{} lists them", source.suggested("runs"));
    let missing = || Failure::not_found(format!("no run {wanted}")).hint(hint);
    match pick(runs.iter().map(|run| run.run_id.as_str()), wanted) {
        Picked::One(id) => Ok(runs.iter().find(|run| run.run_id == id).ok_or_else(missing)?),
        Picked::None => Err(missing().into()),
        Picked::Several(ids) => Err(ambiguous("runs", wanted, &ids).into()),
    }
}

fn no_runs(source: &Source) -> Failure {
    let first = match source {
        Source::Folder(_) => source.suggested("demo"),
        Source::Server(_) => source.suggested("run PROMPT"),
    };
    Failure::not_found("there are no runs yet").hint(format!("run {first} first"))
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
    if let Some(found) = task_of(source, &selected.thread_id, run_id, task, output).await? {
        return Ok(SelectedTask::new(selected.thread_id, found));
    }
    if selected.is_newest {
        for other in other_threads(source, &selected.thread_id).await? {
            if let Some(found) = task_of(source, &other, None, task, output).await? {
                output.note(&format!("{task} is in thread {other}"));
                return Ok(SelectedTask::new(other, found));
            }
        }
    }
    Err(no_task(source, task, &selected).into())
}

/// The id by which the events of a delegation of this thread or run are found.
pub(crate) async fn task_within(
    source: &Source,
    selected: &Selected,
    task: &str,
    output: &Output,
) -> anyhow::Result<String> {
    match task_of(source, &selected.thread_id, selected.run_id.as_deref(), task, output).await? {
        Some(found) => Ok(found.delegation_id),
        None => Err(no_task(source, task, selected).into()),
    }
}

fn no_task(source: &Source, task: &str, selected: &Selected) -> Failure {
    let place = match &selected.run_id {
        Some(run_id) => format!("run {run_id}"),
        None => format!("thread {}", selected.thread_id),
    };
    let missing = Failure::not_found(format!("no delegation {task} in {place}"));
    let option = match &selected.run_id {
        Some(run_id) => format!(" --run {run_id}"),
        None if selected.is_newest => String::new(),
        None => format!(" --thread {}", selected.thread_id),
    };
    missing.hint(format!("{} lists them", source.suggested(&format!("ledger{option}"))))
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
    output: &Output,
) -> anyhow::Result<Option<Delegation>> {
    let delegations = source.ledger(thread_id, run_id, None).await?;
    let mut named = named_tasks(&delegations, task)?;
    let newest = named.pop();
    if let (Some(newest), false) = (newest, named.is_empty()) {
        output.warn(&several(&named, newest));
    }
    Ok(newest.cloned())
}

/// What a person is told when a task id stands for several delegations: which there are, and which
/// one this is.
fn several(older: &[&Delegation], newest: &Delegation) -> String {
    let ids = older.iter().rev().take(CANDIDATES_SHOWN_MAX).map(|one| one.delegation_id.as_str());
    let others = ids.collect::<Vec<_>>().join(", ");
    let more = if older.len() > CANDIDATES_SHOWN_MAX { ", …" } else { "" };
    format!(
        "there are {} delegations with the task id {}: this is the newest, {}; name another by its delegation id: {others}{more}",
        older.len() + 1,
        printable::line(&newest.task_id),
        newest.delegation_id,
    )
}

/// The delegations of this name, in the order of the ledger. A task id may repeat, within a run too.
fn named_tasks<'a>(delegations: &'a [Delegation], wanted: &str) -> anyhow::Result<Vec<&'a Delegation>> {
    let of = |id: &str| -> Vec<&Delegation> {
        delegations.iter().filter(|one| one.task_id == id || one.delegation_id == id).collect()
    };
    let exact = of(wanted);
    if !exact.is_empty() {
        return Ok(exact);
    }
    let ids = delegations.iter().flat_map(|one| [one.task_id.as_str(), one.delegation_id.as_str()]);
    match pick(ids, wanted) {
        Picked::None => Ok(Vec::new()),
        Picked::One(id) => Ok(of(id)),
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

/// The id that is the name or, if there is none, the only one that begins with it. A name as tables
/// show it, cut in its middle, gives both ends.
fn pick<'a>(ids: impl Iterator<Item = &'a str>, wanted: &str) -> Picked<'a> {
    let ends = wanted.split_once('…');
    let is_meant = |id: &str| {
        id.starts_with(wanted) || ends.is_some_and(|(start, end)| id.starts_with(start) && id.ends_with(end))
    };
    let begin: BTreeSet<&str> = ids.filter(|id| is_meant(id)).collect();
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
        source::Server,
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
        check(&["call_12_1", "call_12_2"], "call_…2_2", Picked::One("call_12_2"));
        check(&["call_12_1", "call_13_1"], "call_…_1", Picked::Several(vec!["call_12_1", "call_13_1"]));
        check(&[], "b", Picked::None);
    }

    #[test]
    fn an_ambiguous_name_lists_what_it_could_mean() {
        let error = named_run(&server(), &samples::runs(), "0193a1b2").unwrap_err();
        assert_eq!(exit_of(&error), Exit::Usage);
        assert!(explain(&error).starts_with("error: 2 runs begin with 0193a1b2: 0193a1b2-c3d4-7000"));
        assert_eq!(exit_of(&named_run(&server(), &samples::runs(), "nope").unwrap_err()), Exit::NotFound);
    }

    fn server() -> Source {
        Source::Server(Server::new("http://h:1").unwrap())
    }

    #[test]
    fn a_hint_asks_in_the_same_place() {
        let selected = |run: Option<&str>, is_newest| Selected {
            thread_id: "t".into(),
            run_id: run.map(str::to_owned),
            is_newest,
        };
        for (selected, command) in [
            (selected(None, true), "ledger"),
            (selected(None, false), "ledger --thread t"),
            (selected(Some("r"), false), "ledger --run r"),
        ] {
            let text = explain(&no_task(&server(), "nope", &selected).into());
            assert!(text.ends_with(&format!("{command} --server http://h:1` lists them")), "{text}");
        }
        for error in [named_run(&server(), &[], "nope").unwrap_err(), no_runs(&server()).into()] {
            assert!(explain(&error).contains(" --server http://h:1`"), "{}", explain(&error));
        }
    }

    #[test]
    fn a_task_id_that_repeats_means_the_newest_and_says_so() {
        let mut delegations = samples::ledger();
        delegations[2].task_id = "call_1".into();
        for (place, delegation) in delegations.iter_mut().enumerate() {
            delegation.delegation_id = format!("d{place}");
        }
        let named = |wanted| -> Vec<String> {
            let named = named_tasks(&delegations, wanted).unwrap();
            named.iter().map(|one| one.delegation_id.clone()).collect()
        };
        assert_eq!(named("call_1"), ["d0", "d2"]);
        assert_eq!(named("d0"), ["d0"]);
        assert_eq!(named("call_2"), ["d1"]);
        assert!(named("call_9").is_empty());
        assert_eq!(exit_of(&named_tasks(&delegations, "call").unwrap_err()), Exit::Usage);
        assert_eq!(
            several(&[&delegations[0]], &delegations[2]),
            "there are 2 delegations with the task id call_1: this is the newest, d2; name another by its delegation id: d0"
        );
    }
}
