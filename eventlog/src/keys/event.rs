//! Kind 1, before version 3: position → record.

use super::{KeyKind, key, position_bytes};
use crate::position::Position;

pub(crate) fn encode(position: Position) -> Vec<u8> {
    key(KeyKind::Event, &[&position_bytes(position)])
}
