//! Where a record lies in the segments: part of the values of several kinds.

use crate::codec::{DecodeError, bytes::Reader};

/// The bytes of a record: an offset over all segments, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) address: u64,
    pub(crate) length: u32,
}

/// The length of an encoded location.
pub(crate) const BYTES: usize = 12;

pub(crate) fn encode(location: Location) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let parts = location.address.to_be_bytes().into_iter().chain(location.length.to_be_bytes());
    for (to, from) in bytes.iter_mut().zip(parts) {
        *to = from;
    }
    bytes
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Location, DecodeError> {
    Ok(Location { address: reader.u64("address")?, length: reader.u32("length")? })
}
