//! The server's end, as its requests learn of it. Streams and waits would else hold it up.

use tokio::sync::watch;

/// Says that the server is stopping.
#[derive(Debug)]
pub(crate) struct ShutdownSwitch(watch::Sender<bool>);

/// Hears that the server is stopping.
#[derive(Debug, Clone)]
pub(crate) struct Shutdown(watch::Receiver<bool>);

impl ShutdownSwitch {
    /// A switch, and what hears it.
    pub(crate) fn new() -> (Self, Shutdown) {
        let (sender, receiver) = watch::channel(false);
        (Self(sender), Shutdown(receiver))
    }

    /// Tells everybody.
    pub(crate) fn begin(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Returns once the server is stopping. A switch that is gone was never thrown.
    pub(crate) async fn begun(&mut self) {
        if self.0.wait_for(|begun| *begun).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
