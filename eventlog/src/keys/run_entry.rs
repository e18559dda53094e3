//! Kind 4: run, seq → position, and what reads filter by.

use domain::ids::{DelegationId, RunId};
use uuid::Uuid;

use super::{KeyKind, key, name_hash, position_bytes, seq_bytes};
use crate::{
    codec::{
        DecodeError,
        bytes::{Reader, utf8},
    },
    position::{Position, Seq},
    stream_id::StreamId,
};

/// What is known of an event without reading it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunEntry<'a> {
    pub(crate) position: Position,
    pub(crate) delegation_id: Option<DelegationId>,
    pub(crate) event_type: &'a str,
}

pub(crate) fn encode(stream: &StreamId, run: &RunId, seq: Seq) -> Vec<u8> {
    key(KeyKind::RunEntry, &[&hash(stream, run), &seq_bytes(seq)])
}

pub(crate) fn prefix(stream: &StreamId, run: &RunId) -> Vec<u8> {
    key(KeyKind::RunEntry, &[&hash(stream, run)])
}

fn hash(stream: &StreamId, run: &RunId) -> [u8; 16] {
    name_hash(&[&stream.to_string(), run.as_str()])
}

pub(crate) fn encode_value(entry: &RunEntry<'_>) -> Vec<u8> {
    let delegation_id = entry.delegation_id.map_or(Uuid::nil(), |id| id.as_uuid());
    let mut value = Vec::with_capacity(24 + entry.event_type.len());
    value.extend_from_slice(&position_bytes(entry.position));
    value.extend_from_slice(delegation_id.as_bytes());
    value.extend_from_slice(entry.event_type.as_bytes());
    value
}

pub(crate) fn decode_value(value: &[u8]) -> Result<RunEntry<'_>, DecodeError> {
    let mut reader = Reader::new(value);
    let position = Position::new(reader.u64("position")?);
    let delegation_id = reader.uuid("delegation_id")?;
    Ok(RunEntry {
        position,
        delegation_id: (!delegation_id.is_nil()).then(|| DelegationId::from_uuid(delegation_id)),
        event_type: utf8(reader.rest(), "event_type")?,
    })
}
