//! Reading a blob, whole or in part. Nothing is given out that was not proven first.

use std::{fmt, fs::File, io, ops::Range, os::unix::fs::FileExt, path::Path};

use aws_lc_rs::digest::{Context, SHA256};

use super::{
    BlobError, BlobRef,
    chunk::{self, CHUNK_BYTES, Layout},
    error::io_error,
    header::{self, HEADER_BYTES, Header},
    place,
};
use crate::keyring::{Keyring, ScopeId};

/// What is found in the place of a blob.
pub(super) enum Probe {
    /// Nothing.
    Missing,
    /// Something that no key opens any more.
    Erased,
    /// Something else than was written.
    Damaged(&'static str),
    /// A blob.
    Whole(Box<Found>),
}

/// An open blob file.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) file: File,
    pub(super) header: Header,
}

/// Looks at the file of a blob that belongs to a scope: its header, or the key beside it, and its
/// length.
pub(super) fn probe(path: &Path, scope: ScopeId, keyring: &Keyring) -> io::Result<Probe> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Probe::Missing),
        file => file?,
    };
    let mut bytes = read_header(&file)?;
    if header::claimed(&bytes).is_some_and(|(_, claimed)| claimed != scope) {
        bytes = match File::open(place::key_beside(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Probe::Damaged("its key is missing"));
            }
            key => read_header(&key?)?,
        };
    }
    let header = match Header::read(&bytes, keyring)? {
        header::Read::Unfinished => return Ok(Probe::Damaged("its header is missing")),
        header::Read::Damaged => return Ok(Probe::Damaged("its header was changed, or its key is lost")),
        header::Read::Erased => return Ok(Probe::Erased),
        header::Read::Whole(header) if header.owner.sealing() == scope => *header,
        header::Read::Whole(_) => return Ok(Probe::Damaged("its key belongs to something else")),
    };
    if Layout::of(header.blob.bytes).file_bytes() != Some(file.metadata()?.len()) {
        return Ok(Probe::Damaged("its file has another length"));
    }
    Ok(Probe::Whole(Box::new(Found { file, header })))
}

/// As much of a header as there is.
pub(super) fn read_header(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEADER_BYTES];
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Reads a blob in pieces. A whole blob is compared with its digest before its last piece is given
/// out.
pub struct BlobReader {
    file: File,
    header: Header,
    layout: Layout,
    range: Range<u64>,
    /// Covers what was read, if that begins with the first byte.
    digest: Option<Context>,
}

impl fmt::Debug for BlobReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobReader").field("blob", &self.header.blob).finish_non_exhaustive()
    }
}

impl BlobReader {
    /// The last chunk is proven at once, so that the length is.
    pub(super) fn new(found: Found) -> Result<Self, BlobError> {
        let Found { file, header } = found;
        let (layout, range) = (Layout::of(header.blob.bytes), 0..header.blob.bytes);
        let reader = Self { file, header, layout, range, digest: Some(Context::new(&SHA256)) };
        reader.chunk(layout.chunks() - 1)?;
        Ok(reader)
    }

    /// Digest and length.
    pub const fn blob(&self) -> BlobRef {
        self.header.blob
    }

    /// Reads only these bytes, counted from 0; what is beyond the end is not there.
    pub fn only(mut self, range: Range<u64>) -> Self {
        let bytes = self.header.blob.bytes;
        self.range = range.start.min(bytes)..range.end.min(bytes);
        self.digest = (self.range == (0..bytes)).then(|| Context::new(&SHA256));
        self
    }

    /// Bytes that are still to come.
    pub const fn remaining(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// The next piece, at most 64 KiB; none at the end. Takes a read of the disk: call it outside of
    /// async code.
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>, BlobError> {
        if self.range.start >= self.range.end {
            return Ok(None);
        }
        let index = self.range.start / CHUNK_BYTES as u64;
        let chunk = self.chunk(index)?;
        let chunk_start = index * CHUNK_BYTES as u64;
        let within = |at: u64| usize::try_from(at - chunk_start).unwrap_or(usize::MAX);
        let end = self.range.end.min(chunk_start + chunk.len() as u64);
        let piece = chunk.get(within(self.range.start)..within(end)).unwrap_or_default().to_vec();
        self.range.start = end;
        if let Some(digest) = &mut self.digest {
            digest.update(&piece);
            let is_end = self.range.start >= self.range.end;
            if is_end && digest.clone().finish().as_ref() != self.header.blob.sha256.0 {
                return Err(self.damaged("its bytes are not those that were written"));
            }
        }
        Ok(Some(piece))
    }

    fn chunk(&self, index: u64) -> Result<Vec<u8>, BlobError> {
        let (at, length) = self.layout.stored(index);
        let mut stored = vec![0; length];
        match self.file.read_exact_at(&mut stored, at) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(self.damaged("its file was cut"));
            }
            read => read.map_err(io_error("read blob", Path::new(&self.header.blob.sha256.to_string())))?,
        }
        chunk::open(&self.header.file_key, index, self.layout.is_last(index), &stored)
            .ok_or_else(|| self.damaged("a part of it was changed"))
    }

    fn damaged(&self, what: &'static str) -> BlobError {
        BlobError::Damaged { sha256: self.header.blob.sha256, what }
    }
}
