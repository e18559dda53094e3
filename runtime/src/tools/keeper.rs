//! Keeping large outputs whole, beside the log.

use std::fmt;

use domain::limits::KEPT_OUTPUT_BYTES_MIN;
use eventlog::{BlobScope, BlobWriter, EventLog, OverMax};

/// Keeps large outputs for the events of one run.
#[derive(Clone)]
pub struct OutputKeeper {
    log: EventLog,
    scope: BlobScope,
}

impl fmt::Debug for OutputKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputKeeper").field("scope", &self.scope).finish_non_exhaustive()
    }
}

impl OutputKeeper {
    /// Keeps them in this log. Events of this scope have to name them.
    pub fn new(log: EventLog, scope: BlobScope) -> Self {
        Self { log, scope }
    }

    /// Begins an output. A small one is digested only; of one that is larger than a blob may be, the
    /// beginning is kept.
    pub(super) fn begin(&self) -> BlobWriter {
        self.log.write_blob(&self.scope, KEPT_OUTPUT_BYTES_MIN, OverMax::KeepBeginning)
    }
}
