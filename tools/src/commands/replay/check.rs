//! `remit replay --check`.

use domain::{
    limits::EVENTS_PAGE_RANGE,
    recheck::{Difference, Recheck, Rechecked},
};
use serde::Serialize;

use crate::{
    args::Selection,
    failure::{Exit, Failure},
    output::Output,
    render, select,
    source::{EventsPage, Source},
};

/// What a program reads.
#[derive(Serialize)]
struct Record<'a> {
    deterministic: bool,
    threads: u64,
    runs: u64,
    delegations: u64,
    effects: u64,
    difference: Option<DifferenceRecord<'a>>,
}

#[derive(Serialize)]
struct DifferenceRecord<'a> {
    thread_id: &'a str,
    run_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    delegation_id: Option<String>,
    seq: u64,
    position: u64,
    recorded: &'a str,
    asked: &'a str,
}

/// Folds whole threads: what an agent asks for depends on the runs before it.
pub(super) async fn check(source: &Source, selection: &Selection, output: &Output) -> anyhow::Result<Exit> {
    let (mut checked, mut threads) = (Rechecked::default(), 0);
    for thread_id in threads_of(source, selection, output).await? {
        let (compared, difference) = check_thread(source, &thread_id).await?;
        threads += 1;
        checked.runs += compared.runs;
        checked.delegations += compared.delegations;
        checked.effects += compared.effects;
        if let Some(difference) = difference {
            return differs(output, threads, checked, &thread_id, &difference);
        }
    }
    if output.json {
        output.value(&record(threads, checked, None))?;
    } else {
        output.text(&render::replay::checked(output.screen, threads, checked))?;
    }
    Ok(Exit::Done)
}

async fn threads_of(source: &Source, selection: &Selection, output: &Output) -> anyhow::Result<Vec<String>> {
    if *selection != Selection::default() {
        return Ok(vec![select::select(source, selection, output).await?.thread_id]);
    }
    Ok(source.threads(None).await?.into_iter().map(|thread| thread.thread_id).collect())
}

async fn check_thread(
    source: &Source,
    thread_id: &str,
) -> anyhow::Result<(Rechecked, Option<Box<Difference>>)> {
    let mut recheck = Recheck::default();
    let mut page = EventsPage {
        thread_id: thread_id.to_owned(),
        run_id: None,
        task: None,
        event_types: None,
        after_seq: 0,
        limit: *EVENTS_PAGE_RANGE.end() as usize,
    };
    loop {
        let history = source.history(&page).await?;
        let Some(last) = history.last() else { return Ok((recheck.checked(), None)) };
        page.after_seq = last.record.seq;
        for logged in history.iter().filter_map(|past| past.logged.as_ref()) {
            if let Err(difference) = recheck.take(logged) {
                return Ok((recheck.checked(), Some(difference)));
            }
        }
    }
}

fn record<'a>(threads: u64, checked: Rechecked, difference: Option<DifferenceRecord<'a>>) -> Record<'a> {
    let Rechecked { runs, delegations, effects } = checked;
    Record { deterministic: difference.is_none(), threads, runs, delegations, effects, difference }
}

fn differs(
    output: &Output,
    threads: u64,
    checked: Rechecked,
    thread_id: &str,
    difference: &Difference,
) -> anyhow::Result<Exit> {
    if !output.json {
        let what = format!("thread {thread_id} cannot be made again: {difference}");
        let hint = "`remit verify` says whether the log is what was recorded; if it is, this version of remit decides otherwise than \
                    the one that recorded it";
        return Err(Failure::new(Exit::Integrity, what).hint(hint).into());
    }
    let told = DifferenceRecord {
        thread_id,
        run_id: difference.run_id.as_str(),
        delegation_id: difference.delegation_id.map(|id| id.to_string()),
        seq: difference.seq,
        position: difference.position,
        recorded: &difference.recorded,
        asked: &difference.asked,
    };
    output.value(&record(threads, checked, Some(told)))?;
    Ok(Exit::Integrity)
}
