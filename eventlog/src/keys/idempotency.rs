//! Kind 6: idempotency key within a stream → what was appended under it.

use super::{KeyKind, key, name_hash, position_bytes};
use crate::{
    append::IdempotencyKey,
    codec::{DecodeError, bytes::Reader},
    position::Position,
    store::KeyUse,
    stream_id::StreamId,
};

pub(crate) fn encode(stream: &StreamId, idempotency_key: &IdempotencyKey) -> Vec<u8> {
    let hash: [u8; 32] = name_hash(&[&stream.to_string(), idempotency_key.as_str()]);
    key(KeyKind::Idempotency, &[&hash])
}

pub(crate) fn encode_value(key_use: &KeyUse) -> Vec<u8> {
    let mut value = Vec::with_capacity(44);
    value.extend_from_slice(&key_use.digest);
    value.extend_from_slice(&position_bytes(key_use.first));
    value.extend_from_slice(&key_use.count.to_be_bytes());
    value
}

pub(crate) fn decode_value(value: &[u8]) -> Result<KeyUse, DecodeError> {
    let mut reader = Reader::new(value);
    let key_use = KeyUse {
        digest: reader.array("digest")?,
        first: Position::new(reader.u64("position")?),
        count: reader.u32("count")?,
    };
    reader.finish()?;
    Ok(key_use)
}
