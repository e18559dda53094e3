//! Holds replies back until a test lets them go.

use std::sync::Arc;

use tokio::sync::watch;

/// A gate that is closed at first and stays open once it is open. Clones are one gate.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// A closed gate.
    pub fn closed() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Lets everything go.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Waits until the gate is open.
    pub async fn passed(&self) {
        let mut state = self.0.subscribe();
        // The sender lives as long as this gate.
        state.wait_for(|is_open| *is_open).await.unwrap();
    }
}
