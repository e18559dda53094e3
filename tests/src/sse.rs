//! Reads server-sent events, as a browser would.

use std::time::Duration;

use reqwest::Response;
use serde_json::Value;

use crate::wait::{self, PATIENCE};

/// One frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Its id, where it has one.
    pub id: Option<String>,
    /// Its name.
    pub event: String,
    /// Its data.
    pub data: Value,
}

/// Reads the frames of one answer.
pub struct SseReader {
    response: Response,
    buffer: Vec<u8>,
    /// Comments that came.
    pub comments: usize,
}

impl SseReader {
    /// Reads this answer.
    pub const fn new(response: Response) -> Self {
        Self { response, buffer: Vec::new(), comments: 0 }
    }

    /// The next frame; `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            let end = self.buffer.windows(2).position(|window| window == b"\n\n");
            if let Some(end) = end {
                let frame: Vec<u8> = self.buffer.drain(..end + 2).collect();
                match parse(&String::from_utf8(frame).unwrap()) {
                    Some(frame) => return Some(frame),
                    None => self.comments += 1,
                }
                continue;
            }
            let chunk = wait::within(PATIENCE, "the next piece of a stream", self.response.chunk()).await;
            // A connection that breaks ends the stream as far as a reader is concerned.
            self.buffer.extend_from_slice(&chunk.ok().flatten()?);
        }
    }

    /// The next frame, which must come.
    pub async fn expect(&mut self) -> Frame {
        self.next().await.unwrap_or_else(|| panic!("the stream ended early"))
    }

    /// All frames to the end of the stream.
    pub async fn rest(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }

    /// All frames to the end of the stream, which must come in time.
    #[track_caller]
    pub fn rest_within(self, limit: Duration) -> impl Future<Output = Vec<Frame>> {
        wait::within(limit, "the rest of the stream", self.rest())
    }
}

/// The records in frames: those with an id.
pub fn records(frames: &[Frame]) -> Vec<Value> {
    frames.iter().filter(|frame| frame.id.is_some()).map(|frame| frame.data.clone()).collect()
}

fn parse(text: &str) -> Option<Frame> {
    let (mut id, mut event, mut data) = (None, None, Vec::new());
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("id", value)) => id = Some(value.to_owned()),
            Some(("event", value)) => event = Some(value.to_owned()),
            Some(("data", value)) => data.push(value),
            Some(_) | None => {}
        }
    }
    let data = serde_json::from_str(&data.join("\n")).unwrap_or(Value::Null);
    event.map(|event| Frame { id, event, data })
}
