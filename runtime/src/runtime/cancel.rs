//! Cancelling runs and delegations.

use std::sync::PoisonError;

use domain::{
    event::CancelReason,
    ids::{DelegationId, RunId, ThreadId, ToolCallId},
    run::Run,
};
use eventlog::EventLog;

use super::Runtime;
use crate::{
    cancellation::{StopCause, StopSignal},
    request::{CancelError, HistoryError, TaskRef},
    run_context::RunContext,
    run_lookup,
};

impl Runtime {
    /// Stops a run and all its delegations. Answers at once; the run has its end when everything
    /// has stopped. Cancelling a run that is stopping already changes nothing.
    pub async fn cancel_run(&self, thread_id: &ThreadId, run_id: &RunId) -> Result<(), CancelError> {
        let Some(context) = self.live(thread_id, run_id) else {
            return Err(CancelError::AlreadyEnded(self.recorded(thread_id, run_id).await?));
        };
        let status = *context.owner.status().borrow();
        if status.is_terminal() {
            return Err(CancelError::AlreadyEnded(status));
        }
        context.stop.stop(StopCause::Cancelled(CancelReason::CancelledByUser));
        Ok(())
    }

    /// Stops one delegation and nothing else.
    pub async fn cancel_delegation(
        &self,
        thread_id: &ThreadId,
        run_id: &RunId,
        task: &TaskRef,
    ) -> Result<(), CancelError> {
        let Some(context) = self.live(thread_id, run_id) else {
            return Err(CancelError::AlreadyEnded(self.recorded(thread_id, run_id).await?));
        };
        let Some(stop) = live_delegation(&context, task) else {
            return Err(self.not_live(thread_id, run_id, task).await?);
        };
        stop.stop(StopCause::Cancelled(CancelReason::CancelledByUser));
        Ok(())
    }

    /// Stops all delegations of a run that are open, and nothing else: its lead is told, and goes on.
    pub async fn cancel_delegations(&self, thread_id: &ThreadId, run_id: &RunId) -> Result<(), CancelError> {
        let Some(context) = self.live(thread_id, run_id) else {
            return Err(CancelError::AlreadyEnded(self.recorded(thread_id, run_id).await?));
        };
        // Out of the list first: stopping wakes others, who may want it.
        let stops: Vec<StopSignal> = {
            let live = context.live.lock().unwrap_or_else(PoisonError::into_inner);
            live.values().map(|(_, stop)| stop.clone()).collect()
        };
        for stop in stops {
            stop.stop(StopCause::Cancelled(CancelReason::CancelledByUser));
        }
        Ok(())
    }

    /// Why a delegation that nobody works on cannot be cancelled.
    async fn not_live(
        &self,
        thread_id: &ThreadId,
        run_id: &RunId,
        task: &TaskRef,
    ) -> Result<CancelError, HistoryError> {
        let (thread, run, task) = (thread_id.clone(), run_id.clone(), task.clone());
        let read = move |log: &EventLog| {
            let of_run = run_lookup::run(log, &thread, &run)?;
            Ok((of_run, run_lookup::delegation(log, &thread, &run, &task)?))
        };
        let (of_run, delegation) = self.read(read).await?;
        if let Run::Ended(status) = of_run {
            return Ok(CancelError::AlreadyEnded(status));
        }
        if delegation.is_some_and(|delegation| !delegation.is_open()) {
            Ok(CancelError::DelegationEnded)
        } else {
            Ok(CancelError::UnknownDelegation(run_id.clone()))
        }
    }
}

/// The signal is taken out of the list first: stopping wakes others, who may want the list.
fn live_delegation(context: &RunContext, task: &TaskRef) -> Option<StopSignal> {
    let live = context.live.lock().unwrap_or_else(PoisonError::into_inner);
    let mut newest_first = live.iter().rev();
    let is_named = |id: &DelegationId, task_id: &ToolCallId| match task {
        TaskRef::TaskId(wanted) => wanted == task_id,
        TaskRef::DelegationId(wanted) => wanted == id,
    };
    newest_first.find(|(id, (task_id, _))| is_named(id, task_id)).map(|(_, (_, stop))| stop.clone())
}
