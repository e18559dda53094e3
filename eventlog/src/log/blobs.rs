//! What is too large for an event.

use std::{path::Path, sync::Arc};

use domain::ids::ThreadId;

use super::EventLog;
use crate::{
    blob::{self, BlobDigest, BlobError, BlobReader, BlobScope, BlobStats, BlobWriter, Blobs, OverMax},
    position::{Position, Seq},
    read::ReadError,
    stream_id::StreamId,
    verify::{Damage, VerifyError},
};

/// Events that are read at once while it is looked whether one of them names a blob.
const EVENTS_PAGE: usize = 256;

impl EventLog {
    /// Begins a blob that an event of this scope will name (see [`domain::kept_output`]). Secrets in it are
    /// masked as in events. Fewer than `bytes_min` bytes are digested and not kept. A log without a
    /// folder keeps none.
    pub fn write_blob(&self, scope: &BlobScope, bytes_min: u64, over_max: OverMax) -> BlobWriter {
        let target = self.blob_target(scope);
        BlobWriter::new(target, self.0.redactor.clone(), bytes_min, over_max)
    }

    fn blob_target(&self, scope: &BlobScope) -> Result<blob::Target, BlobError> {
        let blobs = Arc::clone(self.0.blobs.as_ref().ok_or(BlobError::NoFolder)?);
        let after = self.stream_tail(&StreamId::Thread(scope.thread_id.clone()))?.unwrap_or(Seq::ZERO);
        Ok(blob::Target { blobs, scope: scope.clone(), after })
    }

    /// Opens a blob of a thread, to be read whole or in part. One that an event names and that is not
    /// there is damage; to know that, the thread's events are read.
    pub fn open_blob(&self, thread_id: &ThreadId, sha256: &BlobDigest) -> Result<BlobReader, BlobError> {
        match self.0.blobs.as_ref().ok_or(BlobError::NoFolder)?.open(thread_id, sha256) {
            Err(BlobError::NotFound { thread_id, sha256 }) if self.is_named(&thread_id, &sha256)? => {
                Err(BlobError::Missing { thread_id, sha256 })
            }
            opened => opened,
        }
    }

    /// Whether an event of the thread that can be read names the blob.
    fn is_named(&self, thread_id: &ThreadId, sha256: &BlobDigest) -> Result<bool, ReadError> {
        let (stream, mut after) = (StreamId::Thread(thread_id.clone()), Seq::ZERO);
        loop {
            let page = self.read_stream(&stream, after, EVENTS_PAGE)?;
            let Some(last) = page.last() else { return Ok(false) };
            after = last.seq;
            if page.iter().any(|event| blob::is_named_by(event, sha256)) {
                return Ok(true);
            }
        }
    }

    /// The first event up to a position that names a blob which is not whole in a folder with copies.
    pub(crate) fn first_damaged_blob(
        &self,
        until: Position,
        copies: &Path,
    ) -> Result<Option<Damage>, VerifyError> {
        let store = self.store().map_err(|_| VerifyError::Closed)?;
        let store = store.on_segments().ok_or(VerifyError::Unsupported)?;
        blob::check::first_damage(store.segments(), until, store.keyring_ref(), copies)
    }

    pub(crate) fn blobs(&self) -> Option<&Blobs> {
        self.0.blobs.as_deref()
    }

    /// Figures of the blobs since the log was opened.
    pub fn blob_stats(&self) -> BlobStats {
        self.0.blobs.as_ref().map(|blobs| blobs.stats()).unwrap_or_default()
    }
}
