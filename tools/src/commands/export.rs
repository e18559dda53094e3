//! `remit export`.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use contracts::wire::upkeep::CreateExport;
use domain::ids::{RunId, ThreadId};
use eventlog::{
    EventLog, Position, StreamId,
    export::{ExportRequest, Filter, Made, SigningKey},
};
use jiff::Timestamp;
use runtime::config::Config;

use super::backup::plain_name;

use crate::{
    args::{ExportArguments, Selection},
    context::{Context, existing_data_folder},
    failure::{Exit, Failure, exit_of},
    render, select,
    source::{Folder, Server, Source, open_log, open_views},
    work_bar::WorkBar,
};

/// Writes the events that are wanted into a new folder, signed.
pub(super) async fn export(context: &Context, arguments: ExportArguments) -> anyhow::Result<Exit> {
    if let (Some(from), Some(to)) = (arguments.from, arguments.to)
        && from >= to
    {
        return Err(Failure::usage("--from must be before --to").into());
    }
    let (folder, made) = match &context.global.server {
        Some(url) => on_server(context, Server::new(url)?, &arguments).await?,
        None => here(context, &arguments).await?,
    };
    if context.output.json {
        context.output.value(&made.manifest)?;
    } else {
        context.output.text(&render::export::made(context.output.screen, &folder, &made))?;
    }
    if made.manifest.events > made.manifest.erased {
        context.output.note("the export has the text of threads: keep it as safe as the data folder");
    }
    Ok(Exit::Done)
}

/// Has a server do it, in its own folder for backups.
async fn on_server(
    context: &Context,
    server: Server,
    arguments: &ExportArguments,
) -> anyhow::Result<(PathBuf, Made)> {
    if arguments.key.is_some() || arguments.restart {
        let refusal = Failure::usage("--key and --restart are not for a server, which has a key of its own");
        return Err(refusal.into());
    }
    let name = plain_name(&arguments.out, "an export")?;
    let ids = selected(&Source::Server(server.clone()), arguments, context).await?;
    let filter = serde_json::to_value(filter(arguments, ids)).context("could not ask for the export")?;
    let order = CreateExport { name: Some(name), filter: Some(filter), with_blobs: arguments.with_blobs };
    let mut bar = WorkBar::new("exporting", context.output.messages);
    let done = server.export(&order, &mut |progress| bar.show(progress)).await?;
    let manifest = done.manifest.context("the server does not say what is in the export")?;
    let manifest = serde_json::from_value(manifest)
        .context("the server made an export that this version of remit does not understand")?;
    Ok((PathBuf::from(done.path), Made { manifest, resumed_after: Position::ZERO }))
}

/// Opens the data folder, which nobody else may have open.
async fn here(context: &Context, arguments: &ExportArguments) -> anyhow::Result<(PathBuf, Made)> {
    let config = context.config(Vec::new())?.config;
    existing_data_folder(&config)?;
    let log = open_log(&config).await?;
    let outcome = export_from(context, &config, &log, arguments).await;
    log.close().await;
    Ok((arguments.out.clone(), outcome?))
}

async fn export_from(
    context: &Context,
    config: &Config,
    log: &EventLog,
    arguments: &ExportArguments,
) -> anyhow::Result<Made> {
    let (data, out) = (config.log.path.as_path(), arguments.out.clone());
    let ids = ids_here(context, data, log, arguments).await?;
    let wanted = Wanted {
        filter: filter(arguments, ids),
        with_blobs: arguments.with_blobs,
        is_anew: arguments.restart,
    };
    let key = arguments.key.as_deref().or(config.log.signing_key.as_deref());
    let key = SigningKey::of(key, data).context("could not get the signing key")?;
    let bar = WorkBar::new("exporting", context.output.messages);
    let (exported, target) = (log.clone(), out.clone());
    let task = tokio::task::spawn_blocking(move || make(&exported, &target, wanted, &key, bar));
    let made = task.await.context("the export stopped by a defect")?;
    made.with_context(|| format!("could not export {} to {}", data.display(), out.display()))
}

/// What is exported, and how.
struct Wanted {
    filter: Filter,
    with_blobs: bool,
    is_anew: bool,
}

fn make(
    log: &EventLog,
    target: &Path,
    wanted: Wanted,
    key: &SigningKey,
    mut bar: WorkBar,
) -> Result<Made, eventlog::export::ExportError> {
    eventlog::export::export(
        log,
        ExportRequest {
            target,
            filter: wanted.filter,
            with_blobs: wanted.with_blobs,
            is_anew: wanted.is_anew,
            key,
            made_at: Timestamp::now(),
            made_by: concat!("remit ", env!("CARGO_PKG_VERSION")).to_owned(),
            progress: &mut |progress| {
                bar.show(progress);
                ControlFlow::Continue(())
            },
        },
    )
}

/// A thread and a run, by whole ids.
type Ids = (Option<ThreadId>, Option<RunId>);

fn filter(arguments: &ExportArguments, (thread_id, run_id): Ids) -> Filter {
    Filter {
        thread_id,
        run_id,
        owner: arguments.owner.clone(),
        from: arguments.from,
        to: arguments.to,
        event_types: arguments.event_types.clone(),
    }
}

/// The ids may be given by their beginnings.
async fn selected(source: &Source, arguments: &ExportArguments, context: &Context) -> anyhow::Result<Ids> {
    if arguments.thread.is_none() && arguments.run.is_none() {
        return Ok((None, None));
    }
    let selection = Selection { thread: arguments.thread.clone(), run: arguments.run.clone() };
    let selected = select::select(source, &selection, &context.output).await?;
    let run_id = selected.run_id.map(|run_id| run_id.parse()).transpose()?;
    Ok((Some(selected.thread_id.parse()?), run_id))
}

/// A thread that was erased is in no view: then its whole id is what it takes. Views are opened only
/// when something is named.
async fn ids_here(
    context: &Context,
    data: &Path,
    log: &EventLog,
    arguments: &ExportArguments,
) -> anyhow::Result<Ids> {
    if arguments.thread.is_none() && arguments.run.is_none() {
        return Ok((None, None));
    }
    let source = Source::Folder(Box::new(Folder::of(log.clone(), open_views(data, log)?)));
    match selected(&source, arguments, context).await {
        Err(error) if exit_of(&error) == Exit::NotFound => match &arguments.thread {
            Some(thread_id) if has_stream(log, thread_id)? => {
                Ok((Some(thread_id.clone()), arguments.run.clone()))
            }
            Some(_) | None => Err(error),
        },
        found => found,
    }
}

/// Whether the thread is one that was erased.
fn has_stream(log: &EventLog, thread_id: &ThreadId) -> anyhow::Result<bool> {
    let tail = log.stream_tail(&StreamId::Thread(thread_id.clone()));
    Ok(tail.context("could not read the log")?.is_some() && log.is_erased(thread_id))
}
