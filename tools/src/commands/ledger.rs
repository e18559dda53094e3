//! `remit ledger`.

use crate::{args::LedgerArguments, context::Context, failure::Exit, render, select, source::Source};

/// Shows what was delegated, and what came of it.
pub(super) async fn ledger(context: &Context, arguments: &LedgerArguments) -> anyhow::Result<Exit> {
    let source = Source::open(context).await?;
    let selected = select::select(&source, &arguments.selection, &context.output).await?;
    let delegations = source.ledger(&selected.thread_id, selected.run_id.as_deref(), arguments.as_of).await?;
    if context.output.json {
        context.output.value(&delegations)?;
    } else {
        context.output.text(&render::ledger::ledger(context.output.screen, &delegations))?;
    }
    source.close().await;
    Ok(Exit::Done)
}
