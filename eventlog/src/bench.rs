//! Measures the log on the disk at hand, beside what the disk itself can do.
//!
//! Figures of one machine say little; the ratio to a raw file on the same disk, measured in turn in
//! the same run, says what the log costs. The events are like those of agents at work: JSON, each
//! of a run and a task of it, so every index is written.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;

use crate::{AppendError, OpenError, ReadError};

mod append;
mod load;
mod machine;
mod raw;
mod read;
mod replay;

pub use append::append;
pub use machine::{cpu_time, peak_rss_mib};
pub use read::read;
pub use replay::replay;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The folder has something in it: measuring would add to it.
    #[error("{} is not empty: measure in a folder of its own", .folder.display())]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
    },
    /// What was asked for makes no sense.
    #[error("cannot measure {what}")]
    Load {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The log could not be opened.
    #[error("could not open the log that is measured")]
    Open(#[from] OpenError),
    /// An append failed.
    #[error("could not append to the log that is measured")]
    Append(#[from] AppendError),
    /// A read failed.
    #[error("could not read the log that is measured")]
    Read(#[from] ReadError),
    /// An event does not follow from the ones before it.
    #[error("the log that is measured does not hold together")]
    Replay(#[from] crate::ReplayError),
    /// The log could not be verified.
    #[error("could not verify the log that is measured")]
    Verify(#[from] crate::VerifyError),
    /// The log is not what was appended to it.
    #[error("the log that is measured is damaged")]
    Damaged(#[from] crate::Damage),
    /// A file failed.
    #[error("could not {action}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

/// What is appended, and by how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AppendLoad {
    /// Writers, each waiting for its answer before it goes on: 1 to 4,096.
    pub writers: usize,
    /// Events in one append: 1 to `EVENTS_PER_APPEND_MAX`.
    pub batch: usize,
    /// How long to measure, for the log and the raw file together.
    #[serde(skip)]
    pub time: Duration,
    /// Content and metadata of an event.
    pub event_bytes: usize,
}

/// What one side of the comparison did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Rate {
    /// Events that were durable, per second.
    pub events_per_second: f64,
    /// Half of the appends were answered within this, in microseconds.
    pub p50_us: f64,
    /// 99 of 100 appends were.
    pub p99_us: f64,
    /// Syncs of the disk per second.
    pub syncs_per_second: f64,
}

/// What appending costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AppendReport {
    /// The log.
    #[serde(flatten)]
    pub log: Rate,
    /// A file to which the same bytes are appended, with one sync for each group.
    pub raw: Rate,
    /// What was asked for.
    #[serde(flatten)]
    pub load: AppendLoad,
    /// Events per second of the log, as a part of those of the raw file.
    pub throughput_ratio: f64,
    /// The log's p50, in raw ones.
    pub p50_ratio: f64,
    /// Processor time of the whole process for one event, in microseconds, while the log was
    /// measured.
    pub cpu_us_per_event: f64,
    /// Space on disk for one event, all indexes included, right after writing.
    pub bytes_per_event: f64,
}

/// What reading costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadReport {
    /// Events in the log.
    pub log_events: u64,
    /// Pages of 100 events of one task, from caches.
    pub task_page_warm: Latency,
    /// The same, when neither the system nor the log has anything cached.
    pub task_page_cold: Latency,
    /// How long opening took, in milliseconds.
    pub open_ms: f64,
    /// Memory of the process after reading, in MiB.
    pub rss_mib: f64,
}

/// How long something took, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Half of the times.
    pub p50_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
}

/// What reading the whole log in order costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayReport {
    /// Events that were read, opened, and checked against their chains.
    pub log_events: u64,
    /// On one thread.
    pub events_per_second: f64,
    /// The same by processor time, which does not count waiting for the disk or for other processes.
    pub events_per_cpu_second: f64,
    /// Events per second of a full verification, with all threads.
    pub verified_per_second: f64,
    /// The most memory that the process had, in MiB.
    pub peak_rss_mib: f64,
}

/// Makes the folder, and refuses one that is in use.
fn new_folder(folder: &Path) -> Result<(), BenchError> {
    std::fs::create_dir_all(folder).map_err(io_error("create the folder to measure in"))?;
    let mut entries = std::fs::read_dir(folder).map_err(io_error("look into the folder to measure in"))?;
    if entries.next().is_some() {
        return Err(BenchError::NotEmpty { folder: folder.to_owned() });
    }
    Ok(())
}

fn io_error(action: &'static str) -> impl Fn(io::Error) -> BenchError {
    move |source| BenchError::Io { action, source }
}
