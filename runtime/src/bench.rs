//! Measures agents at work: what Remit itself takes of a turn, beside the model and the tool.
//!
//! Runs delegate all at once, so that most delegations wait for a slot, and the log is on a disk, so that
//! every fact is durable before its agent goes on. The model answers after a fixed time and
//! the tool at once, so what passes between a reply and the agent's next question is Remit's.

mod stub;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use domain::{event::RunStatus, message::HumanMessage};
use eventlog::{
    EventLog, OpenError, Options,
    bench::{cpu_time, peak_rss_mib},
};
use serde::Serialize;

use self::stub::{Look, PacedModel, Times};
use crate::{
    CancelError, CreateThreadError, NewThread, RunRequest, Runtime, RuntimeParts, StartRunError, SystemClock,
    SystemIds,
    config::Config,
    models::{
        Models,
        retry::{RetryPolicy, SystemPauses},
    },
    tools::Toolbox,
};

/// What is asked of the agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AgentsLoad {
    /// Leads that work at once, each on a thread of its own: from 1.
    pub runs: u32,
    /// What each of them delegates in one reply: 1 to 50. No more than `max_running` of one reply are
    /// carried out.
    pub delegations_per_run: u32,
    /// Model calls of each subagent, all but the last with a tool call: from 1.
    pub turns_per_delegation: u32,
    /// Subagents that work at once: 1 to 64.
    pub max_running: u32,
    /// How long the model takes for a reply, in milliseconds.
    pub model_ms: u64,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentsReport {
    /// Delegations that were completed.
    pub delegations: u64,
    /// Model calls of leads and subagents.
    pub turns: u64,
    /// From a subagent's reply to its next question, in microseconds: recording the reply, running
    /// its tool call, recording the result, and making the next request.
    pub overhead_per_turn_us: Overhead,
    /// The most memory that the process had, in MiB.
    pub peak_rss_mib: f64,
    /// Processor time of the whole process for one turn, in microseconds; queue, ends and deliveries
    /// are in it.
    pub cpu_us_per_turn: f64,
    /// Events that were recorded.
    pub events: u64,
    /// How long all of it took.
    pub seconds: f64,
    /// What was asked of the agents.
    pub load: AgentsLoad,
}

/// Percentiles in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overhead {
    /// Half of the turns took no longer.
    pub p50: f64,
    /// All but one in a hundred took no longer.
    pub p99: f64,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The folder has something in it: measuring would add to it.
    #[error("{} is not empty: measure in a folder of its own", .folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder could not be made.
    #[error("could not make the folder {}", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The log could not be opened.
    #[error("could not open the log that is measured")]
    Log(#[from] OpenError),
    /// A thread could not be made.
    #[error("could not make a thread to measure")]
    Thread(#[from] CreateThreadError),
    /// A run could not be started.
    #[error("could not start a run to measure")]
    Run(#[from] StartRunError),
    /// A run could not be waited for.
    #[error("could not wait for a run that is measured")]
    Wait(#[from] CancelError),
    /// A run did not come out as it has to.
    #[error("a run that is measured ended as {}", .0.as_str())]
    Ended(RunStatus),
}

/// Lets agents work in a folder of its own, and measures them.
pub async fn agents(folder: &Path, load: AgentsLoad) -> Result<AgentsReport, BenchError> {
    let failed = |source| BenchError::Folder { folder: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    if std::fs::read_dir(folder).map_err(failed)?.next().is_some() {
        return Err(BenchError::NotEmpty { folder: folder.to_owned() });
    }
    let log = EventLog::open(folder, Options::default())?;
    let measured = agents_on(&log, folder, load).await;
    log.close().await;
    measured
}

/// The same, on a log that is there.
pub(crate) async fn agents_on(
    log: &EventLog,
    folder: &Path,
    load: AgentsLoad,
) -> Result<AgentsReport, BenchError> {
    let times = Times::default();
    let runtime = runtime(log, folder, load, &times);
    let (started, cpu, before) = (Instant::now(), cpu_time(), log.head());
    let mut runs = Vec::new();
    for number in 0..load.runs {
        let thread_id = runtime.create_thread(NewThread::default()).await?;
        let input = vec![HumanMessage { content: stub::lead_task(number), id: None, images: Vec::new() }];
        let mut request = RunRequest::saying(input);
        request.max_concurrent_subagents = Some(load.delegations_per_run);
        request.max_total_subagents = Some(load.delegations_per_run);
        runs.push((runtime.start_run(&thread_id, request).await?, thread_id));
    }
    for (run_id, thread_id) in runs {
        let status = runtime.wait(&thread_id, &run_id).await?;
        if status != RunStatus::Success {
            return Err(BenchError::Ended(status));
        }
    }
    let (seconds, cpu) = (started.elapsed().as_secs_f64(), cpu_time().saturating_sub(cpu));
    runtime.shutdown().await;
    let turns = times.turns();
    Ok(AgentsReport {
        delegations: times.done(),
        turns,
        overhead_per_turn_us: overhead(times.overheads()),
        peak_rss_mib: peak_rss_mib(),
        cpu_us_per_turn: cpu.as_secs_f64() * 1e6 / turns.max(1) as f64,
        events: log.head().get() - before.get(),
        seconds,
        load,
    })
}

fn runtime(log: &EventLog, folder: &Path, load: AgentsLoad, times: &Times) -> Runtime {
    let mut config = Config::default();
    config.subagent_runtime.max_running = load.max_running;
    // Everybody who finds no slot waits.
    config.subagent_runtime.queue_capacity = load.runs.saturating_mul(load.delegations_per_run);
    let parts = RuntimeParts {
        log: log.clone(),
        config,
        models: Models::of(PacedModel::new(load, times.clone())),
        data_folder: folder.to_owned(),
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds),
    };
    let toolbox = Toolbox::builtin().with(Arc::new(Look));
    Runtime::with_toolbox(parts, RetryPolicy::default(), Arc::new(SystemPauses), toolbox)
}

fn overhead(mut times: Vec<Duration>) -> Overhead {
    times.sort_unstable();
    let at = |hundredths: usize| {
        let place = times.len().saturating_sub(1) * hundredths / 100;
        times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    };
    Overhead { p50: at(50), p99: at(99) }
}
