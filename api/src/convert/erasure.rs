//! Erasures.

use contracts::wire::erasure as wire;
use domain::{
    event::ErasureReason,
    ids::{RunId, ThreadId, UserId},
};
use runtime::{Erase, Erasure, ErasureState};

use crate::error::{Answer, ApiError};

/// What a body asks for: exactly one of an owner, a thread, and a run of a thread.
pub(crate) fn from_wire(body: wire::Erase) -> Answer<Erase> {
    match (body.owner, body.thread_id, body.run_id) {
        (Some(owner), None, None) => Ok(Erase::Owner(UserId::new(owner)?)),
        (None, Some(thread_id), None) => Ok(Erase::Thread(ThreadId::new(thread_id)?)),
        (None, Some(thread_id), Some(run_id)) => {
            Ok(Erase::Run(ThreadId::new(thread_id)?, RunId::new(run_id)?))
        }
        (Some(_), ..) | (None, None, _) => {
            Err(ApiError::invalid("body", "an owner, or a thread_id, or a thread_id with a run_id"))
        }
    }
}

/// An erasure, as far as it has got.
pub(crate) fn to_wire(erasure: Erasure) -> wire::Erasure {
    wire::Erasure {
        erasure_id: erasure.erasure_id.to_string(),
        thread_id: erasure.thread_id.into(),
        run_hash: erasure.run.map(|run| run.to_string()),
        reason: match erasure.reason {
            ErasureReason::Thread => wire::ErasureReason::Thread,
            ErasureReason::Owner => wire::ErasureReason::Owner,
            ErasureReason::Run => wire::ErasureReason::Run,
        },
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

/// The erasures of an owner's threads.
pub(crate) fn of_owner(erasures: Vec<wire::Erasure>) -> wire::OwnerErased {
    let state = erasures.iter().map(|erasure| erasure.state).min().unwrap_or(wire::ErasureState::Done);
    wire::OwnerErased { state, deleted: erasures.iter().map(|erasure| erasure.deleted).sum(), erasures }
}
