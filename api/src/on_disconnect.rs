//! Cancelling a run when the client that started it goes away, where that client asked for it.
//!
//! Without being asked, a run goes on: it is durable, and its reader may come back.

/// Cancels the run when it is dropped before it was disarmed.
pub(crate) struct CancelOnDrop(Option<Box<dyn FnOnce() + Send>>);

impl CancelOnDrop {
    /// Watches over a run that this cancels.
    pub(crate) fn new(cancel: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(cancel)))
    }

    /// The run needs no cancelling any more.
    pub(crate) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = self.0.take() {
            cancel();
        }
    }
}
