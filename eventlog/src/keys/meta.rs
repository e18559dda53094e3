//! Kind 8: facts about the log itself.

use super::{KeyKind, key};
use crate::codec::{DecodeError, bytes::Reader};

/// What the format version is stored under.
const FORMAT_VERSION: u8 = 1;

pub(crate) fn format_version() -> Vec<u8> {
    key(KeyKind::Meta, &[&[FORMAT_VERSION]])
}

pub(crate) fn encode_value(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

pub(crate) fn decode_value(value: &[u8]) -> Result<u32, DecodeError> {
    let mut reader = Reader::new(value);
    let number = reader.u32("number")?;
    reader.finish()?;
    Ok(number)
}
