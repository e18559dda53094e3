//! Looking after the log: proofs, copies and figures.

use std::{path::Path, sync::PoisonError};

use super::EventLog;
use crate::{
    backup::{self, BackupError, BackupRequest, Manifest},
    condition::{CommitStats, Health, Stats},
    read::ReadError,
    store::SegmentStore,
    verify::{self, Report, VerifyError, VerifyRequest},
    writer::WRITER_QUEUE,
};

impl EventLog {
    /// Checks every record, chain, commit and index entry up to the present head, while others
    /// read and write. It takes as long as reading the whole log: call it outside of async code.
    pub fn verify(&self, request: VerifyRequest<'_>) -> Result<Report, VerifyError> {
        let store = self.store().map_err(|_| VerifyError::Closed)?;
        let store = store.on_segments().ok_or(VerifyError::Unsupported)?;
        verify::verify_live(store, self.0.blobs.as_deref(), request)
    }

    /// Copies the log up to its present head into a new folder, with its keys and the files of
    /// threads, while others read and write, or adds what is new to a backup of the same log. It takes
    /// as long as reading the whole log: call it outside of async code.
    pub fn back_up(&self, target: &Path, request: BackupRequest<'_>) -> Result<Manifest, BackupError> {
        let store = self.store()?;
        let store = store.on_segments().ok_or(BackupError::Unsupported)?;
        backup::copy(store, self.0.blobs.as_deref(), target, request)
    }

    /// Whether the log takes writes.
    pub fn health(&self) -> Health {
        self.0.condition.health()
    }

    /// Waits until the log takes no more writes, and says why: whoever serves it stops then.
    pub async fn ended(&self) -> Health {
        self.0.condition.ended().await
    }

    /// Whether a write has failed, so that only a restart helps.
    pub fn is_poisoned(&self) -> bool {
        self.0.condition.poison_reason().is_some()
    }

    /// Figures since the log was opened.
    pub fn stats(&self) -> Stats {
        let waiting = self.0.queue.as_ref().map_or(0, |queue| queue.max_capacity() - queue.capacity());
        self.0.condition.stats(waiting as u64, WRITER_QUEUE as u64)
    }

    /// How commits were distributed since the log was opened.
    pub fn commit_stats(&self) -> CommitStats {
        self.0.condition.commit_stats()
    }

    /// Space on disk, in bytes; 0 in memory.
    pub fn disk_bytes(&self) -> Result<u64, ReadError> {
        let store = self.store()?;
        let disk_bytes = store.on_segments().map(SegmentStore::disk_bytes).transpose()?;
        Ok(disk_bytes.unwrap_or(0))
    }

    /// Writes into the lock where this process listens, for whoever finds the folder held.
    pub fn announce(&self, address: &str) -> std::io::Result<()> {
        match &mut *self.0.lock.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(lock) => lock.set_address(address),
            None => Ok(()),
        }
    }
}
