//! A record: one event as it is stored, for ever.
//!
//! ```text
//! prefix   u8 version · u8 flags · u32 length of the header
//! header   what is in the clear
//! body     the rest
//! hash     32 bytes over all of the above and the hash before it in the stream
//! ```
//!
//! Version 1 (`plain`) has no flags and everything in the clear. Version 2 (`sealed`) has the flag
//! [`SEALED`]: what must outlive the key is in the header, and every text of a thread in the sealed
//! body. `text` is a u16 length in bytes and UTF-8; `time` is i64 seconds and i32 nanoseconds since
//! 1970.

use domain::ids::DelegationId;

use super::{DecodeError, EncodeError, bytes::Reader, plain, sealed};
use crate::{
    chain::Hash,
    keyring::{Keyring, ScopeId},
    position::{Position, Seq},
    recorded::{EventHashes, RecordedEvent},
    seal::{Seal, TypeTag},
    stream_id::StreamId,
};

/// Everything in the clear.
pub(crate) const PLAIN_VERSION: u8 = 1;
/// The body sealed.
pub(crate) const SEALED_VERSION: u8 = 2;
/// The last version that is read.
pub(crate) const VERSION: u8 = SEALED_VERSION;
/// The flag of sealed records.
pub(super) const SEALED: u8 = 1;
/// Version, flags and the header's length.
pub(super) const PREFIX_BYTES: usize = 6;
/// The length of the hash at the end.
pub(crate) const HASH_BYTES: usize = 32;
/// What a header and a seal need at most in ordinary events, beside the body.
const OVERHEAD_BYTES: usize = 384;

/// The record without its hash: what the hash covers.
pub(crate) fn encode(event: &RecordedEvent) -> Result<Vec<u8>, EncodeError> {
    encode_hashed(event, &event.hashes())
}

/// The same, for whoever has made the event's hashes before.
pub(crate) fn encode_hashed(event: &RecordedEvent, hashes: &EventHashes) -> Result<Vec<u8>, EncodeError> {
    let body_bytes = event.content.get().len() + event.metadata.get().len();
    let mut out = Vec::with_capacity(body_bytes + OVERHEAD_BYTES);
    match &event.seal {
        Seal::None => {
            out.extend_from_slice(&[PLAIN_VERSION, 0]);
            plain::encode(event, &mut out)?;
        }
        Seal::Opened(opened) => {
            out.extend_from_slice(&[SEALED_VERSION, SEALED]);
            sealed::encode(event, hashes, opened, &mut out)?;
        }
        Seal::Erased(record) => out.extend_from_slice(&record.0),
    }
    Ok(out)
}

/// Fills in the length of the header, for which four bytes were kept at `start`.
pub(super) fn put_header_length(out: &mut [u8], start: usize) -> Result<(), EncodeError> {
    let bytes = plain::length(out.len() - start - 4, "header")?;
    for (to, from) in out.iter_mut().skip(start).zip(bytes) {
        *to = from;
    }
    Ok(())
}

/// A record's parts.
struct Parts<'a> {
    version: u8,
    /// Prefix and header.
    clear: &'a [u8],
    header: &'a [u8],
    body: &'a [u8],
    /// All but the hash.
    hashed: &'a [u8],
    hash: &'a Hash,
}

#[inline]
fn split(bytes: &[u8]) -> Result<Parts<'_>, DecodeError> {
    let (hashed, hash) =
        bytes.split_last_chunk::<HASH_BYTES>().ok_or_else(|| DecodeError::Short { field: "hash" })?;
    let mut reader = Reader::new(hashed);
    let version = reader.u8("version")?;
    let flags = reader.u8("flags")?;
    match (version, flags) {
        (PLAIN_VERSION, 0) | (SEALED_VERSION, SEALED) => {}
        (PLAIN_VERSION | SEALED_VERSION, found) => return Err(DecodeError::Flags { found }),
        (found, _) => return Err(DecodeError::Version { found }),
    }
    let header_bytes = reader.u32("header")? as usize;
    let header = reader.take(header_bytes, "header")?;
    let body = reader.rest();
    let clear = hashed.get(..PREFIX_BYTES + header_bytes).unwrap_or_default();
    Ok(Parts { version, clear, header, body, hashed, hash })
}

/// Reads a record with its hash, and opens it with the key that sealed it. One whose key was
/// destroyed comes back without its texts.
#[inline]
pub(crate) fn decode(bytes: &[u8], keyring: &Keyring) -> Result<RecordedEvent, DecodeError> {
    let Parts { version, clear, header, body, hashed: record, hash } = split(bytes)?;
    match version {
        PLAIN_VERSION => plain::decode(header, body).map(|event| RecordedEvent { hash: *hash, ..event }),
        _ => sealed::decode(&sealed::Bytes { clear, header, body, record, hash }, keyring),
    }
}

/// What a sealed record without its hash says when nobody can open it. The hash is not filled in.
pub(crate) fn decode_erased(hashed: &[u8]) -> Result<RecordedEvent, DecodeError> {
    let bytes = [hashed, &[0; HASH_BYTES]].concat();
    let parts = split(&bytes)?;
    sealed::decode_erased(parts.header, parts.hashed)
}

/// What a record says without being opened: what its index entries are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outline {
    pub(crate) position: Position,
    pub(crate) stream: StreamId,
    pub(crate) seq: Seq,
    pub(crate) run: Option<ScopeId>,
    pub(crate) task: Option<[u8; 16]>,
    pub(crate) delegation_id: Option<DelegationId>,
    pub(crate) event_type: Type,
}

/// An event type as an index holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Type {
    /// By its name.
    Plain(String),
    /// By its tag.
    Tag(TypeTag),
}

/// Reads what is in the clear.
pub(crate) fn outline(bytes: &[u8]) -> Result<Outline, DecodeError> {
    let parts = split(bytes)?;
    match parts.version {
        PLAIN_VERSION => plain::outline(parts.header),
        _ => sealed::outline(parts.header),
    }
}

/// What the hash of a record covers, beside the hash before it.
pub(crate) fn hashed(bytes: &[u8]) -> &[u8] {
    bytes.split_last_chunk::<HASH_BYTES>().map_or(&[], |(hashed, _)| hashed)
}

/// Its position, which is first in every header. It costs nothing, and checks nothing.
pub(crate) fn position(bytes: &[u8]) -> Option<Position> {
    let position = bytes.get(PREFIX_BYTES..)?.first_chunk()?;
    Some(Position::new(u64::from_be_bytes(*position)))
}

/// Whether the record's body is sealed.
pub(crate) fn is_sealed(bytes: &[u8]) -> bool {
    bytes.first() == Some(&SEALED_VERSION)
}

#[cfg(test)]
mod tests;
