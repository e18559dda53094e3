//! Keeping large outputs whole, beside the log.

use std::fmt;

use domain::{kept_output::KEPT_OUTPUTS_FOLDER, limits::KEPT_OUTPUT_BYTES_MIN};
use eventlog::{BlobDigest, BlobError, BlobReader, BlobScope, BlobWriter, EventLog, OverMax};

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

    /// Opens an output that was kept for an event of the same thread; those of others are not there.
    pub(super) fn open(&self, sha256: &BlobDigest) -> Result<BlobReader, BlobError> {
        self.log.open_blob(&self.scope.thread_id, sha256)
    }
}

/// The kept output that a path names; `None` for any other path.
pub(super) fn named_by(path: &str) -> Option<BlobDigest> {
    path.trim().strip_prefix(KEPT_OUTPUTS_FOLDER)?.strip_prefix('/')?.parse().ok()
}
