//! Kind 9: stream, seq → where the record lies.

use super::{KeyKind, key, location, location::Location, seq_bytes};
use crate::{
    codec::{DecodeError, bytes::Reader},
    position::Seq,
};

pub(crate) fn encode(stream: [u8; 16], seq: Seq) -> Vec<u8> {
    key(KeyKind::StreamPlace, &[&stream, &seq_bytes(seq)])
}

/// Every entry of every stream.
pub(crate) fn all() -> Vec<u8> {
    key(KeyKind::StreamPlace, &[])
}

pub(crate) fn prefix(stream: [u8; 16]) -> Vec<u8> {
    key(KeyKind::StreamPlace, &[&stream])
}

pub(crate) fn encode_value(location: Location) -> Vec<u8> {
    location::encode(location).to_vec()
}

pub(crate) fn decode_value(value: &[u8]) -> Result<Location, DecodeError> {
    let mut reader = Reader::new(value);
    let location = location::read(&mut reader)?;
    reader.finish()?;
    Ok(location)
}
