//! Reading what one has just written: waiting until the views have it.

use std::time::Duration;

use eventlog::Position;

use crate::projections::Projections;

/// The views have not got there in the time given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the views are at position {at} and not yet at {wanted}; ask again, or without that wish")]
pub struct Behind {
    /// The position that was waited for.
    pub wanted: Position,
    /// Where the views are.
    pub at: Position,
}

impl Projections {
    /// The position that every view has reached.
    pub fn position(&self) -> Position {
        *self.0.position.borrow()
    }

    /// Waits until every view has reached a position. Somebody must be bringing them there:
    /// `follow`, or `catch_up`.
    pub async fn wait_for(&self, wanted: Position, timeout: Duration) -> Result<(), Behind> {
        let mut position = self.0.position.subscribe();
        let reached = tokio::time::timeout(timeout, position.wait_for(|at| *at >= wanted)).await;
        match reached {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Behind { wanted, at: self.position() }),
        }
    }
}
