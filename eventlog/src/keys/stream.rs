//! Kind 3: stream name → its tail.

use super::{KeyKind, after_kind, key};
use crate::{
    codec::{
        DecodeError,
        bytes::{Reader, utf8},
    },
    position::{Position, Seq},
    store::Tail,
    stream_id::StreamId,
};

pub(crate) fn encode(stream: &StreamId) -> Vec<u8> {
    key(KeyKind::Stream, &[stream.to_string().as_bytes()])
}

pub(crate) fn prefix() -> Vec<u8> {
    key(KeyKind::Stream, &[])
}

pub(crate) fn decode(key: &[u8]) -> Result<StreamId, DecodeError> {
    let mut reader = after_kind(key, KeyKind::Stream)?;
    Ok(utf8(reader.rest(), "stream")?.parse()?)
}

pub(crate) fn encode_value(tail: &Tail) -> Vec<u8> {
    let mut value = Vec::with_capacity(48);
    value.extend_from_slice(&tail.seq.get().to_be_bytes());
    value.extend_from_slice(&tail.hash);
    value.extend_from_slice(&tail.position.get().to_be_bytes());
    value
}

pub(crate) fn decode_value(value: &[u8]) -> Result<Tail, DecodeError> {
    let mut reader = Reader::new(value);
    let tail = Tail {
        seq: Seq::new(reader.u64("seq")?),
        hash: reader.array("hash")?,
        position: Position::new(reader.u64("position")?),
    };
    reader.finish()?;
    Ok(tail)
}
