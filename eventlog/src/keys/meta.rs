//! Kind 8: facts about the log itself.

use super::{KeyKind, key};
use crate::{
    codec::{DecodeError, bytes::Reader},
    index::Checkpoint,
    position::Position,
    store::Head,
};

/// What the format version was stored under before version 3.
const FORMAT_VERSION: u8 = 1;
/// What the index's checkpoint is stored under.
const CHECKPOINT: u8 = 2;

pub(crate) fn format_version() -> Vec<u8> {
    key(KeyKind::Meta, &[&[FORMAT_VERSION]])
}

pub(crate) fn checkpoint() -> Vec<u8> {
    key(KeyKind::Meta, &[&[CHECKPOINT]])
}

pub(crate) fn encode_checkpoint(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut value = Vec::with_capacity(48);
    value.extend_from_slice(&checkpoint.head.position.get().to_be_bytes());
    value.extend_from_slice(&checkpoint.head.chain);
    value.extend_from_slice(&checkpoint.end.to_be_bytes());
    value
}

pub(crate) fn decode_checkpoint(value: &[u8]) -> Result<Checkpoint, DecodeError> {
    let mut reader = Reader::new(value);
    let head = Head { position: Position::new(reader.u64("position")?), chain: reader.array("chain")? };
    let checkpoint = Checkpoint { head, end: reader.u64("address")? };
    reader.finish()?;
    Ok(checkpoint)
}
