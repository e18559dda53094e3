//! A moment at which a debug build kills itself, so that tests can crash a whole process exactly there.
//!
//! The log asks for the time once when it is opened, and once before each commit. So a clock can be told
//! to end the process before the commit of a number: what was recorded until then is on the disk and
//! was acted upon, and what was about to be recorded is lost, as in the worst of crashes. A release build has
//! none of this.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use eventlog::Options;
use jiff::Timestamp;
use rustix::process::{Signal, getpid, kill_process};

/// Names the commit before which the process dies, counted from 1 since the log was opened.
const VARIABLE: &str = "REMIT_CRASH_BEFORE_COMMIT";

/// The same options, with the crash that the environment asks for.
pub(super) fn armed(options: Options) -> Options {
    let commit = std::env::var(VARIABLE).ok().and_then(|number| number.parse().ok());
    match commit {
        Some(commit) => Options { clock: Arc::new(clock(commit)), ..options },
        None => options,
    }
}

fn clock(commit: u64) -> impl Fn() -> Timestamp {
    // Opening asks first, and that is no commit.
    let asked = AtomicU64::new(0);
    move || {
        if asked.fetch_add(1, Ordering::SeqCst) == commit
            && let Err(error) = kill_process(getpid(), Signal::KILL)
        {
            tracing::error!(%error, "the process could not be killed");
        }
        Timestamp::now()
    }
}
