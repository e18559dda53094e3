//! Kind 10: run, seq → where the record lies, and what reads filter by.
//!
//! The event type is its name, or [`TAGGED`] and its tag, which only the key of the run can tell.

use domain::ids::DelegationId;
use uuid::Uuid;

use super::{
    KeyKind, key, location,
    location::Location,
    run_entry::{TAGGED, TypeRef, read_type},
    seq_bytes,
};
use crate::{
    codec::{DecodeError, bytes::Reader},
    position::Seq,
};

/// What is known of an event without reading it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunPlace<'a> {
    pub(crate) location: Location,
    pub(crate) delegation_id: Option<DelegationId>,
    pub(crate) event_type: TypeRef<'a>,
}

pub(crate) fn encode(run: [u8; 16], seq: Seq) -> Vec<u8> {
    key(KeyKind::RunPlace, &[&run, &seq_bytes(seq)])
}

/// Every entry of every run.
pub(crate) fn all() -> Vec<u8> {
    key(KeyKind::RunPlace, &[])
}

pub(crate) fn prefix(run: [u8; 16]) -> Vec<u8> {
    key(KeyKind::RunPlace, &[&run])
}

pub(crate) fn encode_value(place: &RunPlace<'_>) -> Vec<u8> {
    let delegation_id = place.delegation_id.map_or(Uuid::nil(), |id| id.as_uuid());
    let mut value = Vec::with_capacity(60);
    value.extend_from_slice(&location::encode(place.location));
    value.extend_from_slice(delegation_id.as_bytes());
    match place.event_type {
        TypeRef::Plain(name) => value.extend_from_slice(name.as_bytes()),
        TypeRef::Tag(tag) => {
            value.push(TAGGED);
            value.extend_from_slice(&tag);
        }
    }
    value
}

pub(crate) fn decode_value(value: &[u8]) -> Result<RunPlace<'_>, DecodeError> {
    let mut reader = Reader::new(value);
    let location = location::read(&mut reader)?;
    let delegation_id = reader.uuid("delegation_id")?;
    Ok(RunPlace {
        location,
        delegation_id: (!delegation_id.is_nil()).then(|| DelegationId::from_uuid(delegation_id)),
        event_type: read_type(reader.rest())?,
    })
}
