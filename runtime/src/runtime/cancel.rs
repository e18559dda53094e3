//! Cancelling runs and delegations.

use std::sync::PoisonError;

use domain::{
    event::CancelReason,
    ids::{RunId, ThreadId},
};

use super::Runtime;
use crate::{
    cancellation::StopCause,
    request::{CancelError, TaskRef},
};

impl Runtime {
    /// Stops a run and all its delegations. Answers at once; the run has its end when everything
    /// has stopped. Cancelling a run that is stopping already changes nothing.
    pub async fn cancel_run(&self, thread_id: &ThreadId, run_id: &RunId) -> Result<(), CancelError> {
        match self.live(thread_id, run_id) {
            Some(context) => {
                context.stop.stop(StopCause::Cancelled(CancelReason::CancelledByUser));
                Ok(())
            }
            None => Err(CancelError::AlreadyEnded(self.recorded(thread_id, run_id)?)),
        }
    }

    /// Stops one delegation and nothing else.
    pub async fn cancel_delegation(
        &self,
        thread_id: &ThreadId,
        run_id: &RunId,
        task: &TaskRef,
    ) -> Result<(), CancelError> {
        let Some(context) = self.live(thread_id, run_id) else {
            return Err(CancelError::AlreadyEnded(self.recorded(thread_id, run_id)?));
        };
        let live = context.live.lock().unwrap_or_else(PoisonError::into_inner);
        let found = live.iter().rev().find(|(id, (task_id, _))| match task {
            TaskRef::TaskId(wanted) => wanted == task_id,
            TaskRef::DelegationId(wanted) => wanted == *id,
        });
        match found {
            Some((_, (_, stop))) => {
                stop.stop(StopCause::Cancelled(CancelReason::CancelledByUser));
                Ok(())
            }
            None => Err(CancelError::UnknownDelegation(run_id.clone())),
        }
    }
}
