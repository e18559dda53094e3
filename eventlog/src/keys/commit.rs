//! Kind 7, before version 3: last position of a commit → the commit. The greatest key is the head of
//! the log.

use super::{KeyKind, after_kind, key, position_bytes};
use crate::{
    codec::{DecodeError, bytes::Reader},
    position::Position,
    store::Commit,
};

pub(crate) fn encode(last: Position) -> Vec<u8> {
    key(KeyKind::Commit, &[&position_bytes(last)])
}

pub(crate) fn prefix() -> Vec<u8> {
    key(KeyKind::Commit, &[])
}

pub(crate) fn decode(key: &[u8]) -> Result<Position, DecodeError> {
    let mut reader = after_kind(key, KeyKind::Commit)?;
    let last = Position::new(reader.u64("position")?);
    reader.finish()?;
    Ok(last)
}

/// The commit whose key holds `last`.
pub(crate) fn decode_value(last: Position, value: &[u8]) -> Result<Commit, DecodeError> {
    let mut reader = Reader::new(value);
    let commit = Commit {
        first: Position::new(reader.u64("position")?),
        last,
        chain: reader.array("chain")?,
        committed_at: reader.timestamp("committed_at")?,
    };
    reader.finish()?;
    Ok(commit)
}
