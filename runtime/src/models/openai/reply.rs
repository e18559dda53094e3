//! From the bytes of an answer to a reply. Pure: no connection, no clock.
//!
//! The answer to a streaming request is a stream of events, or, from servers that do not stream, one
//! JSON object. Its first character tells.

use std::error::Error as StdError;

use domain::{limits::MODEL_REPLY_BYTES_MAX, message::AssistantMessage, text};
use serde_json::Value;

use super::{assemble::Assembler, failure::Refusal, torn};
use crate::models::{
    Deltas, ModelErrorKind,
    sse::{SseDecoder, SseEvent},
};

#[cfg(test)]
mod tests;

/// One event: at most a whole reply, with room for the JSON around it.
const EVENT_BYTES_MAX: usize = 2 * MODEL_REPLY_BYTES_MAX;
/// An answer as sent. A token may travel in a chunk many times its size, and heartbeats count too.
const ANSWER_BYTES_MAX: usize = 32 * MODEL_REPLY_BYTES_MAX;
/// What is shown of an answer that is no reply.
const SNIPPET_CHARS_MAX: usize = 200;

const DONE: &[u8] = b"[DONE]";

/// Why an answer is not a reply.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The provider reported an error in its answer.
    #[error("{0}")]
    Provider(Refusal),
    /// The stream ended, and the reply had not.
    #[error("the stream ended before the reply did")]
    Cut,
    /// The answer holds no reply at all.
    #[error("the answer holds no choice")]
    Empty,
    /// The reply is too large.
    #[error("the reply is larger than {MODEL_REPLY_BYTES_MAX} bytes")]
    TooLarge,
    /// An event of the stream is not JSON.
    #[error("an event of the stream is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// The answer is something else, such as a web page.
    #[error("the answer is not a chat completion; check base_url: {snippet:?}")]
    NotAReply {
        /// Its beginning.
        snippet: String,
    },
}

impl Fault {
    pub(super) fn kind(&self) -> ModelErrorKind {
        match self {
            Self::Provider(refusal) => refusal.kind(),
            Self::Cut | Self::Empty | Self::NotJson(_) => ModelErrorKind::Transient,
            Self::TooLarge | Self::NotAReply { .. } => ModelErrorKind::InvalidReply,
        }
    }

    pub(super) const fn status(&self) -> Option<u16> {
        match self {
            Self::Provider(refusal) => refusal.status,
            Self::Cut | Self::Empty | Self::TooLarge | Self::NotJson(_) | Self::NotAReply { .. } => None,
        }
    }

    pub(super) fn into_source(self) -> Option<Box<dyn StdError + Send + Sync>> {
        match self {
            Self::NotJson(source) => Some(source.into()),
            Self::Provider(_) | Self::Cut | Self::Empty | Self::TooLarge | Self::NotAReply { .. } => None,
        }
    }
}

#[derive(Debug)]
enum Body {
    /// Nothing but white space so far.
    Unknown,
    Stream(SseDecoder),
    Whole(Vec<u8>),
}

/// An answer on its way to becoming a reply.
#[derive(Debug)]
pub(super) struct Reply<'a> {
    model: &'a str,
    body: Body,
    assembler: Assembler,
    is_done: bool,
    bytes: usize,
}

impl<'a> Reply<'a> {
    /// An answer of the model of this name.
    pub(super) fn new(model: &'a str) -> Self {
        Self { model, body: Body::Unknown, assembler: Assembler::default(), is_done: false, bytes: 0 }
    }

    /// Whether no byte has come yet.
    pub(super) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether the provider said why the model stopped.
    pub(super) const fn is_complete(&self) -> bool {
        self.assembler.is_complete()
    }

    /// Whether the provider said that nothing follows.
    pub(super) const fn is_ended(&self) -> bool {
        self.is_done
    }

    /// Takes the next bytes, wherever they were cut.
    pub(super) fn feed(&mut self, bytes: &[u8], deltas: Deltas<'_>) -> Result<(), Fault> {
        self.bytes += bytes.len();
        if self.bytes > ANSWER_BYTES_MAX {
            return Err(Fault::TooLarge);
        }
        if matches!(self.body, Body::Unknown) {
            match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
                Some(b'{' | b'[' | b'<') => self.body = Body::Whole(Vec::new()),
                Some(_) => self.body = Body::Stream(SseDecoder::new(EVENT_BYTES_MAX)),
                None => return Ok(()),
            }
        }
        let mut events = Vec::new();
        let fed = match &mut self.body {
            Body::Unknown => Ok(()),
            Body::Stream(decoder) => decoder.feed(bytes, &mut events).map_err(|_| Fault::TooLarge),
            Body::Whole(whole) if whole.len() + bytes.len() > EVENT_BYTES_MAX => Err(Fault::TooLarge),
            Body::Whole(whole) => {
                whole.extend_from_slice(bytes);
                Ok(())
            }
        };
        for event in events {
            self.take(&event, deltas)?;
        }
        fed
    }

    fn take(&mut self, event: &SseEvent, deltas: Deltas<'_>) -> Result<(), Fault> {
        let data = event.data.trim_ascii();
        if self.is_done || data.is_empty() {
            return Ok(());
        }
        if data == DONE {
            self.is_done = true;
            return Ok(());
        }
        let (chunk, is_torn) = torn::parse(data).map_err(Fault::NotJson)?;
        if event.name == "error" {
            return Err(Fault::Provider(Refusal::from_value(&chunk)));
        }
        self.assembler.add(&chunk, is_torn, deltas)
    }

    /// The reply, now that the answer has ended. A stream that neither said why the model stopped
    /// nor that it was done was cut, and nothing of it is believed.
    pub(super) fn finish(mut self, deltas: Deltas<'_>) -> Result<AssistantMessage, Fault> {
        match std::mem::replace(&mut self.body, Body::Unknown) {
            Body::Unknown if self.bytes == 0 => return Err(Fault::Cut),
            Body::Unknown => return Err(Fault::Empty),
            Body::Stream(decoder) => {
                let last = decoder.finish().map_err(|_| Fault::TooLarge)?;
                match last.map(|event| self.take(&event, deltas)) {
                    // Half an event is what a cut stream leaves.
                    Some(Err(Fault::NotJson(_))) if !self.is_complete() => return Err(Fault::Cut),
                    Some(Err(Fault::NotJson(_)) | Ok(())) | None => {}
                    Some(Err(fault)) => return Err(fault),
                }
                if !self.is_done && !self.is_complete() {
                    return Err(Fault::Cut);
                }
            }
            Body::Whole(whole) => self.take_whole(&whole, deltas)?,
        }
        self.assembler.finish(self.model)
    }

    fn take_whole(&mut self, whole: &[u8], deltas: Deltas<'_>) -> Result<(), Fault> {
        let not_a_reply = || {
            let shown = text::one_line(&String::from_utf8_lossy(whole));
            Fault::NotAReply { snippet: text::prefix(&shown, SNIPPET_CHARS_MAX).text }
        };
        match torn::parse(whole) {
            Ok((list @ Value::Array(_), _)) => Err(Fault::Provider(Refusal::from_value(&list))),
            Ok((answer, is_torn)) => {
                self.assembler.add(&answer, is_torn, deltas)?;
                if answer.get("choices").is_some() { Ok(()) } else { Err(not_a_reply()) }
            }
            Err(error) if error.is_eof() => Err(Fault::Cut),
            Err(_) => Err(not_a_reply()),
        }
    }
}
