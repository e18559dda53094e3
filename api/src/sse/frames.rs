//! The frames of one client's stream, in order.

use std::time::Duration;

use axum::body::Bytes;
use contracts::wire::problem::ProblemCode;
use domain::causes::with_causes;
use eventlog::{ReadError, RecordedEvent};
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::{
    FrameSource, frame,
    run_feed::{self, RunFeed},
};
use crate::{on_disconnect::CancelOnDrop, shutdown::Shutdown};

/// How long a stream may be silent: proxies close idle connections after 30 to 60 seconds.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);

/// What a stream needs besides its feed.
pub(crate) struct Opening {
    /// Its place among the server's streams.
    #[expect(dead_code, reason = "it is held, not read: dropping it gives the place back")]
    pub(crate) place: OwnedSemaphorePermit,
    /// Ends it when the server stops.
    pub(crate) shutdown: Shutdown,
    /// Cancels the run when the client goes away first, if it asked for that.
    pub(crate) on_disconnect: Option<CancelOnDrop>,
}

/// Makes the frames, one at a time and only when asked.
pub(crate) struct Frames {
    feed: RunFeed,
    stage: Stage,
    opening: Opening,
    heartbeat: Duration,
}

/// Which frame comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Metadata,
    Events,
    End,
    Over,
}

/// What there is to say.
enum Next {
    Event(Result<Box<RecordedEvent>, ReadError>),
    Erased,
    Nothing,
    Stop,
}

impl FrameSource for Frames {
    async fn next_frame(&mut self) -> Option<Bytes> {
        self.next().await
    }
}

impl Frames {
    /// The frames of this feed.
    pub(crate) const fn new(feed: RunFeed, opening: Opening) -> Self {
        Self { feed, stage: Stage::Metadata, opening, heartbeat: HEARTBEAT }
    }

    /// The next frame; `None` closes the stream.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        match self.stage {
            Stage::Metadata => {
                self.stage = if self.feed.is_over() { Stage::End } else { Stage::Events };
                Some(frame::metadata(&self.feed.thread_id, &self.feed.run_id))
            }
            Stage::Events => {
                let next = self.wait().await;
                self.frame_of(next)
            }
            Stage::End => {
                self.stage = Stage::Over;
                CancelOnDrop::disarm(self.opening.on_disconnect.take());
                Some(frame::end())
            }
            Stage::Over => None,
        }
    }

    async fn wait(&mut self) -> Next {
        let silence_ends = Instant::now() + self.heartbeat;
        tokio::select! {
            biased;
            event = self.feed.next() => match event.transpose() {
                Some(event) => Next::Event(event.map(Box::new)),
                None => Next::Erased,
            },
            () = self.opening.shutdown.begun() => Next::Stop,
            () = tokio::time::sleep_until(silence_ends) => Next::Nothing,
        }
    }

    fn frame_of(&mut self, next: Next) -> Option<Bytes> {
        match next {
            Next::Nothing => Some(frame::heartbeat()),
            // The run goes on after the restart, and so may its readers: this is not their leaving.
            Next::Stop => {
                CancelOnDrop::disarm(self.opening.on_disconnect.take());
                self.stage = Stage::Over;
                None
            }
            Next::Erased => Some(self.failed(ProblemCode::Unavailable, "the run was erased")),
            Next::Event(Ok(event)) => {
                if run_feed::is_terminal(&event) {
                    self.stage = Stage::End;
                }
                Some(
                    frame::event(&event)
                        .unwrap_or_else(|_| self.failed(ProblemCode::Internal, "an event cannot be shown")),
                )
            }
            Next::Event(Err(error)) => {
                let message = with_causes(&error);
                tracing::error!(error = %message, run_id = %self.feed.run_id, "a stream cannot read the log");
                Some(self.failed(frame::code_of(&error), &message))
            }
        }
    }

    fn failed(&mut self, code: ProblemCode, message: &str) -> Bytes {
        CancelOnDrop::disarm(self.opening.on_disconnect.take());
        self.stage = Stage::Over;
        frame::error(code, message)
    }
}

#[cfg(test)]
mod tests;
