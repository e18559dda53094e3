//! Kind 1: position → record.

use super::{KeyKind, after_kind, key, position_bytes};
use crate::{codec::DecodeError, position::Position};

pub(crate) fn encode(position: Position) -> Vec<u8> {
    key(KeyKind::Event, &[&position_bytes(position)])
}

pub(crate) fn prefix() -> Vec<u8> {
    key(KeyKind::Event, &[])
}

pub(crate) fn decode(key: &[u8]) -> Result<Position, DecodeError> {
    let mut reader = after_kind(key, KeyKind::Event)?;
    let position = Position::new(reader.u64("position")?);
    reader.finish()?;
    Ok(position)
}
