//! Server-sent events: a run as it happens.
//!
//! One event of the log is one frame. Its `id` is the position, so that `Last-Event-ID` resumes
//! after it; its `event` is the event type, and its `data` the public record on one line. Two
//! frames without an id stand around them: `metadata` when the stream opens, and `end` after the
//! run's terminal status, whereupon the stream closes. A stream that closes without `end` was cut
//! off: resume it. Comments keep an idle connection alive.

//!
//! The stream of the whole log has the same frames; its `metadata` has an id, the position after
//! which it begins, and a quiet stream gives its position on without an event. A card's replay has
//! one `card` frame for each state.

mod card_frames;
mod cursor;
mod frame;
mod frames;
mod log_frames;
mod run_feed;

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};

#[cfg(test)]
pub(crate) use self::frames::HEARTBEAT;
pub(crate) use self::{
    card_frames::CardFrames,
    cursor::Cursor,
    frames::{Frames, Opening},
    log_frames::LogFrames,
    run_feed::RunFeed,
};

/// Makes the frames of one client, one at a time and only when asked.
pub(crate) trait FrameSource: Send + 'static {
    /// The next frame; `None` closes the stream.
    fn next_frame(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// The answer that carries the frames: never cached, never changed or held back on its way.
pub(crate) fn response(mut frames: impl FrameSource) -> Response {
    let stream = async_stream::stream! {
        while let Some(frame) = frames.next_frame().await {
            yield Ok::<Bytes, std::convert::Infallible>(frame);
        }
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform")),
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(stream)).into_response()
}
