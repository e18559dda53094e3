//! `remit erase`.

use anyhow::Context as _;
use contracts::wire::erasure::{Erased, OwnerErased};
use domain::ids::{RunId, ThreadId, UserId};
use runtime::{Erase, EraseError, Runtime};

use crate::{
    args::EraseArguments,
    confirmation::Question,
    context::{Context, existing_data_folder},
    failure::{Exit, Failure, exit_of},
    host::{self, Host},
    output::Output,
    select,
    source::{Folder, Server, Source},
};

/// What was erased.
enum Outcome {
    One(Erased),
    OfOwner(OwnerErased),
}

/// Erases a thread, a run or all threads of an owner for good, after asking whether that is meant.
pub(super) async fn erase(context: &Context, arguments: EraseArguments) -> anyhow::Result<Exit> {
    match &context.global.server {
        Some(url) => {
            let server = Server::new(url)?;
            let what = meant(&Source::Server(server.clone()), &arguments).await?;
            confirm(&context.output, &what, arguments.yes)?;
            let outcome = match &what {
                Erase::Thread(thread_id) => Outcome::One(server.erase(thread_id.as_str(), None).await?),
                Erase::Run(thread_id, run_id) => {
                    Outcome::One(server.erase(thread_id.as_str(), Some(run_id.as_str())).await?)
                }
                Erase::Owner(owner) => Outcome::OfOwner(server.erase_owner(owner.as_str()).await?),
            };
            tell(&context.output, &what, &outcome)
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
    let what = meant(&folder, &arguments).await?;
    drop(folder);
    confirm(&context.output, &what, arguments.yes)?;
    let outcome = erased(&host.runtime, &what).await?;
    tell(&context.output, &what, &outcome)
}

async fn erased(runtime: &Runtime, what: &Erase) -> anyhow::Result<Outcome> {
    let mut ids = Vec::new();
    for one in runtime.begin_erasing(what.clone()).await.map_err(refused)? {
        ids.push(one.done().await.map_err(refused)?);
    }
    let all = runtime.erasures().context("could not read the erasures")?;
    let of_these = all.into_iter().filter(|erasure| ids.contains(&erasure.erasure_id));
    let mut erasures: Vec<_> = of_these.map(api::records::erasure).collect();
    match (what, erasures.pop()) {
        (Erase::Thread(_) | Erase::Run(..), Some(one)) => {
            Ok(Outcome::One(Erased { deleted: one.deleted, erasure_id: one.erasure_id }))
        }
        (_, last) => {
            erasures.extend(last);
            Ok(Outcome::OfOwner(api::records::owner_erased(erasures)))
        }
    }
}

fn refused(error: EraseError) -> anyhow::Error {
    let exit = match &error {
        EraseError::UnknownThread(_) | EraseError::UnknownRun(_) | EraseError::UnknownOwner(_) => {
            Exit::NotFound
        }
        EraseError::InPlain(_) | EraseError::ShuttingDown => Exit::Refused,
        EraseError::Unfinished(_)
        | EraseError::Keys { .. }
        | EraseError::Folders { .. }
        | EraseError::Read(_)
        | EraseError::Registry(_)
        | EraseError::Journal(_) => Exit::Failed,
    };
    let hint = "what was begun is carried on when you ask again";
    let failure = Failure::new(exit, "could not erase it");
    let failure = if exit == Exit::Failed { failure.hint(hint) } else { failure };
    anyhow::Error::new(error).context(failure)
}

/// What the arguments name. What is no longer listed may have been erased in part: then its whole id is
/// what it takes.
async fn meant(source: &Source, arguments: &EraseArguments) -> anyhow::Result<Erase> {
    if let Some(owner) = &arguments.owner {
        return Ok(Erase::Owner(owner.clone()));
    }
    let thread = match arguments.named.as_ref().or(arguments.thread.as_ref()) {
        Some(wanted) => Some(thread_meant(source, wanted).await?),
        None => None,
    };
    match (thread, &arguments.run) {
        (thread, Some(wanted)) => run_meant(source, thread, wanted).await,
        (Some(thread_id), None) => Ok(Erase::Thread(thread_id)),
        (None, None) => Err(Failure::usage("nothing to erase was named").into()),
    }
}

async fn thread_meant(source: &Source, wanted: &ThreadId) -> anyhow::Result<ThreadId> {
    match select::thread_id(source, wanted.as_str()).await {
        Ok(thread_id) => Ok(thread_id.parse()?),
        Err(error) if exit_of(&error) == Exit::NotFound => Ok(wanted.clone()),
        Err(error) => Err(error),
    }
}

async fn run_meant(source: &Source, thread: Option<ThreadId>, wanted: &RunId) -> anyhow::Result<Erase> {
    let found = select::run_of(source, thread.as_ref().map(ThreadId::as_str), wanted.as_str()).await;
    match (found, thread) {
        (Ok(run), _) => Ok(Erase::Run(run.thread_id.parse()?, run.run_id.parse()?)),
        (Err(error), Some(thread_id)) if exit_of(&error) == Exit::NotFound => {
            Ok(Erase::Run(thread_id, wanted.clone()))
        }
        (Err(error), _) => Err(error),
    }
}

/// Goes on only if somebody says so: with `--yes`, or on the terminal.
fn confirm(output: &Output, what: &Erase, yes: bool) -> anyhow::Result<()> {
    let text = match what {
        Erase::Thread(thread_id) => format!(
            "Thread {thread_id}, with all its runs, cards and files in the data folder, will be gone for good.\n\
             Erase it?"
        ),
        Erase::Run(thread_id, run_id) => format!(
            "Run {run_id} of thread {thread_id}, with its cards, will be gone for good. Its files in the folders of \
             the thread stay.\nErase it?"
        ),
        Erase::Owner(owner) => format!(
            "All threads of {}, with their runs, cards and files in the data folder, will be gone for good.\n\
             Erase them?",
            owner_shown(owner)
        ),
    };
    Question { text: &text, refusal: "nothing was erased" }.confirm(output, yes)
}

/// An owner's name may hold anything.
fn owner_shown(owner: &UserId) -> String {
    crate::render::printable::line(owner.as_str())
}

fn tell(output: &Output, what: &Erase, outcome: &Outcome) -> anyhow::Result<Exit> {
    match outcome {
        Outcome::One(erased) if output.json => output.value(erased)?,
        Outcome::OfOwner(erased) if output.json => output.value(erased)?,
        Outcome::One(Erased { deleted, erasure_id }) => {
            let what = match what {
                Erase::Thread(thread_id) => format!("thread {thread_id}"),
                Erase::Run(thread_id, run_id) => format!("run {run_id} of thread {thread_id}"),
                Erase::Owner(owner) => format!("the threads of {}", owner_shown(owner)),
            };
            output.text(&format!("erased {what}: {deleted} events (erasure {erasure_id})"))?;
        }
        Outcome::OfOwner(OwnerErased { erasures, .. }) => {
            for one in erasures {
                let (thread_id, deleted, id) = (&one.thread_id, one.deleted, &one.erasure_id);
                output.text(&format!("erased thread {thread_id}: {deleted} events (erasure {id})"))?;
            }
        }
    }
    Ok(Exit::Done)
}
