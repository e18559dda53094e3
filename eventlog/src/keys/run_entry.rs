//! Kind 4: run, seq → position, and what reads filter by.
//!
//! The event type is its name, or [`TAGGED`] and its tag, which only the key of the run can tell.

use domain::ids::{DelegationId, RunId};
use uuid::Uuid;

use super::{KeyKind, key, name_hash, position_bytes, seq_bytes};
use crate::{
    codec::{
        DecodeError,
        bytes::{Reader, utf8},
        record::Type,
    },
    position::{Position, Seq},
    seal::TypeTag,
    stream_id::StreamId,
};

/// What is known of an event without reading it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunEntry<'a> {
    pub(crate) position: Position,
    pub(crate) delegation_id: Option<DelegationId>,
    pub(crate) event_type: TypeRef<'a>,
}

/// Begins a type that is a tag; no text begins with it.
pub(super) const TAGGED: u8 = 0xff;

/// An event type in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeRef<'a> {
    Plain(&'a str),
    Tag(TypeTag),
}

impl<'a> From<&'a Type> for TypeRef<'a> {
    fn from(event_type: &'a Type) -> Self {
        match event_type {
            Type::Plain(name) => Self::Plain(name),
            Type::Tag(tag) => Self::Tag(*tag),
        }
    }
}

pub(crate) fn encode(run: [u8; 16], seq: Seq) -> Vec<u8> {
    key(KeyKind::RunEntry, &[&run, &seq_bytes(seq)])
}

/// Every entry of every run.
pub(crate) fn all() -> Vec<u8> {
    key(KeyKind::RunEntry, &[])
}

pub(crate) fn prefix(run: [u8; 16]) -> Vec<u8> {
    key(KeyKind::RunEntry, &[&run])
}

pub(crate) fn hash(stream: &StreamId, run: &RunId) -> [u8; 16] {
    name_hash(stream, &[run.as_str()])
}

pub(crate) fn encode_value(entry: &RunEntry<'_>) -> Vec<u8> {
    let delegation_id = entry.delegation_id.map_or(Uuid::nil(), |id| id.as_uuid());
    let mut value = Vec::with_capacity(56);
    value.extend_from_slice(&position_bytes(entry.position));
    value.extend_from_slice(delegation_id.as_bytes());
    match entry.event_type {
        TypeRef::Plain(name) => value.extend_from_slice(name.as_bytes()),
        TypeRef::Tag(tag) => {
            value.push(TAGGED);
            value.extend_from_slice(&tag);
        }
    }
    value
}

pub(crate) fn decode_value(value: &[u8]) -> Result<RunEntry<'_>, DecodeError> {
    let mut reader = Reader::new(value);
    let position = Position::new(reader.u64("position")?);
    let delegation_id = reader.uuid("delegation_id")?;
    Ok(RunEntry {
        position,
        delegation_id: (!delegation_id.is_nil()).then(|| DelegationId::from_uuid(delegation_id)),
        event_type: read_type(reader.rest())?,
    })
}

pub(super) fn read_type(bytes: &[u8]) -> Result<TypeRef<'_>, DecodeError> {
    match bytes.split_first() {
        Some((&TAGGED, tag)) => {
            let mut reader = Reader::new(tag);
            let tag = reader.array("type tag")?;
            reader.finish()?;
            Ok(TypeRef::Tag(tag))
        }
        _ => Ok(TypeRef::Plain(utf8(bytes, "event_type")?)),
    }
}
