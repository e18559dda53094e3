//! `remit receipts`.

use crate::{
    args::ReceiptsArguments,
    context::Context,
    failure::Exit,
    render, select,
    source::{
        Source,
        lists::{ReceiptsWanted, Wanted},
    },
};

/// Lists the receipts of one delegation, or of all of a thread or run.
pub(super) async fn receipts(context: &Context, arguments: &ReceiptsArguments) -> anyhow::Result<Exit> {
    let source = Source::open(context).await?;
    let chosen =
        select::select_within(&source, &arguments.selection, arguments.task.name(), &context.output).await?;
    let wanted = Wanted {
        thread_id: chosen.thread_id,
        run_id: chosen.run_id,
        delegation_id: chosen.delegation_id,
        after_seq: 0,
        as_of: arguments.as_of,
        limit: arguments.limit.unwrap_or(usize::MAX),
    };
    let which = ReceiptsWanted { tool_name: arguments.tool.clone(), outcome: arguments.outcome.clone() };
    let receipts = source.receipts(wanted, &which).await?;
    if context.output.json {
        context.output.value(&receipts)?;
    } else {
        context.output.text(&render::receipts::receipts(context.output.screen, &receipts))?;
    }
    source.close().await;
    Ok(Exit::Done)
}
