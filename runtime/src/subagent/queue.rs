//! The wait for a slot.

use std::time::Duration;

use crate::admission::{Entry, Slot};
use domain::event::RefusalReason;

use super::Subagent;

impl Subagent {
    /// Waits for a slot: `Err(None)` when the work was stopped meanwhile.
    /// `spent` is what it waited before a restart.
    pub(super) async fn slot(
        &self,
        entry: Entry,
        spent: Duration,
    ) -> Result<Slot, Option<(RefusalReason, String)>> {
        let queue_timeout = self.context.services.queue_timeout;
        let waiting = match entry {
            Entry::Admitted(slot) => return if self.is_stopped() { Err(None) } else { Ok(slot) },
            Entry::Full => {
                return Err(Some((RefusalReason::QueueFull, "the queue for a subagent slot is full".into())));
            }
            Entry::Waiting(waiting) => waiting,
        };
        tokio::select! {
            biased;
            () = self.stop.stopped() => Err(None),
            slot = waiting.admitted() => Ok(slot),
            () = tokio::time::sleep(queue_timeout.saturating_sub(spent)) => {
                let waited = queue_timeout.as_secs();
                let message = format!("no subagent slot became free within {waited} seconds; do this part yourself or ask again later");
                Err(Some((RefusalReason::QueueTimeout, message)))
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.token().is_cancelled()
    }
}
