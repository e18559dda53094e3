//! A log that stands still when it is told to.

use std::sync::{Arc, Condvar, Mutex};

use eventlog::{EventLog, Options};
use jiff::Timestamp;

/// While it is shut, the log records nothing and answers nobody: its writer waits for the time.
#[derive(Default)]
pub(crate) struct Gate {
    is_shut: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// A log in memory, behind a gate that is open.
    pub(crate) fn log() -> (Arc<Self>, EventLog) {
        let gate = Arc::new(Self::default());
        let clock = Arc::clone(&gate);
        (gate, EventLog::in_memory(Options::new(Arc::new(move || clock.now()))))
    }

    pub(crate) fn shut(&self) {
        *self.is_shut.lock().unwrap() = true;
    }

    pub(crate) fn open(&self) {
        *self.is_shut.lock().unwrap() = false;
        self.opened.notify_all();
    }

    fn now(&self) -> Timestamp {
        drop(self.opened.wait_while(self.is_shut.lock().unwrap(), |is_shut| *is_shut).unwrap());
        Timestamp::now()
    }
}
