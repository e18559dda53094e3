//! What every backend of the log must do: one list of checks, run on each of them.

use std::future::Future;

use crate::{EventLog, sample};

mod appending;
mod following;
mod model;
mod reading;

/// Runs a check on a new log in memory and on a new log on disk.
async fn on_each<F: Future<Output = ()>>(check: impl Fn(EventLog) -> F) {
    sample::soon("the check in memory", check(sample::memory_log())).await;
    let folder = tempfile::tempdir().unwrap();
    let log = EventLog::open(folder.path(), sample::options()).unwrap();
    sample::soon("the check on disk", check(log)).await;
}
