//! `remit erase`.

use anyhow::Context as _;
use contracts::wire::erasure::Erased;
use domain::ids::ThreadId;
use runtime::{EraseError, Runtime};

use crate::{
    args::EraseArguments,
    confirmation::Question,
    context::{Context, existing_data_folder},
    failure::{Exit, Failure, exit_of},
    host::{self, Host},
    select,
    source::{Folder, Server, Source},
};

/// Erases a thread for good, after asking whether that is meant.
pub(super) async fn erase(context: &Context, arguments: EraseArguments) -> anyhow::Result<Exit> {
    match &context.global.server {
        Some(url) => {
            let server = Server::new(url)?;
            let thread_id = meant(&Source::Server(server.clone()), &arguments.thread).await?;
            confirm(context, &thread_id, arguments.yes)?;
            let erased = server.erase(thread_id.as_str()).await?;
            tell(context, &thread_id, &erased)
        }
        None => erase_here(context, arguments).await,
    }
}

async fn erase_here(context: &Context, arguments: EraseArguments) -> anyhow::Result<Exit> {
    let config = context.config(Vec::new())?.config;
    existing_data_folder(&config)?;
    let models = host::models(&config)?;
    let host = Host::open(config, models).await?;
    let outcome = erase_on(context, &host, arguments).await;
    host.close_after(outcome).await
}

async fn erase_on(context: &Context, host: &Host, arguments: EraseArguments) -> anyhow::Result<Exit> {
    let folder = Source::Folder(Box::new(Folder::of(host.log.clone(), host.views()?)));
    let thread_id = meant(&folder, &arguments.thread).await?;
    drop(folder);
    confirm(context, &thread_id, arguments.yes)?;
    let erased = erased(&host.runtime, &thread_id).await?;
    tell(context, &thread_id, &erased)
}

async fn erased(runtime: &Runtime, thread_id: &ThreadId) -> anyhow::Result<Erased> {
    let erasure_id = runtime.erase_thread(thread_id).await.map_err(refused)?;
    let erasure = runtime.erasure(erasure_id).context("could not read the erasure")?;
    let deleted = erasure.map_or(0, |erasure| erasure.events);
    Ok(Erased { deleted, erasure_id: erasure_id.to_string() })
}

fn refused(error: EraseError) -> anyhow::Error {
    let exit = match &error {
        EraseError::UnknownThread(_) => Exit::NotFound,
        EraseError::InPlain(_) | EraseError::ShuttingDown => Exit::Refused,
        EraseError::Keys { .. }
        | EraseError::Folders { .. }
        | EraseError::Read(_)
        | EraseError::Registry(_)
        | EraseError::Journal(_) => Exit::Failed,
    };
    let hint = "what was begun is carried on when you ask again";
    let failure = Failure::new(exit, "could not erase the thread");
    let failure = if exit == Exit::Failed { failure.hint(hint) } else { failure };
    anyhow::Error::new(error).context(failure)
}

/// The thread, by its id or the beginning of it. One that is no longer listed may have been erased
/// in part: then its whole id is what it takes.
async fn meant(source: &Source, wanted: &ThreadId) -> anyhow::Result<ThreadId> {
    match select::thread_id(source, wanted.as_str()).await {
        Ok(thread_id) => Ok(thread_id.parse()?),
        Err(error) if exit_of(&error) == Exit::NotFound => Ok(wanted.clone()),
        Err(error) => Err(error),
    }
}

/// Goes on only if somebody says so: with `--yes`, or on the terminal.
fn confirm(context: &Context, thread_id: &ThreadId, yes: bool) -> anyhow::Result<()> {
    let text = format!(
        "Thread {thread_id}, with all its runs, cards and files in the data folder, will be gone for good.\n\
         Erase it?"
    );
    Question { text: &text, refusal: "nothing was erased" }.confirm(&context.output, yes)
}

fn tell(context: &Context, thread_id: &ThreadId, erased: &Erased) -> anyhow::Result<Exit> {
    if context.output.json {
        context.output.value(erased)?;
    } else {
        let Erased { deleted, erasure_id } = erased;
        context
            .output
            .text(&format!("erased thread {thread_id}: {deleted} events (erasure {erasure_id})"))?;
    }
    Ok(Exit::Done)
}
