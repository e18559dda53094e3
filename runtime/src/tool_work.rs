//! Tools at work. A tool may outlive the run that called it: a file that is being written is still
//! finished, and killed processes take a moment to be gone. Whoever takes the files away waits for that.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use domain::ids::{RunId, ThreadId};
use tokio::sync::Notify;

/// What tools of this process do. Clones are one list.
#[derive(Clone, Default)]
pub(crate) struct ToolWork(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// How many pieces of work each run has; a run without any is not in it.
    at_work: Mutex<HashMap<(ThreadId, RunId), usize>>,
    /// Tells that a run has no more work.
    ended: Notify,
    /// Who waits for that now.
    #[cfg(test)]
    waiting: std::sync::atomic::AtomicUsize,
}

/// Lists the work of one run's tools. Without a run it lists nothing.
#[derive(Clone, Default)]
pub(crate) struct WorkList(Option<(Arc<Inner>, ThreadId, RunId)>);

/// A piece of work. It has ended when this is dropped.
pub(crate) struct AtWork(WorkList);

impl ToolWork {
    /// The list of one run.
    pub(crate) fn of(&self, thread_id: &ThreadId, run_id: &RunId) -> WorkList {
        WorkList(Some((Arc::clone(&self.0), thread_id.clone(), run_id.clone())))
    }

    /// Waits until none of the meant runs has a tool at work. Work that begins meanwhile counts.
    pub(crate) async fn ended(&self, is_meant: impl Fn(&ThreadId, &RunId) -> bool) {
        loop {
            let ended = self.0.ended.notified();
            let mut ended = std::pin::pin!(ended);
            // Listens before it looks, so that no end in between is missed.
            ended.as_mut().enable();
            if !self.0.lock().keys().any(|(thread_id, run_id)| is_meant(thread_id, run_id)) {
                return;
            }
            #[cfg(test)]
            let _waiting = tests::Waiting::begin(&self.0.waiting);
            ended.await;
        }
    }

    /// How many wait for work to end.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.0.waiting.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(ThreadId, RunId), usize>> {
        // Counts change in one statement.
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkList {
    /// Lists a piece of work that begins now.
    pub(crate) fn begin(&self) -> AtWork {
        if let Some((inner, thread_id, run_id)) = &self.0 {
            *inner.lock().entry((thread_id.clone(), run_id.clone())).or_default() += 1;
        }
        AtWork(self.clone())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let Some((inner, thread_id, run_id)) = &self.0.0 else { return };
        let mut at_work = inner.lock();
        let key = (thread_id.clone(), run_id.clone());
        let left = at_work.get_mut(&key).map_or(0, |count| {
            *count -= 1;
            *count
        });
        if left == 0 {
            at_work.remove(&key);
            drop(at_work);
            inner.ended.notify_waiters();
        }
    }
}

impl fmt::Debug for WorkList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkList")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts one that waits, until it is dropped.
    pub(super) struct Waiting<'a>(&'a AtomicUsize);

    impl<'a> Waiting<'a> {
        pub(super) fn begin(count: &'a AtomicUsize) -> Self {
            count.fetch_add(1, Ordering::SeqCst);
            Self(count)
        }
    }

    impl Drop for Waiting<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn ids(thread: &str, run: &str) -> (ThreadId, RunId) {
        (ThreadId::new(thread).unwrap(), RunId::new(run).unwrap())
    }

    #[tokio::test]
    async fn the_last_piece_of_work_ends_the_wait_and_that_of_others_does_not_matter() {
        let work = ToolWork::default();
        let ((t, r), (_, other)) = (ids("t", "r"), ids("t", "other"));
        work.ended(|_, _| true).await;
        let (one, two, of_other) =
            (work.of(&t, &r).begin(), work.of(&t, &r).begin(), work.of(&t, &other).begin());
        let mut ended = Box::pin(work.ended(|thread, run| (thread, run) == (&t, &r)));
        let mut all_ended = Box::pin(work.ended(|thread, _| *thread == t));
        assert!(
            futures::poll!(ended.as_mut()).is_pending() && futures::poll!(all_ended.as_mut()).is_pending()
        );
        drop(one);
        assert!(futures::poll!(ended.as_mut()).is_pending());
        drop(two);
        ended.await;
        assert!(futures::poll!(all_ended.as_mut()).is_pending());
        drop(of_other);
        all_ended.await;
        assert!(work.0.lock().is_empty(), "nothing is kept of runs without work");
        drop(WorkList::default().begin());
    }
}
