//! `remit doctor`.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use eventlog::{
    Options, Position,
    repair::{self, Cut, RepairPlan},
};
use serde::Serialize;

use crate::{
    args::DoctorArguments,
    context::{Context, existing_data_folder},
    diagnosis::{self, Diagnosis, Finding},
    failure::{Exit, Failure},
    output::Output,
    render,
};

/// A server that does not say in this time whether it takes work has trouble.
const READY_TIMEOUT: Duration = Duration::from_secs(2);

/// What a program reads.
#[derive(Serialize)]
struct Outcome<'a> {
    data: &'a Path,
    healthy: bool,
    repaired: Option<&'a Repaired>,
    checks: &'a [Finding],
}

/// What was done.
#[derive(Serialize)]
struct Repaired {
    /// The file with the torn end, if there was one.
    segment: Option<PathBuf>,
    cut_bytes: u64,
    /// Keeps what was cut.
    kept: Option<PathBuf>,
    /// The last position that the new index has.
    indexed: Position,
}

/// Says what is wrong with a data folder, and cuts a torn end if that was asked for.
pub(super) async fn doctor(context: &Context, arguments: &DoctorArguments) -> anyhow::Result<Exit> {
    context.here_only("doctor")?;
    let data = existing_data_folder(&context.config(Vec::new())?.config)?;
    let repaired = arguments.repair.then(|| repair(&context.output, &data, arguments.yes)).transpose()?;
    let looked_at = data.clone();
    let task = tokio::task::spawn_blocking(move || diagnosis::diagnose(&looked_at, &Options::default()));
    let mut diagnosis = task.await.context("the diagnosis stopped by a defect")?;
    if let Some(url) = diagnosis.server.clone() {
        diagnosis.findings.push(ask_server(&url).await);
    }
    print(context, &data, &diagnosis, repaired.as_ref())?;
    Ok(diagnosis.exit())
}

fn print(
    context: &Context,
    data: &Path,
    diagnosis: &Diagnosis,
    repaired: Option<&Repaired>,
) -> anyhow::Result<()> {
    if !context.output.json {
        return context.output.text(&render::doctor::findings(context.output.screen, &diagnosis.findings));
    }
    let healthy = diagnosis.exit() == Exit::Done;
    context.output.value(&Outcome { data, healthy, repaired, checks: &diagnosis.findings })
}

/// A server that holds the folder knows whether its log takes writes.
async fn ask_server(url: &str) -> Finding {
    let ask = async {
        let client = reqwest::Client::builder().timeout(READY_TIMEOUT).build()?;
        let answer = client.get(format!("{url}/readyz")).send().await?;
        let status = answer.status();
        Ok::<_, reqwest::Error>((status, answer.text().await?))
    };
    match ask.await {
        Ok((status, _)) if status.is_success() => Finding::ok("server", "it takes work"),
        Ok((status, text)) => Finding::problem(
            "server",
            Exit::Failed,
            format!("it takes no work ({status}): {text}"),
            "free what it needs, and start it again",
        ),
        Err(error) => {
            Finding::warning("server", format!("it does not answer: {error}"), "look at its messages")
        }
    }
}

/// Shows what would be cut, asks, and cuts it; then makes the index anew.
fn repair(output: &Output, data: &Path, is_agreed: bool) -> anyhow::Result<Repaired> {
    let options = Options::default();
    let cut = match repair::plan_repair(data, &options).context("could not plan a repair")? {
        RepairPlan::Nothing => {
            output.note("nothing is torn, so there is nothing to cut");
            let indexed = rebuild_index(output, data, &options)?;
            return Ok(Repaired { segment: None, cut_bytes: 0, kept: None, indexed });
        }
        RepairPlan::Refused { reason } => {
            let what = format!("nothing can be cut without losing durable events: {reason}");
            let hint = "keep the folder as it is, and restore a backup";
            return Err(Failure::new(Exit::Integrity, what).hint(hint).into());
        }
        RepairPlan::Cut(cut) => cut,
    };
    show(output, &cut);
    if !is_agreed && !ask()? {
        return Err(Failure::new(Exit::Refused, "nothing was cut").into());
    }
    let kept = repair::apply(&cut, &options).context("could not cut the torn end")?;
    output.note(&format!("cut; what was cut is kept in {}", kept.display()));
    let indexed = rebuild_index(output, data, &options)?;
    Ok(Repaired { segment: Some(cut.segment), cut_bytes: cut.cut_bytes, kept: Some(kept), indexed })
}

fn rebuild_index(output: &Output, data: &Path, options: &Options) -> anyhow::Result<Position> {
    let indexed = repair::rebuild_index(data, options).context("could not make the index anew")?;
    output.note(&format!("the index was made anew, up to position {indexed}"));
    Ok(indexed)
}

fn show(output: &Output, cut: &Cut) {
    let noted = cut.noted.map_or("unknown".to_owned(), |position| position.to_string());
    output.message(&format!(
        "{}: {} bytes stay, and {} bytes behind them go.\nThe last commit that stays in it ends at position {}; the \
         log is known to have reached {}.",
        cut.segment.display(),
        cut.keep_bytes,
        cut.cut_bytes,
        cut.last_position,
        noted
    ));
}

fn ask() -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        let refusal = Failure::new(Exit::Refused, "nothing was cut: nobody is there to be asked");
        return Err(refusal.hint("pass --yes to cut without asking").into());
    }
    let mut stderr = io::stderr().lock();
    write!(stderr, "Cut them off? [y/N] ").and_then(|()| stderr.flush()).context("could not ask")?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("could not read the answer")?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
