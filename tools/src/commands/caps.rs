//! `remit caps`.

use crate::{
    args::CapsArguments,
    context::Context,
    failure::Exit,
    render, select,
    source::{
        Source,
        lists::{CapsWanted, Wanted},
    },
};

/// Lists the guards that fired.
pub(super) async fn caps(context: &Context, arguments: &CapsArguments) -> anyhow::Result<Exit> {
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
    let which = CapsWanted { axis: arguments.axis.clone(), action: arguments.action.clone() };
    let caps = source.caps(wanted, &which).await?;
    if context.output.json {
        context.output.value(&caps)?;
    } else {
        context.output.text(&render::caps::caps(context.output.screen, &caps))?;
    }
    source.close().await;
    Ok(Exit::Done)
}
