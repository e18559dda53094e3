//! The frames of a card's replay: its states, with the pauses that were between them.

use std::time::Duration;

use axum::body::Bytes;
use contracts::wire::problem::ProblemCode;
use domain::causes::with_causes;
use eventlog::ReadError;
use jiff::Timestamp;
use projections::{CardReplay, CardState, Pace};
use tokio::time::Instant;

use super::{FrameSource, Opening, frame, frames::HEARTBEAT};
use crate::convert;

/// Makes the frames, one at a time and only when asked.
pub(crate) struct CardFrames {
    replay: CardReplay,
    pace: Pace,
    /// When the first state was due, and when its predecessor had happened: all others follow from
    /// that, so that what takes time here is no pause more.
    began: Option<(Instant, Timestamp)>,
    /// A state that is not due yet.
    waiting: Option<(Box<CardState>, Instant)>,
    opening: Opening,
    stage: Stage,
    heartbeat: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Metadata,
    States,
    Over,
}

enum Next {
    State(Result<Option<Box<CardState>>, ReadError>),
    Due,
    Silence,
    Stop,
}

impl CardFrames {
    /// The frames of this replay.
    pub(crate) const fn new(replay: CardReplay, pace: Pace, opening: Opening) -> Self {
        let (began, waiting) = (None, None);
        Self { replay, pace, began, waiting, opening, stage: Stage::Metadata, heartbeat: HEARTBEAT }
    }

    async fn next(&mut self) -> Option<Bytes> {
        match self.stage {
            Stage::Metadata => {
                self.stage = Stage::States;
                Some(frame::card_metadata(self.replay.delegation_id()))
            }
            Stage::States => self.next_state().await,
            Stage::Over => None,
        }
    }

    async fn next_state(&mut self) -> Option<Bytes> {
        loop {
            match self.wait().await {
                Next::State(Ok(Some(state))) => {
                    let due = self.due(&state);
                    self.waiting = Some((state, due));
                }
                Next::State(Ok(None)) if self.replay.is_erased() => {
                    return Some(self.failed(ProblemCode::Unavailable, "the run was erased"));
                }
                Next::State(Ok(None)) => {
                    self.stage = Stage::Over;
                    return Some(frame::end());
                }
                Next::State(Err(error)) => {
                    let message = with_causes(&error);
                    tracing::error!(error = %message, "a replay cannot read the log");
                    return Some(self.failed(frame::code_of(&error), &message));
                }
                Next::Due => {
                    let (state, _) = self.waiting.take()?;
                    let card = convert::card::to_wire(state.card);
                    let shown = frame::card(state.position, &card);
                    return Some(
                        shown
                            .unwrap_or_else(|_| self.failed(ProblemCode::Internal, "a card cannot be shown")),
                    );
                }
                Next::Silence => return Some(frame::heartbeat()),
                Next::Stop => {
                    self.stage = Stage::Over;
                    return None;
                }
            }
        }
    }

    async fn wait(&mut self) -> Next {
        let silence_ends = Instant::now() + self.heartbeat;
        let (waiting, replay) = (self.waiting.as_ref().map(|(_, due)| *due), &mut self.replay);
        let next = async {
            match waiting {
                Some(due) => {
                    tokio::time::sleep_until(due).await;
                    Next::Due
                }
                None => Next::State(replay.next().await.map(|state| state.map(Box::new))),
            }
        };
        tokio::select! {
            biased;
            () = self.opening.shutdown.begun() => Next::Stop,
            next = next => next,
            () = tokio::time::sleep_until(silence_ends) => Next::Silence,
        }
    }

    /// When a state is to be shown.
    fn due(&mut self, state: &CardState) -> Instant {
        let (began, from) = *self.began.get_or_insert((Instant::now(), state.before.unwrap_or(state.at)));
        began + self.pace.between(from, state.at)
    }

    fn failed(&mut self, code: ProblemCode, message: &str) -> Bytes {
        self.stage = Stage::Over;
        frame::error(code, message)
    }
}

impl FrameSource for CardFrames {
    async fn next_frame(&mut self) -> Option<Bytes> {
        self.next().await
    }
}
