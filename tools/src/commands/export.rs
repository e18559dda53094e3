//! `remit export`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use domain::ids::{RunId, ThreadId};
use eventlog::{
    EventLog, StreamId,
    export::{ExportRequest, Filter, Made, SigningKey},
};
use jiff::Timestamp;
use runtime::config::{self, Config};

use crate::{
    args::{ExportArguments, Selection},
    context::{Context, existing_data_folder},
    failure::{Exit, Failure, exit_of},
    render, select,
    source::{Folder, Source, open_log, open_views},
    work_bar::WorkBar,
};

/// The signing key within the data folder.
const KEY_FILE: &str = "keys/export.key";

/// Writes the events that are wanted into a new folder, signed.
pub(super) async fn export(context: &Context, arguments: ExportArguments) -> anyhow::Result<Exit> {
    context.here_only("export")?;
    let config = context.config(Vec::new())?.config;
    existing_data_folder(&config)?;
    let log = open_log(&config).await?;
    let outcome = export_from(context, &config, &log, arguments).await;
    log.close().await;
    outcome
}

async fn export_from(
    context: &Context,
    config: &Config,
    log: &EventLog,
    arguments: ExportArguments,
) -> anyhow::Result<Exit> {
    let data = config.log.path.as_path();
    let filter = filter(context, data, log, &arguments).await?;
    let out = arguments.out.clone();
    let (key, is_anew) = (signing_key(&config.log, arguments.key)?, arguments.restart);
    let bar = WorkBar::new("exporting", context.output.messages);
    let (exported, target) = (log.clone(), out.clone());
    let task = tokio::task::spawn_blocking(move || make(&exported, &target, filter, is_anew, &key, bar));
    let made = task.await.context("the export stopped by a defect")?;
    let made = made.with_context(|| format!("could not export {} to {}", data.display(), out.display()))?;
    if context.output.json {
        context.output.value(&made.manifest)?;
    } else {
        context.output.text(&render::export::made(context.output.screen, &out, &made))?;
    }
    let text = "the export has the text of threads: keep it as safe as the data folder";
    if made.manifest.events > made.manifest.erased {
        context.output.note(text);
    }
    Ok(Exit::Done)
}

fn make(
    log: &EventLog,
    target: &Path,
    filter: Filter,
    is_anew: bool,
    key: &SigningKey,
    mut bar: WorkBar,
) -> Result<Made, eventlog::export::ExportError> {
    eventlog::export::export(
        log,
        ExportRequest {
            target,
            filter,
            is_anew,
            key,
            made_at: Timestamp::now(),
            made_by: concat!("remit ", env!("CARGO_PKG_VERSION")).to_owned(),
            progress: &mut |progress| bar.show(progress),
        },
    )
}

/// The key that the command names, or the configuration, or the folder's own.
fn signing_key(log: &config::Log, named: Option<PathBuf>) -> anyhow::Result<SigningKey> {
    let key = match named.as_ref().or(log.signing_key.as_ref()) {
        Some(path) => SigningKey::read(path),
        None => SigningKey::open_or_create(&log.path.join(KEY_FILE)),
    };
    key.context("could not get the signing key")
}

/// What is wanted, with whole ids.
async fn filter(
    context: &Context,
    data: &Path,
    log: &EventLog,
    arguments: &ExportArguments,
) -> anyhow::Result<Filter> {
    if let (Some(from), Some(to)) = (arguments.from, arguments.to)
        && from >= to
    {
        return Err(Failure::usage("--from must be before --to").into());
    }
    let (thread_id, run_id) = match (&arguments.thread, &arguments.run) {
        (None, None) => (None, None),
        (thread, run) => selected(context, data, log, thread.clone(), run.clone()).await?,
    };
    Ok(Filter {
        thread_id,
        run_id,
        owner: arguments.owner.clone(),
        from: arguments.from,
        to: arguments.to,
        event_types: arguments.event_types.clone(),
    })
}

/// The ids may be given by their beginnings. A thread that was erased is in no view: then its whole
/// id is what it takes.
async fn selected(
    context: &Context,
    data: &Path,
    log: &EventLog,
    thread: Option<ThreadId>,
    run: Option<RunId>,
) -> anyhow::Result<(Option<ThreadId>, Option<RunId>)> {
    let source = Source::Folder(Box::new(Folder::of(log.clone(), open_views(data, log)?)));
    let selection = Selection { thread: thread.clone(), run: run.clone() };
    match select::select(&source, &selection, &context.output).await {
        Ok(selected) => {
            let run_id = selected.run_id.map(|run_id| run_id.parse()).transpose()?;
            Ok((Some(selected.thread_id.parse()?), run_id))
        }
        Err(error) if exit_of(&error) == Exit::NotFound => match thread {
            Some(thread_id) if has_stream(log, &thread_id)? => Ok((Some(thread_id), run)),
            Some(_) | None => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Whether the thread is one that was erased.
fn has_stream(log: &EventLog, thread_id: &ThreadId) -> anyhow::Result<bool> {
    let tail = log.stream_tail(&StreamId::Thread(thread_id.clone()));
    Ok(tail.context("could not read the log")?.is_some() && log.is_erased(thread_id))
}
