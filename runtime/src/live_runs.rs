//! The runs that this process works on: one per thread.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use domain::ids::{RunId, ThreadId};

use crate::run_context::RunContext;

/// The runs that this process works on.
#[derive(Default)]
pub(crate) struct LiveRuns(Mutex<HashMap<ThreadId, RunContext>>);

/// A run that is worked on. Dropping it, on whatever way out, strikes it off the list.
pub(crate) struct LiveRun(RunContext);

impl LiveRuns {
    /// Lists a run as the one of its thread.
    pub(crate) fn enter(context: RunContext) -> LiveRun {
        context.services.live_runs.lock().insert(context.thread_id.clone(), context.clone());
        LiveRun(context)
    }

    /// The run of that id, if it is worked on.
    pub(crate) fn get(&self, thread_id: &ThreadId, run_id: &RunId) -> Option<RunContext> {
        self.lock().get(thread_id).filter(|context| context.settings.run_id == *run_id).cloned()
    }

    /// The run that keeps the thread busy. One whose end is recorded does not, although it may
    /// take a moment longer to leave the list.
    pub(crate) fn active(&self, thread_id: &ThreadId) -> Option<RunId> {
        let live = self.lock();
        let context = live.get(thread_id)?;
        let has_ended = context.owner.status().borrow().is_terminal();
        (!has_ended).then(|| context.settings.run_id.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, RunContext>> {
        // The map is whole between any two statements that could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveRun {
    pub(crate) fn context(&self) -> &RunContext {
        &self.0
    }
}

impl Drop for LiveRun {
    fn drop(&mut self) {
        let mut live = self.0.services.live_runs.lock();
        // The next run of the thread may have taken the place already.
        let is_own = |context: &RunContext| context.settings.run_id == self.0.settings.run_id;
        let own = live.get(&self.0.thread_id).is_some_and(is_own).then(|| live.remove(&self.0.thread_id));
        drop(live);
        drop(own);
    }
}
