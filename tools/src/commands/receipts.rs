//! `remit receipts`.

use contracts::wire::evidence::Receipt;
use serde::Serialize;

use crate::{
    args::ReceiptsArguments,
    context::Context,
    failure::Exit,
    render,
    select::{self, SelectedTask},
    source::Source,
};

/// A receipt with the delegation that it belongs to.
#[derive(Serialize)]
struct OwnedReceipt<'a> {
    task_id: &'a str,
    delegation_id: &'a str,
    #[serde(flatten)]
    receipt: &'a Receipt,
}

/// Lists the receipts of one delegation, or of all of a thread or run.
pub(super) async fn receipts(context: &Context, arguments: &ReceiptsArguments) -> anyhow::Result<Exit> {
    let source = Source::open(context).await?;
    let mut cards = Vec::new();
    for task in tasks(context, &source, arguments).await? {
        cards.push(source.card(&task, None).await?);
    }
    let receipts = || cards.iter().flat_map(|card| card.receipts.iter().map(move |receipt| (card, receipt)));
    if context.output.json {
        let owned = receipts().map(|(card, receipt)| OwnedReceipt {
            task_id: &card.task_id,
            delegation_id: &card.delegation_id,
            receipt,
        });
        context.output.value(&owned.collect::<Vec<_>>())?;
    } else {
        let listed: Vec<_> =
            receipts().map(|(card, receipt)| (card.task_id.clone(), receipt.clone())).collect();
        context.output.text(&render::receipts::receipts(context.output.screen, &listed))?;
    }
    source.close().await;
    Ok(Exit::Done)
}

async fn tasks(
    context: &Context,
    source: &Source,
    arguments: &ReceiptsArguments,
) -> anyhow::Result<Vec<SelectedTask>> {
    if let Some(task) = arguments.task.name() {
        let task = select::select_task(source, &arguments.selection, task.as_str(), &context.output).await?;
        return Ok(vec![task]);
    }
    let selected = select::select(source, &arguments.selection, &context.output).await?;
    let delegations = source.ledger(&selected.thread_id, selected.run_id.as_deref(), None).await?;
    let thread_id = &selected.thread_id;
    Ok(delegations.into_iter().map(|one| SelectedTask::new(thread_id.clone(), one)).collect())
}
