//! Kind 11: last position of a commit → the commit, and where its frame lies.

use super::{KeyKind, after_kind, key, position_bytes};
use crate::{
    codec::{
        DecodeError,
        bytes::{Reader, put_timestamp},
    },
    position::Position,
    store::Commit,
};

pub(crate) fn encode(last: Position) -> Vec<u8> {
    key(KeyKind::CommitPlace, &[&position_bytes(last)])
}

pub(crate) fn prefix() -> Vec<u8> {
    key(KeyKind::CommitPlace, &[])
}

pub(crate) fn decode(key: &[u8]) -> Result<Position, DecodeError> {
    let mut reader = after_kind(key, KeyKind::CommitPlace)?;
    let last = Position::new(reader.u64("position")?);
    reader.finish()?;
    Ok(last)
}

pub(crate) fn encode_value(commit: &Commit, address: u64) -> Vec<u8> {
    let mut value = Vec::with_capacity(60);
    value.extend_from_slice(&address.to_be_bytes());
    value.extend_from_slice(&position_bytes(commit.first));
    value.extend_from_slice(&commit.chain);
    put_timestamp(&mut value, commit.committed_at);
    value
}

/// The commit whose key holds `last`, and the address of its frame.
pub(crate) fn decode_value(last: Position, value: &[u8]) -> Result<(Commit, u64), DecodeError> {
    let mut reader = Reader::new(value);
    let address = reader.u64("address")?;
    let commit = Commit {
        first: Position::new(reader.u64("position")?),
        last,
        chain: reader.array("chain")?,
        committed_at: reader.timestamp("committed_at")?,
    };
    reader.finish()?;
    Ok((commit, address))
}
