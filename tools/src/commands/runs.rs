//! `remit runs`.

use crate::{args::RunsArguments, context::Context, failure::Exit, render, select, source::Source};

/// Lists the runs, the newest first.
pub(super) async fn runs(context: &Context, arguments: &RunsArguments) -> anyhow::Result<Exit> {
    let source = Source::open(context).await?;
    let thread_id = match &arguments.thread {
        Some(thread) => Some(select::thread_id(&source, thread.as_str()).await?),
        None => None,
    };
    let mut runs = match (&thread_id, arguments.as_of) {
        (Some(thread_id), Some(seq)) => source.runs_as_of(thread_id, seq).await?,
        (Some(_) | None, _) => source.runs(thread_id.as_deref()).await?,
    };
    runs.truncate(arguments.limit.unwrap_or(usize::MAX));
    if arguments.as_of.is_none() {
        select::warn_of_abandoned(&source, &runs, &context.output);
    }
    if context.output.json {
        context.output.value(&runs)?;
    } else {
        context.output.text(&render::runs::runs(context.output.screen, &runs))?;
    }
    source.close().await;
    Ok(Exit::Done)
}
