//! Measures how fast the views are made from a log, beside how fast the log itself is read.
//!
//! The log is one of agents at work: runs with delegations, each with turns of a reply, a tool call
//! and its result, so that every view has its part in it. Figures of one machine say little; what
//! the folding costs beside the reading, in the same run, says more.
//!
//! Events "per core" are those per second of the whole process's processor time: that of the reader and of
//! the folds, and that of the engine's own threads, which write and merge what the folds made.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use eventlog::{AppendError, EventLog, Options, Position, bench::cpu_time};
use serde::Serialize;

use crate::{CatchUpError, OpenError, Projections};

mod history;

pub use history::{BenchHistory, DelegationSize};

/// Events that are read at once.
const PAGE: usize = 1_000;

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
    Log(#[from] eventlog::OpenError),
    /// Events could not be made or recorded.
    #[error("could not fill the log that is measured")]
    Fill(#[from] FillError),
    /// The log could not be read.
    #[error("could not read the log that is measured")]
    Read(#[from] eventlog::ReadError),
    /// The views could not be opened.
    #[error("could not open the views that are measured")]
    Views(#[from] OpenError),
    /// The views could not be made.
    #[error("could not make the views that are measured")]
    CatchUp(#[from] CatchUpError),
}

/// Why a log could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The log took nothing.
    #[error("the log did not take the events")]
    Append(#[from] AppendError),
    /// What was to be recorded is no event.
    #[error("an event cannot be written as JSON")]
    Encode(#[from] serde_json::Error),
    /// What was to be recorded breaks a rule of the domain.
    #[error("the history does not make sense: {0}")]
    History(String),
    /// Nothing could wait for the log.
    #[error("could not wait for the log")]
    Runtime(#[from] io::Error),
}

/// How fast something went through the log.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Speed {
    /// Events per second.
    pub events_per_second: f64,
    /// Events per second of processor time, of all threads together.
    pub events_per_cpu_second: f64,
    /// Processor time for one event, in microseconds.
    pub cpu_us_per_event: f64,
}

/// What making all views costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RebuildReport {
    /// Events in the log.
    pub events: u64,
    /// All views, made from the first event on.
    #[serde(flatten)]
    pub speed: Speed,
    /// How many views there are.
    pub views: usize,
    /// Their names.
    pub view_names: Vec<&'static str>,
    /// The log read in order, with nothing made of it.
    pub read: Speed,
    /// Processor time for one event beyond that of reading it, in microseconds.
    pub fold_cpu_us_per_event: f64,
    /// Stored bytes of one event: all of the log's files, indexes included.
    pub log_bytes_per_event: f64,
    /// The most memory that the process had, in MiB.
    pub peak_rss_mib: f64,
}

/// Fills a folder of its own with events, and measures making all views from them. Call it outside of
/// async code.
pub fn rebuild(folder: &Path, events: u64) -> Result<RebuildReport, BenchError> {
    new_folder(folder)?;
    let log = EventLog::open(&folder.join("log"), Options::default())?;
    BenchHistory::new(DelegationSize::default()).fill(&log, events)?;
    measure(&log, &folder.join("views"))
}

/// Measures making all views of a log that is there.
pub fn measure(log: &EventLog, views: &Path) -> Result<RebuildReport, BenchError> {
    let events = log.head().get();
    let started = Watch::start();
    read(log)?;
    let read = started.speed(events);
    let views = Projections::open(views, log.clone())?;
    let started = Watch::start();
    views.catch_up()?;
    let speed = started.speed(events);
    Ok(RebuildReport {
        events,
        speed,
        views: views.names().len(),
        view_names: views.names(),
        read,
        fold_cpu_us_per_event: speed.cpu_us_per_event - read.cpu_us_per_event,
        log_bytes_per_event: log.disk_bytes()? as f64 / events.max(1) as f64,
        peak_rss_mib: eventlog::bench::peak_rss_mib(),
    })
}

fn read(log: &EventLog) -> Result<(), BenchError> {
    let mut after = Position::ZERO;
    while let Some(last) = log.read_all(after, PAGE)?.last() {
        after = last.position;
    }
    Ok(())
}

/// Makes the folder, or refuses one that is in use.
fn new_folder(folder: &Path) -> Result<(), BenchError> {
    let failed = |source| BenchError::Folder { folder: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    match std::fs::read_dir(folder).map_err(failed)?.next() {
        None => Ok(()),
        Some(_) => Err(BenchError::NotEmpty { folder: folder.to_owned() }),
    }
}

/// Both clocks.
struct Watch {
    started: Instant,
    cpu: Duration,
}

impl Watch {
    fn start() -> Self {
        Self { started: Instant::now(), cpu: cpu_time() }
    }

    fn speed(&self, events: u64) -> Speed {
        let cpu = cpu_time().saturating_sub(self.cpu).as_secs_f64();
        let events = events.max(1) as f64;
        Speed {
            events_per_second: events / self.started.elapsed().as_secs_f64(),
            events_per_cpu_second: events / cpu,
            cpu_us_per_event: cpu * 1e6 / events,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_of_the_measured_log_is_taken_by_every_view() {
        let folder = tempfile::tempdir().unwrap();
        let report = rebuild(&folder.path().join("bench"), 400).unwrap();
        assert!(report.events >= 400, "{report:?}");
        assert_eq!(report.views, 8);
        assert_eq!(
            report.view_names,
            Projections::in_memory(EventLog::in_memory(Options::default())).unwrap().names()
        );
        let error = rebuild(folder.path(), 400).unwrap_err();
        assert!(matches!(error, BenchError::NotEmpty { .. }), "{error}");
        let log = EventLog::open(&folder.path().join("bench/log"), Options::default()).unwrap();
        let views = Projections::open(&folder.path().join("bench/views"), log.clone()).unwrap();
        for view in views.health().unwrap() {
            assert_eq!((view.lag_events, view.parked), (0, 0), "{}", view.name);
        }
        let threads = views.threads(None, 10).unwrap();
        let runs = views.runs(&threads[0].thread_id, None, 10).unwrap();
        assert!(runs[0].status.is_terminal() && runs[0].delegations_requested > 1, "{:?}", runs[0]);
    }
}
