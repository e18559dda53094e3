//! Kind 2: stream, seq → position.

use super::{KeyKind, key, name_hash, position_bytes, seq_bytes};
use crate::{
    codec::{DecodeError, bytes::Reader},
    position::{Position, Seq},
    stream_id::StreamId,
};

pub(crate) fn encode(stream: &StreamId, seq: Seq) -> Vec<u8> {
    key(KeyKind::StreamEntry, &[&hash(stream), &seq_bytes(seq)])
}

/// The key, from the hash of the stream.
pub(crate) fn encode_hashed(stream: [u8; 16], seq: Seq) -> Vec<u8> {
    key(KeyKind::StreamEntry, &[&stream, &seq_bytes(seq)])
}

/// Every entry of every stream.
pub(crate) fn all() -> Vec<u8> {
    key(KeyKind::StreamEntry, &[])
}

pub(crate) fn prefix(stream: &StreamId) -> Vec<u8> {
    key(KeyKind::StreamEntry, &[&hash(stream)])
}

pub(crate) fn hash(stream: &StreamId) -> [u8; 16] {
    name_hash(stream, &[])
}

pub(crate) fn encode_value(position: Position) -> Vec<u8> {
    position_bytes(position).to_vec()
}

pub(crate) fn decode_value(value: &[u8]) -> Result<Position, DecodeError> {
    let mut reader = Reader::new(value);
    let position = Position::new(reader.u64("position")?);
    reader.finish()?;
    Ok(position)
}
