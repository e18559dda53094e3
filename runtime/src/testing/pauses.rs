//! Waits between attempts that do not take time, or never end.

use std::time::Duration;

use futures::future::BoxFuture;

use crate::models::retry::Pauses;

/// What becomes of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestPauses {
    Skipped,
    Endless,
}

impl Pauses for TestPauses {
    fn sleep(&self, _duration: Duration) -> BoxFuture<'_, ()> {
        match self {
            Self::Skipped => Box::pin(std::future::ready(())),
            Self::Endless => Box::pin(std::future::pending()),
        }
    }

    fn fraction(&self) -> f64 {
        0.0
    }
}
