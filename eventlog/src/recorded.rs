//! An event with its place in the log.
//!
//! As JSON it is one flat object; optional ids that are absent are left out. This is our own
//! form, for exports and tools: the frozen record of the HTTP surface is made elsewhere.

use domain::ids::{DelegationId, EventId, RunId, ToolCallId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

use crate::{
    json::Json,
    keyring::ScopeId,
    keys::{self, task_event::Task},
    new_event::{NewEvent, Scope},
    position::{Position, Seq},
    seal::Seal,
    stream_id::StreamId,
};

/// An event that is durable. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "OwnedWire")]
pub struct RecordedEvent {
    /// Its place in the whole log.
    pub position: Position,
    /// The stream that it is in.
    pub stream: StreamId,
    /// Its place in the stream.
    pub seq: Seq,
    /// Names the event.
    pub event_id: EventId,
    /// What happened.
    pub event_type: String,
    /// The version of the content's shape.
    pub schema_version: u16,
    /// Which feed it belongs to.
    pub category: String,
    /// What it belongs to.
    pub scope: Scope,
    /// Whose thread it is.
    pub owner: UserId,
    /// The event that brought this one about.
    pub causation_id: Option<EventId>,
    /// The trace that this event is part of.
    pub correlation_id: Option<String>,
    /// When it happened, by its source's clock.
    pub created_at: Timestamp,
    /// When the log took it, by the log's clock. Order is `position`, not this.
    pub recorded_at: Timestamp,
    /// The payload, exactly as given.
    pub content: Json,
    /// Facts about the payload: a JSON object.
    pub metadata: Json,
    /// Covers the previous hash of the stream and this event's stored bytes. Hex in JSON.
    pub hash: [u8; 32],
    /// How it was stored. Of an event whose key was destroyed only positions, seqs, times and
    /// UUIDs are left: its texts are empty, its content is `null`, its metadata `{}`.
    pub seal: Seal,
}

/// The hashes that an event is indexed under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventHashes {
    pub(crate) stream: ScopeId,
    pub(crate) run: Option<ScopeId>,
    pub(crate) task: Option<[u8; 16]>,
}

/// Where a new event comes to stand, decided by the writer.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) position: Position,
    pub(crate) stream: StreamId,
    pub(crate) seq: Seq,
    pub(crate) recorded_at: Timestamp,
}

impl RecordedEvent {
    /// Puts a new event in its place. The hash is filled in when the bytes are known.
    pub(crate) fn new(event: NewEvent, place: Place) -> Self {
        Self {
            position: place.position,
            stream: place.stream,
            seq: place.seq,
            event_id: event.event_id,
            event_type: event.event_type,
            schema_version: event.schema_version,
            category: event.category,
            scope: event.scope,
            owner: event.owner,
            causation_id: event.causation_id,
            correlation_id: event.correlation_id,
            created_at: event.created_at,
            recorded_at: place.recorded_at,
            content: event.content,
            metadata: event.metadata,
            hash: [0; 32],
            seal: Seal::None,
        }
    }

    /// Whether its key was destroyed, so that nobody can read it.
    pub fn is_erased(&self) -> bool {
        matches!(self.seal, Seal::Erased(_))
    }

    pub(crate) fn hashes(&self) -> EventHashes {
        let stream = ScopeId(keys::stream_entry::hash(&self.stream));
        EventHashes::of(&self.stream, stream, &self.scope)
    }
}

impl EventHashes {
    /// The hashes of an event with this scope, in a stream whose own hash is known.
    pub(crate) fn of(id: &StreamId, stream: ScopeId, scope: &Scope) -> Self {
        let run_id = scope.run_id.as_ref();
        let run = run_id.map(|run_id| ScopeId(keys::run_entry::hash(id, run_id)));
        let task = run_id
            .zip(scope.task_id.as_ref())
            .map(|(run_id, task_id)| keys::task_event::hash(Task { stream: id, run_id, task_id }));
        Self { stream, run, task }
    }
}

/// The flat JSON object. Written by hand instead of `flatten`, which would buffer the payload and
/// lose its exact text.
#[derive(Serialize, Deserialize)]
struct Wire<Stream, Text, User, Id, Body> {
    position: Position,
    stream: Stream,
    seq: Seq,
    event_id: EventId,
    event_type: Text,
    schema_version: u16,
    category: Text,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    run_id: Option<Id>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    task_id: Option<User>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delegation_id: Option<DelegationId>,
    owner: UserId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    causation_id: Option<EventId>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    correlation_id: Option<Text>,
    created_at: Timestamp,
    recorded_at: Timestamp,
    content: Body,
    metadata: Body,
    #[serde(with = "hex_hash")]
    hash: [u8; 32],
    #[serde(default, skip_serializing_if = "is_none")]
    seal: Seal,
}

type OwnedWire = Wire<StreamId, String, ToolCallId, RunId, Json>;
type BorrowedWire<'a> = Wire<&'a StreamId, &'a str, &'a ToolCallId, &'a RunId, &'a Json>;

/// Keeps serde from asking that absent ids have a default value of their own.
fn none<T>() -> Option<T> {
    None
}

fn is_none(seal: &Seal) -> bool {
    *seal == Seal::None
}

impl From<OwnedWire> for RecordedEvent {
    fn from(wire: OwnedWire) -> Self {
        Self {
            position: wire.position,
            stream: wire.stream,
            seq: wire.seq,
            event_id: wire.event_id,
            event_type: wire.event_type,
            schema_version: wire.schema_version,
            category: wire.category,
            scope: Scope { run_id: wire.run_id, task_id: wire.task_id, delegation_id: wire.delegation_id },
            owner: wire.owner,
            causation_id: wire.causation_id,
            correlation_id: wire.correlation_id,
            created_at: wire.created_at,
            recorded_at: wire.recorded_at,
            content: wire.content,
            metadata: wire.metadata,
            hash: wire.hash,
            seal: wire.seal,
        }
    }
}

impl Serialize for RecordedEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        BorrowedWire {
            position: self.position,
            stream: &self.stream,
            seq: self.seq,
            event_id: self.event_id,
            event_type: &self.event_type,
            schema_version: self.schema_version,
            category: &self.category,
            run_id: self.scope.run_id.as_ref(),
            task_id: self.scope.task_id.as_ref(),
            delegation_id: self.scope.delegation_id,
            owner: self.owner.clone(),
            causation_id: self.causation_id,
            correlation_id: self.correlation_id.as_deref(),
            created_at: self.created_at,
            recorded_at: self.recorded_at,
            content: &self.content,
            metadata: &self.metadata,
            hash: self.hash,
            seal: self.seal.clone(),
        }
        .serialize(serializer)
    }
}

/// A hash as 64 hex digits.
pub(crate) mod hex_hash {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(hash: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
        hex::encode(hash).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut hash = [0; 32];
        hex::decode_to_slice(text, &mut hash).map_err(de::Error::custom)?;
        Ok(hash)
    }
}
