//! Erasures.

use contracts::wire::erasure as wire;
use runtime::{Erasure, ErasureState};

/// An erasure, as far as it has got.
pub(crate) fn to_wire(erasure: Erasure) -> wire::Erasure {
    wire::Erasure {
        erasure_id: erasure.erasure_id.to_string(),
        thread_id: erasure.thread_id.into(),
        state: match erasure.state {
            ErasureState::Requested => wire::ErasureState::Requested,
            ErasureState::Erasing => wire::ErasureState::Erasing,
            ErasureState::Done => wire::ErasureState::Done,
        },
        deleted: erasure.events,
        requested_at: erasure.requested_at.to_string(),
        done_at: erasure.done_at.map(|at| at.to_string()),
    }
}
