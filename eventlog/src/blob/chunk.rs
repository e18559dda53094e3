//! The body of a blob file: chunks that are sealed one by one.
//!
//! ```text
//! header (see `header`) · chunk 0 · chunk 1 · … · last chunk
//! chunk    up to 64 KiB, sealed · 16 tag
//! ```
//!
//! Every chunk but the last is full; the last has at least a byte, except that an empty blob is one
//! empty chunk. A chunk's key is made of the file's key, its index and whether it is the last, so a
//! chunk opens in its own place of its own file only, and a file that was cut or added to does not
//! open at its end.

use crate::{
    seal::{self, Purpose, TAG_BYTES},
    secret::SecretKey,
};

use super::header::HEADER_BYTES;

/// Plain bytes in a full chunk. Stored: a change needs another header.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;
/// The same with its tag.
const STORED_BYTES: u64 = (CHUNK_BYTES + TAG_BYTES) as u64;

/// Where the parts of a blob of some length lie in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    bytes: u64,
}

impl Layout {
    pub(super) const fn of(bytes: u64) -> Self {
        Self { bytes }
    }

    /// Chunks; never none.
    pub(super) const fn chunks(self) -> u64 {
        let chunks = self.bytes.div_ceil(CHUNK_BYTES as u64);
        if chunks == 0 { 1 } else { chunks }
    }

    /// The length of the file; none that no blob has.
    pub(super) fn file_bytes(self) -> Option<u64> {
        let tags = self.chunks().checked_mul(TAG_BYTES as u64)?;
        self.bytes.checked_add(tags)?.checked_add(HEADER_BYTES as u64)
    }

    /// Where a chunk begins in the file, and how long it is there.
    pub(super) fn stored(self, index: u64) -> (u64, usize) {
        let at = HEADER_BYTES as u64 + index * STORED_BYTES;
        let plain = self.bytes.saturating_sub(index * CHUNK_BYTES as u64).min(CHUNK_BYTES as u64);
        (at, usize::try_from(plain).unwrap_or(CHUNK_BYTES) + TAG_BYTES)
    }

    pub(super) const fn is_last(self, index: u64) -> bool {
        index + 1 == self.chunks()
    }
}

/// Seals a chunk where it stands, and puts its tag behind it.
pub(super) fn seal(file_key: &SecretKey, index: u64, is_last: bool, chunk: &mut Vec<u8>) {
    let tag = seal::seal(&key(file_key, index, is_last), &[], chunk);
    chunk.extend_from_slice(&tag);
}

/// Opens a chunk; none if it is not the one that was sealed for this place.
pub(super) fn open(file_key: &SecretKey, index: u64, is_last: bool, stored: &[u8]) -> Option<Vec<u8>> {
    seal::open(&key(file_key, index, is_last), &[], stored)
}

fn key(file_key: &SecretKey, index: u64, is_last: bool) -> SecretKey {
    let mut of = [0; 9];
    for (to, from) in of.iter_mut().zip(index.to_be_bytes().into_iter().chain([u8::from(is_last)])) {
        *to = from;
    }
    SecretKey::new(seal::derive(file_key, Purpose::BlobChunk, &of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_has_its_own_file_length() {
        let chunk = CHUNK_BYTES as u64;
        let lengths = [0, 1, 2, chunk - 1, chunk, chunk + 1, 2 * chunk - 1, 2 * chunk, 2 * chunk + 1];
        let mut last = 0;
        for (bytes, chunks) in lengths.into_iter().zip([1, 1, 1, 1, 1, 2, 2, 2, 3]) {
            let layout = Layout::of(bytes);
            assert_eq!(layout.chunks(), chunks, "{bytes}");
            let file_bytes = layout.file_bytes().unwrap();
            assert!(file_bytes > last, "{bytes}");
            last = file_bytes;
            let (at, length) = layout.stored(chunks - 1);
            assert_eq!(at + length as u64, file_bytes, "{bytes}");
            assert!(layout.is_last(chunks - 1) && (chunks == 1 || !layout.is_last(0)));
        }
        assert_eq!(Layout::of(u64::MAX).file_bytes(), None);
    }

    #[test]
    fn a_chunk_opens_in_its_own_place_only() {
        let file_key = SecretKey::new([7; 32]);
        let mut chunk = b"chunk".to_vec();
        seal(&file_key, 1, false, &mut chunk);
        assert_eq!(open(&file_key, 1, false, &chunk).as_deref(), Some(&b"chunk"[..]));
        assert_eq!(open(&file_key, 1, true, &chunk), None);
        assert_eq!(open(&file_key, 0, false, &chunk), None);
        assert_eq!(open(&SecretKey::new([8; 32]), 1, false, &chunk), None);
    }
}
