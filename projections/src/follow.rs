//! Following the log in the background.

use std::{future::Future, sync::atomic::Ordering, time::Duration};

use eventlog::{Position, ReadError, SubscribeFrom};
use tokio::task::JoinHandle;

use crate::{projections::Projections, rebuild::RebuildError, runner::CatchUpError};

/// The pause after a failure: the disk may be full for a while, and nobody is helped by a busy
/// loop. Meanwhile queries answer from where the views are.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

impl Projections {
    /// Brings the views to the head of the log and keeps them there, in a task of its own, until
    /// `shutdown` is ready or the log is closed. Ends between two pages, never within one. What an
    /// earlier process did not finish making again, or an earlier version made, is made again beside.
    pub fn follow(&self, shutdown: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let projections = self.clone();
        projections.0.is_stopping.store(false, Ordering::Relaxed);
        let renewing = projections.clone();
        let renewal = tokio::task::spawn_blocking(move || renewing.renew_or_tell());
        tokio::spawn(async move {
            let mut shutdown = std::pin::pin!(shutdown);
            loop {
                let stepped = projections.step_aside().await;
                let next = projections.next_step(stepped);
                tokio::select! {
                    biased;
                    () = &mut shutdown => break,
                    is_open = next => if !is_open { break },
                }
            }
            projections.0.is_stopping.store(true, Ordering::Relaxed);
            // It has told of its failures itself.
            drop(renewal.await);
        })
    }

    fn renew_or_tell(&self) {
        match self.renew() {
            Ok(()) => {}
            // Somebody asked for it first.
            Err(RebuildError::Busy { .. }) => {}
            Err(error) => {
                let error = crate::runner::chain(&error);
                tracing::error!(error, "views could not be made again; those that were made before answer");
            }
        }
    }

    /// One page, folded where blocking does no harm.
    async fn step_aside(&self) -> Result<Position, CatchUpError> {
        let projections = self.clone();
        let step = tokio::task::spawn_blocking(move || projections.step(projections.0.page_events));
        match step.await {
            Ok(stepped) => stepped,
            // Only a panic ends a blocking task early; it is passed on to whoever holds the handle.
            Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
            Err(_) => Err(CatchUpError::Log(ReadError::Closed)),
        }
    }

    /// Waits until there is something to do. `false` when there will be nothing more.
    async fn next_step(&self, stepped: Result<Position, CatchUpError>) -> bool {
        match stepped {
            Ok(at) if at < self.0.log.head() => true,
            Ok(at) => {
                // The subscription only says that there is more: the step reads it, so that there
                // is one way to read.
                let mut subscription = self.0.log.subscribe(SubscribeFrom::All { after: at });
                match subscription.next_page(1).await {
                    Ok(_) => true,
                    Err(ReadError::Closed) => false,
                    Err(error) => {
                        self.pause_after(&CatchUpError::Log(error)).await;
                        true
                    }
                }
            }
            Err(error) if error.is_closed() => false,
            Err(error) => {
                self.pause_after(&error).await;
                true
            }
        }
    }

    async fn pause_after(&self, error: &CatchUpError) {
        let chain = crate::runner::chain(error);
        tracing::error!(error = chain, at = %self.position(), "the views could not follow the log; they try again");
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}
