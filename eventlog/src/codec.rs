//! Records and values as bytes. Which bytes are stored under which key is in `keys`.
//!
//! A record carries its version in its first byte. A new shape is a new version beside the old
//! one; the old one is read for ever. Integers are big endian.

use domain::ids::InvalidId;

use crate::{position::Seq, stream_id::StreamId};

pub(crate) mod bytes;
pub(crate) mod digest;
pub(crate) mod fact;
#[cfg(test)]
mod golden;
mod plain;
pub(crate) mod record;
mod sealed;
pub(crate) mod typed;
mod upcast;

/// Stored bytes that are not what they should be.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The record was written by a later version of this program.
    #[error("record version {found} is not known; this program reads up to version {}", record::VERSION)]
    Version {
        /// What the record says.
        found: u8,
    },
    /// The record uses a feature that this version does not have.
    #[error("record flags {found:#04x} are not known")]
    Flags {
        /// What the record says.
        found: u8,
    },
    /// The body does not fit to its header and key: one of them was changed.
    #[error("the sealed body of event {seq} of stream {stream} cannot be opened: it was changed")]
    SealBroken {
        /// The stream.
        stream: StreamId,
        /// Its place there.
        seq: Seq,
    },
    /// The key was never destroyed and is not there.
    #[error("the key of event {seq} of stream {stream} is lost; restore the key file from a backup")]
    KeyMissing {
        /// The stream.
        stream: StreamId,
        /// Its place there.
        seq: Seq,
    },
    /// The key could not be read.
    #[error("could not read the key")]
    Key(#[source] std::io::Error),
    /// A key of another kind than was asked for.
    #[error("the key is of kind {found}, not {expected}")]
    KeyKind {
        /// What the key says.
        found: u8,
        /// What was asked for.
        expected: u8,
    },
    /// The bytes end too early.
    #[error("the bytes end within {field}")]
    Short {
        /// What was being read.
        field: &'static str,
    },
    /// There are bytes after the end.
    #[error("{count} bytes are left over")]
    LeftOver {
        /// How many.
        count: usize,
    },
    /// Text that is not UTF-8.
    #[error("{field} is not UTF-8")]
    Text {
        /// What was being read.
        field: &'static str,
        /// Where it breaks.
        #[source]
        source: std::str::Utf8Error,
    },
    /// An id that breaks its own rules.
    #[error("an id is malformed")]
    Id(#[from] InvalidId),
    /// A stream name that breaks its rules.
    #[error("the stream is malformed")]
    Stream(#[from] crate::stream_id::InvalidStreamId),
    /// A time outside the range of times.
    #[error("{field} is out of range")]
    Time {
        /// What was being read.
        field: &'static str,
        /// What is wrong with it.
        #[source]
        source: jiff::Error,
    },
}

/// An event with a text that is longer than its field can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} of {bytes} bytes does not fit into a record")]
pub struct EncodeError {
    /// The field.
    pub field: &'static str,
    /// How long it is.
    pub bytes: usize,
}
