//! `remit bench`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use eventlog::bench::{self, AppendLoad, AppendReport, BenchError, ReadReport, ReplayReport};
use runtime::bench::AgentsLoad;

use crate::{
    args::{Bench, BenchAgents, BenchAppend, BenchArguments},
    context::Context,
    failure::{Exit, Failure},
    render::{self, bench::ReadRecord},
};

/// Measures the log, and agents at work on it, on the disk at hand.
pub(super) async fn bench(context: &Context, arguments: &BenchArguments) -> anyhow::Result<Exit> {
    context.here_only("bench")?;
    let folder = Scratch::new(context.global.data.as_deref());
    let output = &context.output;
    if cfg!(debug_assertions) {
        output.warn("this is a debug build: figures say little; build with --release");
    }
    match &arguments.what {
        Bench::Append(append) => {
            let load = load(append);
            output.note(&format!("measuring for {} seconds", append.seconds));
            let report: AppendReport = measure(&folder, move |folder| bench::append(folder, load)).await?;
            if output.json {
                output.value(&report)?;
            } else {
                output.text(&render::bench::append(output.screen, &report))?;
            }
        }
        Bench::Read(log) => {
            let events = log.events;
            output.note(&format!("filling a log with {events} events"));
            let report: ReadReport = measure(&folder, move |folder| bench::read(folder, events)).await?;
            if output.json {
                output.value(&ReadRecord::new(&report))?;
            } else {
                output.text(&render::bench::read(output.screen, &report))?;
            }
        }
        Bench::Replay(log) => {
            let events = log.events;
            output.note(&format!("filling a log with {events} events"));
            let report: ReplayReport = measure(&folder, move |folder| bench::replay(folder, events)).await?;
            if output.json {
                output.value(&report)?;
            } else {
                output.text(&render::bench::replay(output.screen, &report))?;
            }
        }
        Bench::Rebuild(log) => {
            let events = log.events;
            output.note(&format!("filling a log with {events} events"));
            let path = folder.0.clone();
            let measured = tokio::task::spawn_blocking(move || projections::bench::rebuild(&path, events));
            let report = measured.await.context("the measurement stopped by a defect")?;
            let report = report.context("could not measure")?;
            if output.json {
                output.value(&report)?;
            } else {
                output.text(&render::bench::rebuild(output.screen, &report))?;
            }
        }
        Bench::Agents(agents) => {
            let load = agents_load(agents);
            let count = u64::from(load.runs) * u64::from(load.delegations_per_run);
            output.note(&format!("letting {} runs delegate {count} times", load.runs));
            let measured = runtime::bench::agents(&folder.0, load).await;
            let report = measured.context("could not measure")?;
            if output.json {
                output.value(&report)?;
            } else {
                output.text(&render::bench::agents(output.screen, &report))?;
            }
        }
    }
    Ok(Exit::Done)
}

const fn agents_load(arguments: &BenchAgents) -> AgentsLoad {
    AgentsLoad {
        runs: arguments.runs,
        delegations_per_run: arguments.delegations,
        turns_per_delegation: arguments.turns,
        max_running: arguments.max_running,
        model_ms: arguments.model_ms,
    }
}

fn load(arguments: &BenchAppend) -> AppendLoad {
    AppendLoad {
        writers: arguments.writers as usize,
        batch: arguments.batch as usize,
        time: Duration::from_secs(arguments.seconds),
        event_bytes: arguments.event_bytes as usize,
    }
}

/// A measurement blocks, and has threads of its own.
async fn measure<T: Send + 'static>(
    folder: &Scratch,
    work: impl FnOnce(&Path) -> Result<T, BenchError> + Send + 'static,
) -> anyhow::Result<T> {
    let path = folder.0.clone();
    let measured = tokio::task::spawn_blocking(move || work(&path)).await;
    measured.context("the measurement stopped by a defect")?.map_err(|error| match error {
        BenchError::Load { .. } => {
            anyhow::Error::new(error).context(Failure::usage("the options do not make sense"))
        }
        BenchError::NotEmpty { .. }
        | BenchError::Open(_)
        | BenchError::Append(_)
        | BenchError::Read(_)
        | BenchError::Replay(_)
        | BenchError::Verify(_)
        | BenchError::Damaged(_)
        | BenchError::Io { .. } => anyhow::Error::new(error).context("could not measure"),
    })
}

/// A folder for one measurement, removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(parent: Option<&Path>) -> Self {
        Self(parent.unwrap_or(Path::new(".")).join(format!("remit-bench-{}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is named, so that it can be removed by hand.
        if self.0.exists()
            && let Err(error) = std::fs::remove_dir_all(&self.0)
        {
            tracing::warn!(folder = %self.0.display(), %error, "the folder of the measurement is left");
        }
    }
}
