//! The header of a blob file, and all of a file that ends in `.key`.
//!
//! ```text
//! 8 "RMTBLOB1" · 16 thread · 16 scope · 24 nonce
//! sealed under the scope's key and bound to the above:
//!   32 key of the chunks · 32 SHA-256 · u64 length · u64 last seq of the thread before it
//!   u8 length, 64 thread id · u8 length, 64 run id
//! 16 tag
//! ```
//!
//! All zeros until the file is whole, so that one whose writing was cut off is told from one that is
//! damaged.

use std::io;

use domain::ids::{RunId, ThreadId};

use super::{BlobDigest, BlobRef, BlobScope};
use crate::{
    codec::{DecodeError, bytes::Reader},
    keyring::{Found, Keyring, Nonce, ScopeId},
    position::Seq,
    seal::{self, Purpose, TAG_BYTES},
    secret::SecretKey,
};

const MAGIC: &[u8; 8] = b"RMTBLOB1";
/// Magic, thread, scope and nonce.
const CLEAR_BYTES: usize = 8 + 16 + 16 + 24;
/// An id and its length.
const ID_BYTES: usize = 65;
const SEALED_BYTES: usize = 32 + 32 + 8 + 8 + 2 * ID_BYTES;
/// The length of a header.
pub(super) const HEADER_BYTES: usize = CLEAR_BYTES + SEALED_BYTES + TAG_BYTES;

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) owner: BlobScope,
    pub(super) blob: BlobRef,
    /// Opens the chunks.
    pub(super) file_key: SecretKey,
    /// Only events after this can name it.
    pub(super) after: Seq,
}

/// What is found where a header should be.
pub(super) enum Read {
    /// It was not finished.
    Unfinished,
    /// Its key was destroyed.
    Erased,
    /// Its key is not there, or it was changed.
    Damaged,
    /// A header.
    Whole(Box<Header>),
}

/// Of whom a file says that it is, without being opened.
pub(super) fn claimed(bytes: &[u8]) -> Option<(ScopeId, ScopeId)> {
    let mut reader = Reader::new(bytes);
    reader.take(MAGIC.len(), "magic").ok().filter(|magic| magic == MAGIC)?;
    Some((ScopeId(reader.array("thread").ok()?), ScopeId(reader.array("scope").ok()?)))
}

impl Header {
    /// Seals it with the key of its scope. The nonce must be new.
    pub(super) fn seal(&self, scope_key: &SecretKey, nonce: &Nonce) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.owner.thread().0);
        bytes.extend_from_slice(&self.owner.sealing().0);
        bytes.extend_from_slice(nonce);
        bytes.extend_from_slice(self.file_key.bytes());
        bytes.extend_from_slice(&self.blob.sha256.0);
        bytes.extend_from_slice(&self.blob.bytes.to_be_bytes());
        bytes.extend_from_slice(&self.after.get().to_be_bytes());
        put_id(&mut bytes, self.owner.thread_id.as_str());
        put_id(&mut bytes, self.owner.run_id.as_ref().map_or("", RunId::as_str));
        let (clear, sealed) = bytes.split_at_mut(CLEAR_BYTES);
        let tag = seal::seal(&wrapping_key(scope_key, nonce), clear, sealed);
        bytes.extend_from_slice(&tag);
        bytes
    }

    /// Opens one with the key of the scope that it names.
    pub(super) fn read(bytes: &[u8], keyring: &Keyring) -> io::Result<Read> {
        if bytes.len() < HEADER_BYTES || bytes.iter().all(|byte| *byte == 0) {
            return Ok(Read::Unfinished);
        }
        let Some((thread, scope)) = claimed(bytes) else { return Ok(Read::Damaged) };
        let scope_key = match keyring.find(scope)? {
            Found::Live(key) => key,
            Found::Destroyed => return Ok(Read::Erased),
            // The keys of a thread's runs are destroyed with the thread's.
            Found::Missing if keyring.is_destroyed(thread) => return Ok(Read::Erased),
            Found::Missing => return Ok(Read::Damaged),
        };
        let opened = open(bytes, &scope_key).and_then(|opened| parse(&opened).ok());
        let is_claimed = |header: &Header| (header.owner.thread(), header.owner.sealing()) == (thread, scope);
        Ok(match opened.filter(is_claimed) {
            Some(header) => Read::Whole(Box::new(header)),
            None => Read::Damaged,
        })
    }
}

fn open(bytes: &[u8], scope_key: &SecretKey) -> Option<zeroize::Zeroizing<Vec<u8>>> {
    let (clear, sealed) = bytes.get(..HEADER_BYTES)?.split_at_checked(CLEAR_BYTES)?;
    let nonce: Nonce = *clear.last_chunk()?;
    seal::open(&wrapping_key(scope_key, &nonce), clear, sealed).map(zeroize::Zeroizing::new)
}

fn wrapping_key(scope_key: &SecretKey, nonce: &Nonce) -> SecretKey {
    SecretKey::new(seal::derive(scope_key, Purpose::Blob, nonce))
}

fn parse(opened: &[u8]) -> Result<Header, DecodeError> {
    let mut reader = Reader::new(opened);
    let file_key = SecretKey::new(reader.array("key")?);
    let sha256 = BlobDigest(reader.array("digest")?);
    let bytes = reader.u64("length")?;
    let after = Seq::new(reader.u64("seq")?);
    let (thread, run) = (id(&mut reader)?, id(&mut reader)?);
    let wrong = |_| DecodeError::Short { field: "id" };
    let thread_id = ThreadId::new(thread).map_err(wrong)?;
    let run_id = if run.is_empty() { None } else { Some(RunId::new(run).map_err(wrong)?) };
    Ok(Header { owner: BlobScope { thread_id, run_id }, blob: BlobRef { sha256, bytes }, file_key, after })
}

/// Ids have at most 64 bytes.
fn put_id(bytes: &mut Vec<u8>, id: &str) {
    let end = bytes.len() + ID_BYTES;
    bytes.push(u8::try_from(id.len()).unwrap_or(u8::MAX));
    bytes.extend_from_slice(id.as_bytes());
    bytes.resize(end, 0);
}

fn id<'a>(reader: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    let short = DecodeError::Short { field: "id" };
    let padded = reader.take(ID_BYTES, "id")?;
    let text = padded.split_first().and_then(|(length, rest)| rest.get(..usize::from(*length)));
    text.and_then(|text| std::str::from_utf8(text).ok()).ok_or(short)
}
