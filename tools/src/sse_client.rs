//! A stream of a server's events that survives breaks: after one, what follows the last whole frame
//! is asked for, so that nothing is missing and nothing comes twice.

use std::time::Duration;

use contracts::wire::problem::ProblemCode;
use futures::future::BoxFuture;
use reqwest::Response;
use tokio::time::Instant;

use crate::failure::{Exit, Failure, exit_of, exit_of_problem};

/// A frame that is not complete within this is not one of ours: an event's body has 8 MiB at most.
const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The wait before the first attempt to connect again; it doubles with each.
const RECONNECT_WAIT_MIN: Duration = Duration::from_millis(250);
/// The longest wait between two attempts: somebody watches.
const RECONNECT_WAIT_MAX: Duration = Duration::from_secs(4);

/// Connects, after the frame of this id.
type Connect = dyn Fn(Option<String>) -> BoxFuture<'static, anyhow::Result<Response>> + Send;

/// A stream that is followed.
pub(crate) struct SseClient {
    address: String,
    connect: Box<Connect>,
    link: Link,
    buffer: Vec<u8>,
    /// The id of the last whole frame: what follows it is asked for after a break.
    last_id: Option<String>,
    lost: Option<Lost>,
    /// How long a server may be gone before nobody waits for it any more; none waits for ever.
    pub(crate) reconnect_max: Option<Duration>,
}

/// The connection. It lives here and not in a future, so that a call that is cancelled loses nothing.
enum Link {
    /// Before the first attempt, or until the next one.
    Waiting(Instant),
    /// An attempt.
    Connecting(BoxFuture<'static, anyhow::Result<Response>>),
    /// Events come.
    Open(Response),
}

/// The server is gone.
#[derive(Debug, Clone, Copy)]
struct Lost {
    since: Instant,
    wait: Duration,
}

/// Why a server ends a stream, with the exit code of its kind.
pub(crate) fn refusal(data: &str) -> Failure {
    /// The data of a frame `error`.
    #[derive(serde::Deserialize)]
    struct Ended {
        name: ProblemCode,
        message: String,
    }
    match serde_json::from_str::<Ended>(data) {
        Ok(Ended { name, message }) => {
            Failure::new(exit_of_problem(name), format!("the server cannot go on: {message}"))
        }
        Err(_) => Failure::new(Exit::Failed, format!("the server cannot go on: {data}")),
    }
}

/// What was read.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A whole frame.
    Frame(String),
    /// Something to tell the person.
    Notice(String),
    /// The server stayed away for too long.
    GaveUp,
}

impl SseClient {
    /// Follows nothing yet.
    pub(crate) fn new(address: &str, reconnect_max: Option<Duration>, connect: Box<Connect>) -> Self {
        Self {
            address: address.to_owned(),
            connect,
            link: Link::Waiting(Instant::now()),
            buffer: Vec::new(),
            last_id: None,
            lost: None,
            reconnect_max,
        }
    }

    /// The next whole frame, or something to tell the person. Nothing is lost when the call is
    /// cancelled.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Heard> {
        loop {
            if let Some(frame) = take_frame(&mut self.buffer) {
                if let Some(id) = field(&frame, "id:") {
                    self.last_id = Some(id.to_owned());
                }
                return Ok(Heard::Frame(frame));
            }
            anyhow::ensure!(self.buffer.len() <= FRAME_BYTES_MAX, "the server sent a frame without an end");
            let why = match &mut self.link {
                Link::Waiting(until) => {
                    tokio::time::sleep_until(*until).await;
                    self.link = Link::Connecting((self.connect)(self.last_id.clone()));
                    continue;
                }
                Link::Connecting(attempt) => match attempt.await {
                    Ok(stream) => {
                        self.link = Link::Open(stream);
                        continue;
                    }
                    // A server that answers knows better than to be asked again.
                    Err(error) if exit_of(&error) != Exit::Failed => return Err(error),
                    Err(error) => format!("{error:#}"),
                },
                Link::Open(stream) => match stream.chunk().await {
                    Ok(Some(chunk)) => {
                        self.buffer.extend_from_slice(&chunk);
                        if self.lost.take().is_some() {
                            return Ok(Heard::Notice(format!("connected to {} again", self.address)));
                        }
                        continue;
                    }
                    Ok(None) => "the stream ended".to_owned(),
                    Err(error) => error.to_string(),
                },
            };
            if let Some(heard) = self.lose(&why) {
                return Ok(heard);
            }
        }
    }

    /// Plans the next attempt, and says so once; gives up when it has taken too long.
    fn lose(&mut self, why: &str) -> Option<Heard> {
        tracing::debug!(why, "lost a stream");
        // What follows the last whole frame comes again.
        self.buffer.clear();
        let now = Instant::now();
        let (is_first, mut lost) = match self.lost {
            Some(lost) => (false, lost),
            None => (true, Lost { since: now, wait: RECONNECT_WAIT_MIN }),
        };
        let left = self.reconnect_max.map(|max| max.saturating_sub(now.duration_since(lost.since)));
        if left.is_some_and(|left| left.is_zero()) {
            return Some(Heard::GaveUp);
        }
        self.link = Link::Waiting(now + left.map_or(lost.wait, |left| lost.wait.min(left)));
        lost.wait = (lost.wait * 2).min(RECONNECT_WAIT_MAX);
        self.lost = Some(lost);
        let limit = self.reconnect_max.map(|max| format!(" for {} s", max.as_secs())).unwrap_or_default();
        is_first.then(|| Heard::Notice(format!("lost the server at {}; trying again{limit}", self.address)))
    }
}

/// The value of a frame's field.
pub(crate) fn field<'a>(frame: &'a str, name: &str) -> Option<&'a str> {
    frame.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Takes the first complete frame off the buffer.
fn take_frame(buffer: &mut Vec<u8>) -> Option<String> {
    let end = buffer.windows(2).position(|pair| pair == b"\n\n")?;
    let frame: Vec<u8> = buffer.drain(..end + 2).collect();
    Some(String::from_utf8_lossy(&frame).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_off_one_by_one() {
        let mut buffer = b": heartbeat\n\nid: 1\nda".to_vec();
        assert_eq!(take_frame(&mut buffer).as_deref(), Some(": heartbeat\n\n"));
        assert_eq!(take_frame(&mut buffer), None);
        buffer.extend_from_slice(b"ta: x\n\n");
        assert_eq!(take_frame(&mut buffer).as_deref(), Some("id: 1\ndata: x\n\n"));
        assert!(buffer.is_empty());
    }
}
