//! Time that passes only when a test says so.

use std::time::Duration;

/// While this lives, a paused clock moves by [`ManualTime::advance`] alone. Without it tokio skips
/// to the next timer as soon as nothing is ready, and the log's writer, a thread of its own, is
/// nothing that it waits for.
pub(crate) struct ManualTime(Option<std::sync::mpsc::Sender<()>>);

impl ManualTime {
    /// Stops the clock.
    pub(crate) fn start() -> Self {
        tokio::time::pause();
        let (release, held) = std::sync::mpsc::channel::<()>();
        // A blocking task keeps tokio from skipping.
        drop(tokio::task::spawn_blocking(move || held.recv().is_ok()));
        Self(Some(release))
    }

    /// Lets time pass.
    pub(crate) async fn advance(&self, duration: Duration) {
        tokio::time::advance(duration).await;
    }
}

impl Drop for ManualTime {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}
