//! Waits between attempts that take no time and are remembered.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::BoxFuture;
use runtime::models::Pauses;

/// Lets no time pass, and no chance in. Clones share what they remember.
#[derive(Debug, Clone, Default)]
pub struct QuickPauses(Arc<Mutex<Vec<Duration>>>);

impl QuickPauses {
    /// Every wait that was asked for.
    pub fn waits(&self) -> Vec<Duration> {
        self.0.lock().unwrap().clone()
    }
}

impl Pauses for QuickPauses {
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        self.0.lock().unwrap().push(duration);
        Box::pin(tokio::task::yield_now())
    }

    fn fraction(&self) -> f64 {
        0.0
    }
}
