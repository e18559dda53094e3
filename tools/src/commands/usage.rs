//! `remit usage`.

use crate::{
    args::{Selection, UsageArguments},
    context::Context,
    failure::{Exit, Failure},
    render, select,
    source::{Source, lists::UsageWanted},
};

/// Sums up what was used, and what it cost.
pub(super) async fn usage(context: &Context, arguments: &UsageArguments) -> anyhow::Result<Exit> {
    let source = Source::open(context).await?;
    let wanted = wanted(context, &source, arguments).await?;
    let report = source.usage(&wanted).await?;
    if context.output.json {
        context.output.value(&report)?;
    } else {
        context.output.text(&render::usage::usage(context.output.screen, &report))?;
    }
    source.close().await;
    Ok(Exit::Done)
}

/// Without a thread or run it is everything, not the newest.
async fn wanted(
    context: &Context,
    source: &Source,
    arguments: &UsageArguments,
) -> anyhow::Result<UsageWanted> {
    let selection = Selection { thread: arguments.thread.clone(), run: arguments.run.clone() };
    let is_everything = selection.thread.is_none() && selection.run.is_none();
    if is_everything && arguments.as_of.is_some() {
        let refusal = Failure::usage("--as-of names an event of one thread");
        return Err(refusal
            .hint("name the thread with --thread, or a moment of all threads with --as-of-position")
            .into());
    }
    let selected = match is_everything {
        true => None,
        false => Some(select::select(source, &selection, &context.output).await?),
    };
    let mut group_by: Vec<String> = Vec::new();
    for axis in arguments.by.iter().filter(|axis| !axis.is_empty()) {
        if !group_by.contains(axis) {
            group_by.push(axis.clone());
        }
    }
    Ok(UsageWanted {
        run_id: selected.as_ref().and_then(|selected| selected.run_id.clone()),
        thread_id: selected.map(|selected| selected.thread_id),
        model_name: arguments.model.clone(),
        caller: arguments.caller.clone(),
        from: arguments.from,
        to: arguments.to,
        group_by,
        as_of: arguments.as_of,
        as_of_position: arguments.as_of_position,
    })
}
