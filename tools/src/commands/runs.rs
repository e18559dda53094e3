//! `remit runs`.

use std::collections::{BTreeMap, BTreeSet};

use contracts::wire::run::Run;

use crate::{
    args::RunsArguments,
    context::Context,
    failure::Exit,
    render::{self, ledger::Counts},
    select,
    source::Source,
};

/// Lists the runs, the newest first.
pub(super) async fn runs(context: &Context, arguments: &RunsArguments) -> anyhow::Result<Exit> {
    let source = Source::open(context).await?;
    let thread_id = match &arguments.thread {
        Some(thread) => Some(select::thread_id(&source, thread.as_str()).await?),
        None => None,
    };
    let runs = match (&thread_id, arguments.as_of) {
        (Some(thread_id), Some(seq)) => source.runs_as_of(thread_id, seq).await?,
        (Some(_) | None, _) => source.runs(thread_id.as_deref()).await?,
    };
    let limit = arguments.limit.unwrap_or(usize::MAX);
    let listed = runs.get(..limit).unwrap_or(&runs);
    if arguments.as_of.is_none() {
        select::warn_of_abandoned(&source, listed, &context.output);
    }
    if context.output.json {
        context.output.value(listed)?;
    } else {
        let delegations = delegations(&source, listed, arguments.as_of).await?;
        context.output.text(&render::runs::runs(context.output.screen, &runs, limit, &delegations))?;
    }
    source.close().await;
    Ok(Exit::Done)
}

/// What each run delegated, counted in the ledgers of their threads.
async fn delegations(
    source: &Source,
    runs: &[Run],
    as_of: Option<u64>,
) -> anyhow::Result<BTreeMap<String, Counts>> {
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    let threads: BTreeSet<&str> = runs.iter().map(|run| run.thread_id.as_str()).collect();
    for thread_id in threads {
        for delegation in source.ledger(thread_id, None, as_of).await? {
            counts.entry(delegation.run_id.clone()).or_default().add(&delegation);
        }
    }
    Ok(counts)
}
