//! `remit card`.

use crate::{
    args::CardArguments,
    context::Context,
    failure::{Exit, Failure},
    render, select,
    source::Source,
};

/// Shows one delegation.
pub(super) async fn card(context: &Context, arguments: &CardArguments) -> anyhow::Result<Exit> {
    let task = arguments.task.name().ok_or_else(|| Failure::usage("name a delegation"))?;
    let source = Source::open(context).await?;
    let task = select::select_task(&source, &arguments.selection, task.as_str(), &context.output).await?;
    if arguments.replay {
        return super::card_replay::replay(context, source, &task, arguments.speed).await;
    }
    let card = source.card(&task, arguments.as_of).await?;
    if context.output.json {
        context.output.value(&card)?;
    } else {
        context.output.text(&render::card::card(context.output.screen, &card))?;
    }
    source.close().await;
    Ok(Exit::Done)
}
