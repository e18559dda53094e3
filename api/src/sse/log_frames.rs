//! The frames of the whole log, or of what a filter wants of it: what is there, then what comes.

use std::{collections::VecDeque, time::Duration};

use axum::body::Bytes;
use contracts::wire::problem::ProblemCode;
use domain::{causes::with_causes, ids::DelegationId};
use eventlog::{EventLog, Position, ReadError, RecordedEvent, SubscribeFrom, Subscription};
use tokio::time::Instant;

use super::{FrameSource, Opening, frame, frames::HEARTBEAT};
use crate::extract::LogFilter;

/// Events that are read at once. Most of them may not be wanted; a page has about a megabyte at most.
const PAGE: usize = 64;

/// Makes the frames, one at a time and only when asked.
pub(crate) struct LogFrames {
    log: EventLog,
    events: Subscription,
    filter: LogFilter,
    /// The last position that was given out or passed over.
    position: Position,
    page: VecDeque<RecordedEvent>,
    opening: Opening,
    stage: Stage,
    heartbeat: Duration,
    /// When a client has heard nothing for too long.
    silent_until: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Metadata,
    Events,
    Over,
}

enum Next {
    Page(Result<Vec<RecordedEvent>, ReadError>),
    Silence,
    Stop,
}

impl LogFrames {
    /// The frames after a position.
    pub(crate) fn new(log: &EventLog, filter: LogFilter, after: Position, opening: Opening) -> Self {
        Self {
            log: log.clone(),
            events: log.subscribe(SubscribeFrom::All { after }),
            filter,
            position: after,
            page: VecDeque::new(),
            opening,
            stage: Stage::Metadata,
            heartbeat: HEARTBEAT,
            silent_until: Instant::now() + HEARTBEAT,
        }
    }

    async fn next(&mut self) -> Option<Bytes> {
        match self.stage {
            Stage::Metadata => {
                self.stage = Stage::Events;
                Some(frame::log_metadata(self.position))
            }
            Stage::Events => self.next_event().await,
            Stage::Over => None,
        }
    }

    async fn next_event(&mut self) -> Option<Bytes> {
        loop {
            while let Some(event) = self.page.pop_front() {
                self.position = event.position;
                if self.is_wanted(&event) {
                    let shown = frame::event(&event);
                    return Some(
                        shown.unwrap_or_else(|_| {
                            self.failed(ProblemCode::Internal, "an event cannot be shown")
                        }),
                    );
                }
            }
            match self.wait().await {
                Next::Page(Ok(page)) => self.page = page.into(),
                Next::Page(Err(error)) => {
                    let message = with_causes(&error);
                    tracing::error!(error = %message, "a stream cannot read the log");
                    return Some(self.failed(frame::code_of(&error), &message));
                }
                Next::Silence => return Some(frame::heartbeat_at(self.position)),
                Next::Stop => {
                    self.stage = Stage::Over;
                    return None;
                }
            }
        }
    }

    /// Whoever waits for rare events hears how far the stream has come meanwhile.
    async fn wait(&mut self) -> Next {
        // A long way through what nobody wants must not keep others from their turn.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            () = self.opening.shutdown.begun() => Next::Stop,
            () = tokio::time::sleep_until(self.silent_until) => Next::Silence,
            page = self.events.next_page(PAGE) => Next::Page(page),
        }
    }

    fn is_wanted(&self, event: &RecordedEvent) -> bool {
        let thread_id = event.stream.thread_id();
        !event.is_erased()
            && thread_id.is_none_or(|thread_id| !self.log.is_erased(thread_id))
            && self.filter.admits(event)
    }

    fn failed(&mut self, code: ProblemCode, message: &str) -> Bytes {
        self.stage = Stage::Over;
        frame::error(code, message)
    }
}

impl FrameSource for LogFrames {
    async fn next_frame(&mut self) -> Option<Bytes> {
        let frame = self.next().await;
        self.silent_until = Instant::now() + self.heartbeat;
        frame
    }
}

impl LogFilter {
    /// Whether an event is wanted.
    pub(crate) fn admits(&self, event: &RecordedEvent) -> bool {
        let (scope, wanted_task) = (&event.scope, self.task_id.as_ref());
        let is_ours = |id: DelegationId| wanted_task.is_some_and(|wanted| wanted.as_str() == id.to_string());
        self.thread_id.as_ref().is_none_or(|wanted| event.stream.thread_id() == Some(wanted))
            && self.run_id.as_ref().is_none_or(|wanted| scope.run_id.as_ref() == Some(wanted))
            && (wanted_task.is_none()
                || scope.task_id.as_ref() == wanted_task
                || scope.delegation_id.is_some_and(is_ours))
            && self.event_types.as_ref().is_none_or(|wanted| wanted.contains(&event.event_type))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;
    use crate::{
        shutdown::{Shutdown, ShutdownSwitch},
        testing::{append, log, run, run_event, thread},
    };

    fn frames(log: &EventLog, filter: LogFilter, after: u64, shutdown: &Shutdown) -> LogFrames {
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let opening = Opening { place, shutdown: shutdown.clone(), on_disconnect: None };
        LogFrames::new(log, filter, Position::new(after), opening)
    }

    async fn next(frames: &mut LogFrames) -> Option<String> {
        let frame = frames.next_frame().await;
        frame.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap().lines().next().unwrap().to_owned())
    }

    #[tokio::test]
    async fn what_is_there_and_what_comes_is_given_once_and_in_order() {
        let (log, (switch, shutdown)) = (log(), ShutdownSwitch::new());
        for (thread, run, event_type) in
            [("t", "r", "a"), ("u", "r", "a"), ("t", "r", "b"), ("t", "s", "a"), ("t", "r", "a")]
        {
            append(&log, thread, vec![run_event(run, event_type, "1")]).await;
        }
        let filter = LogFilter {
            thread_id: Some(thread("t")),
            run_id: Some(run("r")),
            event_types: Some(vec!["a".to_owned()]),
            ..LogFilter::default()
        };
        let mut all = frames(&log, LogFilter::default(), 2, &shutdown);
        let mut some = frames(&log, filter, 0, &shutdown);
        for expected in ["id: 2", "id: 3", "id: 4", "id: 5"] {
            assert_eq!(next(&mut all).await.unwrap(), expected);
        }
        for expected in ["id: 0", "id: 1", "id: 5"] {
            assert_eq!(next(&mut some).await.unwrap(), expected);
        }
        append(&log, "u", vec![run_event("r", "a", "1")]).await;
        append(&log, "t", vec![run_event("r", "a", "1")]).await;
        assert_eq!(next(&mut all).await.unwrap(), "id: 6");
        assert_eq!(next(&mut all).await.unwrap(), "id: 7");
        assert_eq!(next(&mut some).await.unwrap(), "id: 7");
        switch.begin();
        assert_eq!(next(&mut all).await, None);
        assert_eq!(next(&mut all).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_says_how_far_it_is() {
        let (log, (_switch, shutdown)) = (log(), ShutdownSwitch::new());
        append(&log, "t", vec![run_event("r", "a", "1"), run_event("r", "a", "1")]).await;
        let filter = LogFilter { thread_id: Some(thread("other")), ..LogFilter::default() };
        let mut frames = frames(&log, filter, 0, &shutdown);
        assert_eq!(next(&mut frames).await.unwrap(), "id: 0");
        let frame = frames.next_frame().await.unwrap();
        assert_eq!(frame, ": heartbeat\nid: 2\n\n");
    }
}
