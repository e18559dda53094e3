//! The hash of a stream, which begins the keys of its entries. Kind 2 was, before version 3: stream,
//! seq → position.

use super::name_hash;
use crate::stream_id::StreamId;

pub(crate) fn hash(stream: &StreamId) -> [u8; 16] {
    name_hash(stream, &[])
}
