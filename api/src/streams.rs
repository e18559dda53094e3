//! How many event streams may be open at once.

use std::sync::Arc;

use contracts::wire::problem::ProblemCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Answer, ApiError};

/// Each holds a page of events and a connection; a page of a browser opens one per run that it shows.
pub(crate) const STREAMS_MAX: usize = 1_024;

/// The places for streams.
#[derive(Debug, Clone)]
pub(crate) struct Streams(Arc<Semaphore>);

impl Streams {
    /// All places are free.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(STREAMS_MAX)))
    }

    /// Takes a place until it is dropped.
    pub(crate) fn take(&self) -> Answer<OwnedSemaphorePermit> {
        Arc::clone(&self.0).try_acquire_owned().map_err(|_| {
            let detail = format!("{STREAMS_MAX} event streams are open, the most at once; close one");
            ApiError::new(ProblemCode::RateLimited, detail)
        })
    }

    /// How many are open.
    pub(crate) fn open(&self) -> usize {
        STREAMS_MAX - self.0.available_permits()
    }
}
