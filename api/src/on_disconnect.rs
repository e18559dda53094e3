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

    /// The run needs no cancelling any more, if anybody watched over it.
    pub(crate) fn disarm(watch: Option<Self>) {
        if let Some(mut watch) = watch {
            watch.0 = None;
        }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = self.0.take() {
            cancel();
        }
    }
}
