//! From the bytes of an answer to a reply. Pure: no connection, no clock.
//!
//! The answer to a streaming request is a stream of events, or, from servers that do not stream, one
//! JSON value. Its first character tells. What an event means is the [`Assemble`] of its provider.

use std::fmt;

use domain::{limits::MODEL_REPLY_BYTES_MAX, message::AssistantMessage, text};
use serde_json::Value;

use super::{
    Deltas,
    dialect::Dialect,
    fault::Fault,
    refusal::Refusal,
    sse::{SseDecoder, SseEvent},
    torn,
};

/// One event: at most a whole reply, with room for the JSON around it.
const EVENT_BYTES_MAX: usize = 2 * MODEL_REPLY_BYTES_MAX;
/// An answer as sent. A token may travel in a chunk many times its size, and heartbeats count too.
const ANSWER_BYTES_MAX: usize = 32 * MODEL_REPLY_BYTES_MAX;
/// What is shown of an answer that is no reply.
const SNIPPET_CHARS_MAX: usize = 200;

const DONE: &[u8] = b"[DONE]";

/// A reply on its way, as one provider sends it.
pub(crate) trait Assemble: fmt::Debug + Send {
    /// Adds one event's JSON. `is_torn` says that it holds marked halves of characters.
    fn add(&mut self, event: &Value, is_torn: bool, deltas: Deltas<'_>) -> Result<(), Fault>;

    /// Adds the whole answer of a server that does not stream; says whether it is a reply at all.
    fn add_whole(&mut self, answer: &Value, is_torn: bool, deltas: Deltas<'_>) -> Result<bool, Fault>;

    /// The stream said `[DONE]`, which not every provider has.
    fn add_done(&mut self) {}

    /// Whether the provider said why the model stopped.
    fn is_complete(&self) -> bool;

    /// Whether the provider said that nothing follows.
    fn is_ended(&self) -> bool;

    /// The reply. `source` is the configured model that may be shown its opaque fields again.
    fn finish(self: Box<Self>, source: &str) -> Result<AssistantMessage, Fault>;
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
pub(crate) struct Answer {
    expected: &'static str,
    body: Body,
    assembler: Box<dyn Assemble>,
    bytes: usize,
}

impl Answer {
    /// An answer of a provider of this dialect.
    pub(crate) fn new(dialect: &dyn Dialect) -> Self {
        let (expected, assembler) = (dialect.answer_name(), dialect.assembler());
        Self { expected, body: Body::Unknown, assembler, bytes: 0 }
    }

    /// Whether no byte has come yet.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether the provider said why the model stopped.
    pub(crate) fn is_complete(&self) -> bool {
        self.assembler.is_complete()
    }

    /// Whether the provider said that nothing follows.
    pub(crate) fn is_ended(&self) -> bool {
        self.assembler.is_ended()
    }

    /// Takes the next bytes, wherever they were cut.
    pub(crate) fn feed(&mut self, bytes: &[u8], deltas: Deltas<'_>) -> Result<(), Fault> {
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
        if self.is_ended() || data.is_empty() {
            return Ok(());
        }
        if data == DONE {
            self.assembler.add_done();
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
    pub(crate) fn finish(mut self, source: &str, deltas: Deltas<'_>) -> Result<AssistantMessage, Fault> {
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
                if !self.is_ended() && !self.is_complete() {
                    return Err(Fault::Cut);
                }
            }
            Body::Whole(whole) => self.take_whole(&whole, deltas)?,
        }
        self.assembler.finish(source)
    }

    fn take_whole(&mut self, whole: &[u8], deltas: Deltas<'_>) -> Result<(), Fault> {
        let expected = self.expected;
        let not_a_reply = || {
            let shown = text::one_line(&String::from_utf8_lossy(whole));
            Fault::NotAReply { expected, snippet: text::prefix(&shown, SNIPPET_CHARS_MAX).text }
        };
        match torn::parse(whole) {
            Ok((answer, is_torn)) => {
                let is_reply = self.assembler.add_whole(&answer, is_torn, deltas)?;
                if is_reply { Ok(()) } else { Err(not_a_reply()) }
            }
            Err(error) if error.is_eof() => Err(Fault::Cut),
            Err(_) => Err(not_a_reply()),
        }
    }
}
