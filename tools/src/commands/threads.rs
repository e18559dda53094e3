//! `remit threads`.

use crate::{args::ThreadsArguments, context::Context, failure::Exit, render, source::Source};

/// Lists the threads.
pub(super) async fn threads(context: &Context, arguments: &ThreadsArguments) -> anyhow::Result<Exit> {
    let source = Source::open(context).await?;
    let mut threads = source.threads(arguments.as_of_position).await?;
    threads.truncate(arguments.limit.unwrap_or(usize::MAX));
    if context.output.json {
        context.output.value(&threads)?;
    } else {
        context.output.text(&render::threads::threads(context.output.screen, &threads))?;
    }
    source.close().await;
    Ok(Exit::Done)
}
