//! Writing a blob whose length nobody knows beforehand, in bounded memory.

use std::{fmt, sync::Arc};

use aws_lc_rs::digest::{Context, SHA256};
use domain::{limits::BLOB_BYTES_MAX, redaction::Redactor};

use super::{
    BlobDigest, BlobError, BlobRef, BlobScope, Blobs,
    chunk::{self, CHUNK_BYTES},
    error::io_error,
    masking::Masking,
    staged_file::StagedFile,
};
use crate::{position::Seq, secret::SecretKey};

/// How often the room on the disk is looked at: every 4 MiB, far less than is kept back.
const CHUNKS_PER_LOOK: u64 = 64;

/// What becomes of bytes beyond the most that a blob may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverMax {
    /// Nothing is kept: [`BlobError::TooLarge`].
    Refuse,
    /// The beginning is kept.
    KeepBeginning,
}

/// What came of writing.
#[derive(Debug)]
pub struct Kept {
    /// Digest and length of all that was written, after secrets were masked: what a reader gets if
    /// all of it was kept.
    pub whole: BlobRef,
    /// The blob, durable from now on; none if there were fewer bytes than are worth a blob. An event
    /// has to name it, or the next opening of the log removes it.
    pub blob: Result<Option<BlobRef>, BlobError>,
}

/// Takes bytes, masks secrets in them, digests and keeps them.
///
/// What cannot be kept is digested all the same: [`Self::finish`] says what was wrong.
pub struct BlobWriter {
    masking: Option<Masking>,
    masked: Masked,
}

/// Where a blob is written to.
pub(crate) struct Target {
    pub(crate) blobs: Arc<Blobs>,
    pub(crate) scope: BlobScope,
    /// Only events after this will name it.
    pub(crate) after: Seq,
}

/// What is known of the bytes after masking.
struct Masked {
    bytes: u64,
    digest: Context,
    /// Fewer bytes are not kept.
    bytes_min: u64,
    /// More bytes are not kept.
    bytes_max: u64,
    over_max: OverMax,
    sink: Result<Sink, BlobError>,
    /// The digest of the beginning that is kept, if more came.
    beginning: Option<Context>,
}

/// A file that is being written.
struct Sink {
    target: Target,
    file_key: SecretKey,
    file: Option<StagedFile>,
    /// The chunk that is not written yet; full only while nothing came after it.
    chunk: Vec<u8>,
    chunks: u64,
    bytes: u64,
}

impl fmt::Debug for BlobWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobWriter").field("bytes", &self.masked.bytes).finish_non_exhaustive()
    }
}

impl BlobWriter {
    pub(crate) fn new(
        target: Result<Target, BlobError>,
        redactor: Option<Arc<Redactor>>,
        bytes_min: u64,
        over_max: OverMax,
    ) -> Self {
        let sink = target.and_then(Sink::new);
        let masking = redactor.map(Masking::new);
        let (digest, bytes_max) = (Context::new(&SHA256), BLOB_BYTES_MAX);
        let masked = Masked { bytes: 0, digest, bytes_min, bytes_max, over_max, sink, beginning: None };
        Self { masking, masked }
    }

    /// With another limit.
    #[cfg(test)]
    pub(super) fn at_most(mut self, bytes_max: u64) -> Self {
        self.masked.bytes_max = bytes_max;
        self
    }

    /// Takes the next bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        let masked = &mut self.masked;
        match &mut self.masking {
            Some(masking) => masking.push(bytes, &mut |bytes| masked.take(bytes)),
            None => masked.take(bytes),
        }
    }

    /// Why nothing will be kept, if that is certain already.
    pub fn failure(&self) -> Option<&BlobError> {
        self.masked.sink.as_ref().err()
    }

    /// Brings it to the disk. Takes as long as a sync: call it outside of async code.
    pub fn finish(self) -> Kept {
        let Self { masking, mut masked } = self;
        if let Some(masking) = masking {
            masking.finish(&mut |bytes| masked.take(bytes));
        }
        masked.finish()
    }
}

impl Masked {
    fn take(&mut self, bytes: &[u8]) {
        let room = usize::try_from(self.bytes_max.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
        let (kept, over) = bytes.split_at(bytes.len().min(room));
        self.digest.update(kept);
        self.bytes += kept.len() as u64;
        if let Ok(sink) = &mut self.sink
            && let Err(error) = sink.write(kept)
        {
            self.sink = Err(error);
        }
        if over.is_empty() {
            return;
        }
        match self.over_max {
            OverMax::Refuse => self.sink = Err(BlobError::TooLarge),
            OverMax::KeepBeginning if self.beginning.is_none() => self.beginning = Some(self.digest.clone()),
            OverMax::KeepBeginning => {}
        }
        self.digest.update(over);
        self.bytes += over.len() as u64;
    }

    fn finish(self) -> Kept {
        let whole = BlobRef { sha256: BlobDigest::of(self.digest), bytes: self.bytes };
        let sha256 = self.beginning.map_or(whole.sha256, BlobDigest::of);
        let is_small = whole.bytes < self.bytes_min;
        let blob = self.sink.and_then(|sink| if is_small { Ok(None) } else { sink.finish(sha256).map(Some) });
        Kept { whole, blob }
    }
}

impl Sink {
    fn new(target: Target) -> Result<Self, BlobError> {
        let file_key = SecretKey::random();
        let file_key = file_key.map_err(io_error("make a key for a file in", target.blobs.root()))?;
        Ok(Self { target, file_key, file: None, chunk: Vec::new(), chunks: 0, bytes: 0 })
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), BlobError> {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.chunk.len() == CHUNK_BYTES {
                self.put_chunk(false)?;
            }
            let room = CHUNK_BYTES - self.chunk.len();
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.chunk.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    fn put_chunk(&mut self, is_last: bool) -> Result<(), BlobError> {
        if self.chunks.is_multiple_of(CHUNKS_PER_LOOK) {
            self.target.blobs.check_room()?;
        }
        chunk::seal(&self.file_key, self.chunks, is_last, &mut self.chunk);
        self.chunks += 1;
        if self.file.is_none() {
            self.file = Some(self.target.blobs.new_file()?);
        }
        if let Some(file) = &mut self.file {
            file.write(&self.chunk).map_err(io_error("write", file.path()))?;
        }
        self.chunk.clear();
        Ok(())
    }

    fn finish(mut self, sha256: BlobDigest) -> Result<BlobRef, BlobError> {
        self.put_chunk(true)?;
        let blob = BlobRef { sha256, bytes: self.bytes };
        if let Some(file) = self.file {
            let Target { blobs, scope, after } = self.target;
            let header = super::header::Header { owner: scope, blob, file_key: self.file_key, after };
            blobs.stage(header, file)?;
        }
        Ok(blob)
    }
}
