//! The list of what can be stopped by its name.

use std::sync::PoisonError;

use domain::event::Scope;

use crate::{cancellation::StopSignal, run_context::RunContext};

/// A delegation that can be stopped by its name. It is listed before anybody can hear of it, so
/// that whoever saw it in the log can stop it. Dropping this, on whatever way out, strikes it off
/// the list.
pub(crate) struct Listed {
    context: RunContext,
    scope: Scope,
    pub(super) stop: StopSignal,
}

impl Listed {
    /// Lists a delegation with a signal of its own.
    pub(crate) fn enter(context: &RunContext, scope: &Scope) -> Self {
        let stop = context.stop.child();
        if let (Some(id), Some(task_id)) = (scope.delegation_id, scope.task_id.clone()) {
            let mut live = context.live.lock().unwrap_or_else(PoisonError::into_inner);
            live.insert(id, (task_id, stop.clone()));
        }
        Self { context: context.clone(), scope: scope.clone(), stop }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(id) = self.scope.delegation_id {
            self.context.live.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        }
    }
}
