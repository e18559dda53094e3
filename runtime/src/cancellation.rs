//! Stopping work from outside: a signal that reaches every descendant and says why.

use std::sync::{Arc, OnceLock};

use domain::event::CancelReason;
use tokio_util::sync::CancellationToken;

/// Why work is to stop. The first cause stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// Somebody cancelled it.
    Cancelled(CancelReason),
    /// The lead's own wait for it ran out.
    WaitRanOut,
    /// The process is shutting down; the work goes on at the next start.
    ShuttingDown,
}

/// A signal to stop, passed down with the work. Clones are one signal.
#[derive(Debug, Clone)]
pub(crate) struct StopSignal(Arc<Node>);

#[derive(Debug)]
struct Node {
    token: CancellationToken,
    cause: OnceLock<StopCause>,
    parent: Option<StopSignal>,
}

impl StopSignal {
    /// A signal that nothing stands above.
    pub(crate) fn root() -> Self {
        Self(Arc::new(Node { token: CancellationToken::new(), cause: OnceLock::new(), parent: None }))
    }

    /// A signal that stops by itself or with this one.
    pub(crate) fn child(&self) -> Self {
        let token = self.0.token.child_token();
        Self(Arc::new(Node { token, cause: OnceLock::new(), parent: Some(self.clone()) }))
    }

    /// Stops the work and everything below it. What was stopped from above keeps that cause: a
    /// process that shuts down must not turn into a cancel on the way.
    pub(crate) fn stop(&self, cause: StopCause) {
        self.0.cause.get_or_init(|| self.inherited().unwrap_or(cause));
        self.0.token.cancel();
    }

    /// Why the work is to stop, if it is. What the parent was cancelled for, a child calls
    /// "parent interrupted".
    pub(crate) fn cause(&self) -> Option<StopCause> {
        self.0.cause.get().copied().or_else(|| self.inherited())
    }

    fn inherited(&self) -> Option<StopCause> {
        let cause = match self.0.parent.as_ref()?.cause()? {
            StopCause::Cancelled(CancelReason::ParentEnded) => {
                StopCause::Cancelled(CancelReason::ParentEnded)
            }
            StopCause::Cancelled(CancelReason::CancelledByUser | CancelReason::ParentInterrupted)
            | StopCause::WaitRanOut => StopCause::Cancelled(CancelReason::ParentInterrupted),
            StopCause::ShuttingDown => StopCause::ShuttingDown,
        };
        Some(cause)
    }

    /// Waits for the signal.
    pub(crate) async fn stopped(&self) {
        self.0.token.cancelled().await;
    }

    /// The bare token, for what only needs to stop.
    pub(crate) fn token(&self) -> CancellationToken {
        self.0.token.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: StopCause = StopCause::Cancelled(CancelReason::CancelledByUser);
    const PARENT: StopCause = StopCause::Cancelled(CancelReason::ParentInterrupted);

    #[test]
    fn a_stop_reaches_down_and_never_up() {
        let run = StopSignal::root();
        let (one, two) = (run.child(), run.child());
        one.stop(USER);
        assert_eq!((run.cause(), one.cause(), two.cause()), (None, Some(USER), None));
        run.stop(USER);
        assert_eq!((run.cause(), one.cause(), two.cause()), (Some(USER), Some(USER), Some(PARENT)));
        assert!(two.token().is_cancelled());
    }

    #[test]
    fn the_first_cause_stands_and_a_shutdown_is_nobody_s_cancel() {
        let run = StopSignal::root();
        run.stop(StopCause::ShuttingDown);
        run.stop(USER);
        assert_eq!(
            (run.cause(), run.child().cause()),
            (Some(StopCause::ShuttingDown), Some(StopCause::ShuttingDown))
        );
        let process = StopSignal::root();
        let (run, ended) = (process.child(), process.child());
        ended.stop(StopCause::Cancelled(CancelReason::ParentEnded));
        process.stop(StopCause::ShuttingDown);
        run.stop(USER);
        assert_eq!(run.child().cause(), Some(StopCause::ShuttingDown));
        assert_eq!(ended.child().cause(), Some(StopCause::Cancelled(CancelReason::ParentEnded)));
    }
}
