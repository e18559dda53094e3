//! Kind 6: idempotency key within a stream → what was appended under it.
//!
//! A value of 44 bytes, from the first format, has a digest that anybody can make. One more byte, 1,
//! says that the digest was made with the thread's key, so that it says nothing without it.

use super::{KeyKind, key, name_hash, position_bytes};
use crate::{
    append::IdempotencyKey,
    codec::{DecodeError, bytes::Reader},
    position::Position,
    store::KeyUse,
    stream_id::StreamId,
};

/// The key, from the hash of stream and idempotency key.
pub(crate) fn encode_hashed(hash: [u8; 32]) -> Vec<u8> {
    key(KeyKind::Idempotency, &[&hash])
}

pub(crate) fn hash(stream: &StreamId, idempotency_key: &IdempotencyKey) -> [u8; 32] {
    name_hash(stream, &[idempotency_key.as_str()])
}

/// Every key of every stream.
pub(crate) fn all() -> Vec<u8> {
    key(KeyKind::Idempotency, &[])
}

/// Ends a value whose digest was made with a key.
const KEYED: u8 = 1;

pub(crate) fn encode_value(key_use: &KeyUse) -> Vec<u8> {
    let mut value = Vec::with_capacity(45);
    value.extend_from_slice(&key_use.digest);
    value.extend_from_slice(&position_bytes(key_use.first));
    value.extend_from_slice(&key_use.count.to_be_bytes());
    if key_use.is_keyed {
        value.push(KEYED);
    }
    value
}

pub(crate) fn decode_value(value: &[u8]) -> Result<KeyUse, DecodeError> {
    let mut reader = Reader::new(value);
    let (digest, first, count) = (reader.array("digest")?, reader.u64("position")?, reader.u32("count")?);
    let is_keyed = match reader.rest() {
        [] => false,
        [KEYED] => true,
        more => return Err(DecodeError::LeftOver { count: more.len() }),
    };
    Ok(KeyUse { digest, is_keyed, first: Position::new(first), count })
}
