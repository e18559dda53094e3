//! `remit cancel`.

use contracts::wire::run::Run;
use serde_json::json;

use crate::{
    args::CancelArguments,
    context::Context,
    failure::{Exit, Failure},
    select,
    source::{Server, Source},
};

/// What is to be cancelled.
enum What {
    Run { thread_id: String, run_id: String },
    Delegations { thread_id: String, run_id: String },
    Delegation { thread_id: String, run_id: String, delegation_id: String },
}

/// Cancels a run, all its delegations or one of them. What is at work is in a server's process, so
/// only a server can stop it.
pub(super) async fn cancel(context: &Context, arguments: &CancelArguments) -> anyhow::Result<Exit> {
    let Some(url) = &context.global.server else {
        let refusal = Failure::usage("only the server that works on a run can cancel it");
        return Err(refusal.hint("name it with --server URL; in `remit run`, Ctrl-C cancels").into());
    };
    let server = Server::new(url)?;
    let what = meant(&Source::Server(server.clone()), context, arguments).await?;
    let (thread_id, run_id, delegation_id) = match &what {
        What::Run { thread_id, run_id } => {
            server.cancel_run(thread_id, run_id).await?;
            (thread_id, run_id, None)
        }
        What::Delegations { thread_id, run_id } => {
            server.cancel_delegations(thread_id, run_id).await?;
            (thread_id, run_id, None)
        }
        What::Delegation { thread_id, run_id, delegation_id } => {
            server.cancel_delegation(thread_id, run_id, delegation_id).await?;
            (thread_id, run_id, Some(delegation_id))
        }
    };
    if context.output.json {
        context.output.value(&json!({
            "thread_id": thread_id, "run_id": run_id, "delegation_id": delegation_id, "cancelled": what.name(),
        }))?;
    } else {
        let name = what.name();
        let of = delegation_id.map(|id| format!("{id} of ")).unwrap_or_default();
        context.output.message(&format!("cancelling the {name}: {of}run {run_id}"));
    }
    Ok(Exit::Done)
}

impl What {
    const fn name(&self) -> &'static str {
        match self {
            Self::Run { .. } => "run",
            Self::Delegations { .. } => "delegations",
            Self::Delegation { .. } => "delegation",
        }
    }
}

async fn meant(source: &Source, context: &Context, arguments: &CancelArguments) -> anyhow::Result<What> {
    let wanted = &arguments.selection;
    if let Some(task) = arguments.task.name() {
        let found = select::select_task(source, wanted, task.as_str(), &context.output).await?;
        let (thread_id, run_id) = (found.thread_id, found.run_id);
        return Ok(What::Delegation { thread_id, run_id, delegation_id: found.delegation_id });
    }
    let selected = select::select(source, wanted, &context.output).await?;
    let run_id = match selected.run_id {
        Some(run_id) => run_id,
        None => newest(source.runs(Some(&selected.thread_id)).await?)?,
    };
    let thread_id = selected.thread_id;
    Ok(if arguments.delegations {
        What::Delegations { thread_id, run_id }
    } else {
        What::Run { thread_id, run_id }
    })
}

fn newest(runs: Vec<Run>) -> anyhow::Result<String> {
    let newest = runs.into_iter().next().map(|run| run.run_id);
    newest.ok_or_else(|| Failure::not_found("the thread has no runs").into())
}
