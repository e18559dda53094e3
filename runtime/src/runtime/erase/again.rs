//! Keys that an erasure destroyed and that are there again, because somebody put an older copy of the
//! key file back. They are destroyed again, and that is recorded.

use domain::event::{ErasureRepeated, RegistryEvent};
use eventlog::{EventLog, Expected};

use super::job;
use crate::{
    clock::Clock,
    erasure::{self, Erasure},
    id_source::IdSource,
    registry::Registrar,
    request::EraseError,
};

/// Destroys the keys of everything that was erased and could be read again. Gives the erasures. Whoever
/// opens a log does this before anybody reads it.
pub async fn enforce(
    log: &EventLog,
    ids: &dyn IdSource,
    clock: &dyn Clock,
) -> Result<Vec<Erasure>, EraseError> {
    let revived = erasure::revived_in(log)?;
    for erasure in &revived {
        let Erasure { erasure_id, thread_id, run, .. } = erasure;
        job::destroy_keys(log, erasure).await?;
        tracing::warn!(%erasure_id, %thread_id,
            "the key of something erased was there again, from an older copy of the keys; it is destroyed again");
        let repeated =
            ErasureRepeated { erasure_id: *erasure_id, thread_id: thread_id.clone(), run_hash: *run };
        let event = RegistryEvent::ErasureRepeated(repeated);
        Registrar { log, ids, clock }.record(Expected::Any, event).await?;
    }
    Ok(revived)
}
