//! The append contract: what a writer says it believes, and the answers that it can get.
//!
//! A conflict is an ordinary answer: it gives the true version, so that the writer can reload and
//! decide again. A failed write is not: after it the log takes nothing more.

use std::{path::PathBuf, sync::Arc};

use domain::ids::RunId;
use domain::limits::{CATEGORY_CHARS_MAX, EVENT_BODY_BYTES_MAX, EVENT_TYPE_CHARS_MAX, EVENTS_PER_APPEND_MAX};

use crate::{
    new_event::NewEvent,
    position::{Position, Seq},
    recorded::RecordedEvent,
    store::StoreError,
    stream_id::StreamId,
};

/// All bodies of one append together. One append is one atomic write, held in memory several
/// times over on its way.
pub const APPEND_BYTES_MAX: usize = 32 * 1024 * 1024;
/// A trace id. W3C trace ids have 32 characters, those of others are longer.
pub const CORRELATION_CHARS_MAX: usize = 128;
/// An idempotency key.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 256;

/// What the writer believes about the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Nothing: the events are true whatever else has happened.
    Any,
    /// The stream has no event yet.
    NoStream,
    /// The last event of the stream has this seq. `Seq::ZERO` is the same as `NoStream`.
    Exact(Seq),
}

impl Expected {
    /// Whether the belief is true of a stream whose last event is `actual`.
    pub(crate) fn holds(self, actual: Option<Seq>) -> bool {
        match self {
            Self::Any => true,
            Self::NoStream => actual.is_none(),
            Self::Exact(seq) => actual.unwrap_or(Seq::ZERO) == seq,
        }
    }
}

/// Makes a repeated append harmless. It holds within one stream, for ever.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

/// Text that cannot be an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid idempotency key of {chars} characters: it must have 1 to {IDEMPOTENCY_KEY_CHARS_MAX}")]
pub struct InvalidIdempotencyKey {
    /// How long the text was.
    pub chars: usize,
}

impl IdempotencyKey {
    /// Checks the length and makes a key of the text.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidIdempotencyKey> {
        let text = text.into();
        let chars = text.chars().count();
        if (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&chars) {
            Ok(Self(text))
        } else {
            Err(InvalidIdempotencyKey { chars })
        }
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One atomic write of events to one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// The stream.
    pub stream: StreamId,
    /// What the writer believes about it.
    pub expected: Expected,
    /// Makes a repeat give the first answer again.
    pub idempotency_key: Option<IdempotencyKey>,
    /// 1 to `EVENTS_PER_APPEND_MAX` events, in order.
    pub events: Vec<NewEvent>,
}

/// The events as they stand in the log, durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// In the order in which they were given, with neighbouring positions and seqs.
    pub events: Vec<Arc<RecordedEvent>>,
    /// The idempotency key had been used for the same content: this is the first answer.
    pub is_repeat: bool,
}

impl Appended {
    /// The position of the last event: what a reader waits for to see this append.
    pub fn position(&self) -> Position {
        self.events.last().map_or(Position::ZERO, |event| event.position)
    }

    /// The seq of the last event: what the next `Expected::Exact` says.
    pub fn seq(&self) -> Seq {
        self.events.last().map_or(Seq::ZERO, |event| event.seq)
    }
}

/// Why nothing was appended. Only `Poisoned` leaves open whether something was.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// The stream is not where the writer believed. Reload, decide again, append again.
    #[error("stream {stream} is at {}, not as expected ({expected:?})", tail_text(.actual))]
    Conflict {
        /// The stream.
        stream: StreamId,
        /// What the writer believed.
        expected: Expected,
        /// The seq of its last event; none when there is no such stream.
        actual: Option<Seq>,
    },
    /// The key was used before for something else.
    #[error("idempotency key {:?} was used on stream {stream} for other content at position {first}", .key.as_str())]
    KeyReused {
        /// The stream.
        stream: StreamId,
        /// The key.
        key: IdempotencyKey,
        /// The first event of the append that used it.
        first: Position,
    },
    /// The thread, or the run on it, was erased, and takes nothing more.
    #[error("{} was erased and takes no more events", erased_text(.stream, .run_id.as_ref()))]
    Erased {
        /// The stream.
        stream: StreamId,
        /// The run, if it alone was erased.
        run_id: Option<RunId>,
    },
    /// The append breaks a rule and will never be taken.
    #[error("invalid append to stream {stream}")]
    Invalid {
        /// The stream.
        stream: StreamId,
        /// The rule.
        #[source]
        reason: InvalidAppend,
    },
    /// There is too little room on the disk. Nothing was recorded, reads go on, and appends are taken
    /// again as soon as there is room.
    #[error(
        "the disk of {} is full: {free_bytes} bytes are free, and {reserve_bytes} are kept back so that what was \
         recorded stays whole; free some, and appends are taken again without a restart",
        .folder.display()
    )]
    DiskFull {
        /// The data folder.
        folder: PathBuf,
        /// What is free.
        free_bytes: u64,
        /// What must be free.
        reserve_bytes: u64,
    },
    /// The log has been closed.
    #[error("the log is closed")]
    Closed,
    /// An earlier write failed, so nobody knows what is on disk. Restart the process: recovery
    /// decides. The append that met the failure may or may not be found there.
    #[error("the log refuses writes since one failed ({reason}); restart to recover")]
    Poisoned {
        /// What failed.
        reason: Arc<str>,
    },
    /// The stream's state could not be read, so nothing was written.
    #[error("could not prepare the append to stream {stream}")]
    Storage {
        /// The stream.
        stream: StreamId,
        /// What failed.
        #[source]
        source: Arc<StoreError>,
    },
}

fn tail_text(actual: &Option<Seq>) -> String {
    actual.map_or_else(|| "no event".to_owned(), |seq| format!("seq {seq}"))
}

fn erased_text(stream: &StreamId, run_id: Option<&RunId>) -> String {
    run_id.map_or_else(|| format!("stream {stream}"), |run_id| format!("run {run_id} of stream {stream}"))
}

/// The rule that an append breaks. `index` counts its events from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAppend {
    /// There is nothing to record.
    #[error("it has no events")]
    NoEvents,
    /// Too many at once: split it.
    #[error("it has {count} events, and at most {EVENTS_PER_APPEND_MAX} fit")]
    TooManyEvents {
        /// How many there are.
        count: usize,
    },
    /// The event type is empty or too long.
    #[error(
        "event {index} has an event_type of {chars} characters; it must have 1 to {EVENT_TYPE_CHARS_MAX}"
    )]
    EventType {
        /// Which event.
        index: usize,
        /// How long it is.
        chars: usize,
    },
    /// The category is empty or too long.
    #[error("event {index} has a category of {chars} characters; it must have 1 to {CATEGORY_CHARS_MAX}")]
    Category {
        /// Which event.
        index: usize,
        /// How long it is.
        chars: usize,
    },
    /// The trace id is empty or too long.
    #[error(
        "event {index} has a correlation_id of {chars} characters; it must have 1 to {CORRELATION_CHARS_MAX}"
    )]
    CorrelationId {
        /// Which event.
        index: usize,
        /// How long it is.
        chars: usize,
    },
    /// Metadata must be a JSON object.
    #[error("event {index} has metadata that is not a JSON object")]
    MetadataNotObject {
        /// Which event.
        index: usize,
    },
    /// Content and metadata are too large: keep the payload elsewhere and record its digest.
    #[error("event {index} has a body of {bytes} bytes, and at most {EVENT_BODY_BYTES_MAX} fit")]
    BodyTooLarge {
        /// Which event.
        index: usize,
        /// Content and metadata together.
        bytes: usize,
    },
    /// The bodies together are too large: split the append.
    #[error("its bodies have {bytes} bytes together, and at most {APPEND_BYTES_MAX} fit")]
    TooLarge {
        /// All bodies together.
        bytes: usize,
    },
}

impl Append {
    /// Bytes of all bodies together.
    pub(crate) fn body_bytes(&self) -> usize {
        self.events.iter().map(body_bytes).sum()
    }

    /// Checks every rule that needs no look at the log.
    pub(crate) fn check(&self) -> Result<(), InvalidAppend> {
        if self.events.is_empty() {
            return Err(InvalidAppend::NoEvents);
        }
        if self.events.len() > EVENTS_PER_APPEND_MAX {
            return Err(InvalidAppend::TooManyEvents { count: self.events.len() });
        }
        for (index, event) in self.events.iter().enumerate() {
            check_event(index, event)?;
        }
        let bytes = self.body_bytes();
        if bytes > APPEND_BYTES_MAX { Err(InvalidAppend::TooLarge { bytes }) } else { Ok(()) }
    }
}

fn body_bytes(event: &NewEvent) -> usize {
    event.content.get().len() + event.metadata.get().len()
}

fn check_event(index: usize, event: &NewEvent) -> Result<(), InvalidAppend> {
    if let Some(chars) = outside(&event.event_type, EVENT_TYPE_CHARS_MAX) {
        return Err(InvalidAppend::EventType { index, chars });
    }
    if let Some(chars) = outside(&event.category, CATEGORY_CHARS_MAX) {
        return Err(InvalidAppend::Category { index, chars });
    }
    if let Some(chars) = event.correlation_id.as_deref().and_then(|text| outside(text, CORRELATION_CHARS_MAX))
    {
        return Err(InvalidAppend::CorrelationId { index, chars });
    }
    if !event.metadata.is_object() {
        return Err(InvalidAppend::MetadataNotObject { index });
    }
    let bytes = body_bytes(event);
    if bytes > EVENT_BODY_BYTES_MAX {
        return Err(InvalidAppend::BodyTooLarge { index, bytes });
    }
    Ok(())
}

/// The length of text that is empty or longer than it may be.
fn outside(text: &str, chars_max: usize) -> Option<usize> {
    let chars = text.chars().count();
    (chars == 0 || chars > chars_max).then_some(chars)
}
