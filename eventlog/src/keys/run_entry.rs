//! The hash of a run, which begins the keys of its entries, and the event types in them. Kind 4 was,
//! before version 3: run, seq → position, and what reads filter by.

use domain::ids::RunId;

use super::name_hash;
use crate::{
    codec::{
        DecodeError,
        bytes::{Reader, utf8},
        record::Type,
    },
    seal::TypeTag,
    stream_id::StreamId,
};

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

pub(crate) fn hash(stream: &StreamId, run: &RunId) -> [u8; 16] {
    name_hash(stream, &[run.as_str()])
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
