//! Ids come in from outside, so that a whole run can be simulated.

use domain::ids::{DelegationId, EventId};
use uuid::Uuid;

/// Makes ids that have never been used.
pub trait IdSource: Send + Sync {
    /// A new UUID, version 7 outside of simulations.
    fn uuid(&self) -> Uuid;

    /// Names a new event.
    fn event_id(&self) -> EventId {
        EventId::from_uuid(self.uuid())
    }

    /// Names a new delegation.
    fn delegation_id(&self) -> DelegationId {
        DelegationId::from_uuid(self.uuid())
    }
}

/// UUID v7 from the machine's clock and randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl IdSource for SystemIds {
    fn uuid(&self) -> Uuid {
        Uuid::now_v7()
    }
}
