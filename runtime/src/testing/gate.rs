//! A log that stands still when it is told to.

use std::sync::{Arc, Condvar, Mutex};

use eventlog::{EventLog, Options};
use jiff::Timestamp;

/// While it is shut, the log records nothing and answers nobody: its writer waits for the time.
pub(crate) struct Gate {
    /// Commits that still get through.
    open_for: Mutex<u64>,
    opened: Condvar,
}

/// Means that all commits get through.
const EVER: u64 = u64::MAX;

impl Gate {
    /// A log in memory, behind a gate that is open.
    pub(crate) fn log() -> (Arc<Self>, EventLog) {
        let gate = Arc::new(Self { open_for: Mutex::new(EVER), opened: Condvar::new() });
        let clock = Arc::clone(&gate);
        (gate, EventLog::in_memory(Options::new(Arc::new(move || clock.now()))))
    }

    /// Shuts the gate behind this many more commits.
    pub(crate) fn shut_after(&self, commits: u64) {
        *self.open_for.lock().unwrap() = commits;
    }

    pub(crate) fn open(&self) {
        *self.open_for.lock().unwrap() = EVER;
        self.opened.notify_all();
    }

    fn now(&self) -> Timestamp {
        let mut open_for = self.opened.wait_while(self.open_for.lock().unwrap(), |left| *left == 0).unwrap();
        if *open_for != EVER {
            *open_for -= 1;
        }
        Timestamp::now()
    }
}
