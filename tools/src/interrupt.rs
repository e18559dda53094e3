//! The wishes of the operating system and the person at it that this process should end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears Ctrl-C and the request to terminate.
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// From now on these signals do not end the process by themselves.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next wish.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
