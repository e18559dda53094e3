//! `remit doctor`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use eventlog::{
    Options,
    repair::{self, Cut, RepairPlan},
};
use runtime::config::Config;
use serde::Serialize;

use crate::{
    args::DoctorArguments,
    confirmation::Question,
    context::{Context, existing_data_folder},
    diagnosis::{self, Diagnosis, Finding, server},
    failure::{Exit, Failure},
    opening::options_of,
    output::Output,
    render,
    source::{Server, open_log},
};

/// What a program reads.
#[derive(Serialize)]
struct Outcome<'a> {
    /// None where a server was asked.
    data: Option<&'a Path>,
    healthy: bool,
    repaired: Option<&'a Repaired>,
    checks: &'a [Finding],
}

/// What was cut.
#[derive(Serialize)]
struct Repaired {
    journal: PathBuf,
    cut_bytes: u64,
    /// Keeps what was cut.
    kept: PathBuf,
}

/// Says what is wrong with a data folder, and cuts a torn end if that was asked for.
pub(super) async fn doctor(context: &Context, arguments: &DoctorArguments) -> anyhow::Result<Exit> {
    if let Some(url) = &context.global.server {
        return ask_server(context, url, arguments).await;
    }
    let config = context.config(Vec::new())?.config;
    let (data, options) = (existing_data_folder(&config)?, options_of(&config)?);
    let repaired =
        if arguments.repair { repair(&context.output, &data, &options, arguments.yes)? } else { None };
    if arguments.repair {
        erase_again(&context.output, &config, &options).await?;
    }
    let looked_at = data.clone();
    let task = tokio::task::spawn_blocking(move || diagnosis::diagnose(&looked_at, &options));
    let mut diagnosis = task.await.context("the diagnosis stopped by a defect")?;
    if let Some(url) = diagnosis.server.clone() {
        diagnosis.findings.extend(server::ask(&url).await);
    }
    print(context, Some(&data), &diagnosis, repaired.as_ref())?;
    Ok(diagnosis.exit())
}

/// Asks a server how it is. What is wrong with a folder is seen when nobody has it open.
async fn ask_server(context: &Context, url: &str, arguments: &DoctorArguments) -> anyhow::Result<Exit> {
    if arguments.repair {
        let refusal = Failure::usage("a journal is repaired in the data folder, which a server has open");
        return Err(refusal.hint("stop the server, and leave out --server").into());
    }
    let server = Server::new(url)?;
    let findings = server::ask(server.address()).await;
    let diagnosis = Diagnosis { findings, server: Some(url.to_owned()) };
    print(context, None, &diagnosis, None)?;
    Ok(diagnosis.exit())
}

fn print(
    context: &Context,
    data: Option<&Path>,
    diagnosis: &Diagnosis,
    repaired: Option<&Repaired>,
) -> anyhow::Result<()> {
    if !context.output.json {
        return context.output.text(&render::doctor::findings(context.output.screen, &diagnosis.findings));
    }
    let healthy = diagnosis.exit() == Exit::Done;
    context.output.value(&Outcome { data, healthy, repaired, checks: &diagnosis.findings })
}

/// Destroys keys again that an older copy of the keys has brought back. That they are to be destroyed was
/// said when they were erased, so nobody is asked.
async fn erase_again(output: &Output, config: &Config, options: &Options) -> anyhow::Result<()> {
    // What cannot be looked at is told of by the diagnosis.
    let count = diagnosis::revived(&config.log.path, options).unwrap_or(0);
    if count > 0 {
        open_log(config).await?.close().await;
        output.note(&format!("destroyed the keys again of what was erased and could be read: {count}"));
    }
    Ok(())
}

/// Shows what would be cut, asks, and cuts it. None if nothing is torn.
fn repair(
    output: &Output,
    data: &Path,
    options: &Options,
    is_agreed: bool,
) -> anyhow::Result<Option<Repaired>> {
    let cut = match repair::plan_repair(data, options).context("could not plan a repair")? {
        RepairPlan::Nothing => {
            output.note("nothing is torn, so there is nothing to cut");
            return Ok(None);
        }
        RepairPlan::Refused { reason } => {
            let what = format!("nothing can be cut without losing durable events: {reason}");
            let hint = "keep the folder as it is, and restore a backup";
            return Err(Failure::new(Exit::Integrity, what).hint(hint).into());
        }
        RepairPlan::Cut(cut) => cut,
    };
    show(output, &cut);
    let question = Question { text: "Cut them off?", refusal: "nothing was cut" };
    question.confirm(output, is_agreed)?;
    let kept = repair::apply(&cut, options).context("could not cut the torn end")?;
    output.note(&format!("cut; what was cut is kept in {}", kept.display()));
    Ok(Some(Repaired { journal: cut.journal, cut_bytes: cut.cut_bytes, kept }))
}

fn show(output: &Output, cut: &Cut) {
    let position = |position: Option<eventlog::Position>| match position {
        Some(position) => position.to_string(),
        None => "unknown".to_owned(),
    };
    output.message(&format!(
        "{}: {} bytes stay, and {} bytes behind them go.\nThe last commit that stays in it ends at position {}; the \
         log is known to have reached {}.",
        cut.journal.display(),
        cut.keep_bytes,
        cut.cut_bytes,
        position(cut.last_position),
        position(cut.noted)
    ));
}
