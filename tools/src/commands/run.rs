//! `remit run`.

use anyhow::Context as _;
use contracts::wire::{
    delegation::Delegation,
    run::{Configurable, CreateRun, InputMessage, Run, RunConfig, RunInput},
};
use domain::{event::RunStatus, ids::RunId, limits::PROMPT_CHARS_MAX, message::HumanMessage};
use runtime::RunRequest;
use serde::Serialize;
use serde_json::Value;

use crate::{
    args::RunArguments,
    context::Context,
    failure::{Exit, Failure},
    host::{self, Host},
    progress::{Progress, watch::watch},
    remote_run::RemoteRun,
    render::{self, printable},
    select,
    source::{Folder, Server, Source},
};

/// What a program reads of a run that was watched.
#[derive(Serialize)]
struct Outcome<'a> {
    #[serde(flatten)]
    run: &'a Run,
    ledger: &'a [Delegation],
}

/// Gives a lead one task and watches it to its end. Only success is success.
pub(super) async fn run(context: &Context, arguments: RunArguments) -> anyhow::Result<Exit> {
    // Before a thread is made for it.
    check_prompt(&arguments.prompt)?;
    match &context.global.server {
        Some(url) => run_there(context, &Server::new(url)?, arguments).await,
        None => run_here(context, arguments).await,
    }
}

/// Refuses what no run can be started with.
fn check_prompt(prompt: &str) -> anyhow::Result<()> {
    if prompt.trim().is_empty() {
        let refusal = Failure::usage("the prompt holds no message with text");
        return Err(refusal.hint("say in words what to do: remit run \"What is in this folder?\"").into());
    }
    let chars = prompt.chars().count();
    if chars > PROMPT_CHARS_MAX {
        let refusal = format!("the prompt has {chars} characters, and at most {PROMPT_CHARS_MAX} fit");
        return Err(Failure::usage(refusal).hint("write long material to a file and name it").into());
    }
    Ok(())
}

async fn run_here(context: &Context, arguments: RunArguments) -> anyhow::Result<Exit> {
    if arguments.dir.is_some() && arguments.thread.is_some() {
        return Err(Failure::usage("--dir is for a new thread; leave out --thread or --dir").into());
    }
    if let Some(dir) = &arguments.dir {
        host::existing_folder(dir)?;
    }
    let config = context.config(Vec::new())?.config;
    let models = host::models(&config)?;
    // Before a thread is made for it.
    if let Some(name) = &arguments.model {
        models.get(name).map_err(|unknown| Failure::usage(unknown.to_string()))?;
    }
    let host = Host::open(config, models).await?;
    let outcome = run_on(context, &host, arguments).await;
    host.close_after(outcome).await
}

async fn run_on(context: &Context, host: &Host, arguments: RunArguments) -> anyhow::Result<Exit> {
    let thread_id = match &arguments.thread {
        Some(thread) => {
            let folder = Source::Folder(Box::new(Folder::of(host.log.clone(), host.views()?).named(context)));
            select::thread_id(&folder, thread.as_str()).await?.parse()?
        }
        None => host.create_thread(arguments.dir.as_deref()).await?,
    };
    let input = vec![HumanMessage { content: arguments.prompt, id: None, images: Vec::new() }];
    let allowed_subagents = arguments.subagents.map(|types| types.0);
    let request = RunRequest { model_name: arguments.model, allowed_subagents, ..RunRequest::saying(input) };
    let mut watched = host.start(&thread_id, request).await?;
    let run_id = watched.run_id.clone();
    context.output.note(&format!("thread {thread_id}, run {run_id}"));
    let progress = watch(&mut watched, Progress::new(run_id.clone()), &context.output).await?;
    let folder = Source::Folder(Box::new(Folder::of(host.log.clone(), host.views()?)));
    finish(context, &folder, &progress, (thread_id.as_str(), &run_id)).await
}

async fn run_there(context: &Context, server: &Server, arguments: RunArguments) -> anyhow::Result<Exit> {
    if arguments.dir.is_some() {
        let refusal = Failure::usage("--dir names a folder of this machine, which a server does not take");
        return Err(refusal.hint("leave out --server or --dir").into());
    }
    let source = Source::Server(server.clone());
    let thread_id = match &arguments.thread {
        Some(thread) => select::thread_id(&source, thread.as_str()).await?,
        None => server.create_thread().await?.thread_id,
    };
    let started = server.start_run(&thread_id, &request(arguments)).await?;
    let run_id: RunId =
        started.run_id.parse().context("the server named a run in a way that no run is named")?;
    context.output.note(&format!("thread {thread_id}, run {run_id}"));
    let mut watched = RemoteRun::new(server.clone(), &thread_id, &run_id);
    let progress = watch(&mut watched, Progress::new(run_id.clone()), &context.output).await?;
    finish(context, &source, &progress, (&thread_id, &run_id)).await
}

fn request(arguments: RunArguments) -> CreateRun {
    let message = InputMessage { role: "user".into(), content: Value::String(arguments.prompt), id: None };
    let allowed_subagents = arguments.subagents.map(|types| types.0);
    let configurable =
        Configurable { model_name: arguments.model, allowed_subagents, ..Configurable::default() };
    CreateRun {
        input: Some(RunInput { messages: vec![message] }),
        config: RunConfig { configurable },
        ..CreateRun::default()
    }
}

/// Prints the answer and the ledger, and says how it ended.
async fn finish(
    context: &Context,
    source: &Source,
    progress: &Progress,
    (thread_id, run_id): (&str, &RunId),
) -> anyhow::Result<Exit> {
    let ledger = source.ledger(thread_id, Some(run_id.as_str()), None).await?;
    if context.output.json {
        let run = source.run(thread_id, run_id.as_str()).await?;
        context.output.value(&Outcome { run: &run, ledger: &ledger })?;
    } else {
        print_answer(context, progress)?;
        if !ledger.is_empty() {
            let table = render::ledger::ledger(context.output.screen, &ledger);
            context.output.text(&format!("\n{table}"))?;
        }
    }
    Ok(ended(context, progress))
}

/// The lead's last words, where they are an answer: those of a run that was cut off are not.
pub(super) fn print_answer(context: &Context, progress: &Progress) -> anyhow::Result<()> {
    let is_answer = progress.ending().is_some_and(|ending| ending.status == RunStatus::Success);
    match progress.answer() {
        Some(answer) if is_answer => context.output.text(&printable::lines(answer)),
        Some(_) | None => Ok(()),
    }
}

/// Says how the run ended, unless it succeeded, and gives the exit code for it.
pub(super) fn ended(context: &Context, progress: &Progress) -> Exit {
    let Some(ending) = progress.ending() else { return Exit::Failed };
    if ending.status == RunStatus::Success {
        return Exit::Done;
    }
    let error = ending.error.as_deref().unwrap_or("no reason was recorded");
    let status = ending.status.as_str();
    context.output.message(&match ending.status {
        RunStatus::Interrupted => "error: the run was cancelled".to_owned(),
        RunStatus::Pending
        | RunStatus::Running
        | RunStatus::Success
        | RunStatus::Error
        | RunStatus::Timeout => {
            format!("error: the run ended with status {status}: {}", printable::lines(error))
        }
    });
    Exit::Failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::exit_of;

    #[test]
    fn a_prompt_says_something_and_not_too_much() {
        for bad in [String::new(), " \n".into(), "ä".repeat(PROMPT_CHARS_MAX + 1)] {
            assert_eq!(exit_of(&check_prompt(&bad).unwrap_err()), Exit::Usage);
        }
        assert!(check_prompt("What?").is_ok() && check_prompt(&"ä".repeat(PROMPT_CHARS_MAX)).is_ok());
    }
}
