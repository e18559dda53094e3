//! A sealed record, version 2: a thread's.
//!
//! ```text
//! header   u64 position · u64 seq · text stream · 16 event_id · u16 schema_version
//!          u8 which follow · [16 run] [16 task] [16 delegation_id] · [8 tag of the event type]
//!          time created_at · time recorded_at
//! body     24 nonce · sealed with the key of the run, or of the thread if there is no run, bound to
//!          prefix and header: text event_type · text category · u8 which follow
//!          [text run_id] [text task_id] [16 causation_id] [text correlation_id] · text owner
//!          u32 length of the content · content · metadata (both JSON text) · then 16 tag
//! ```
//!
//! `run` and `task` are the hashes that the index has them under. So the index can be made and
//! checked without any key, and of a thread's own words nothing but its id is in the clear.

use std::cell::RefCell;

use domain::ids::{DelegationId, EventId, RunId, ToolCallId, UserId};

use super::{
    DecodeError, EncodeError,
    bytes::{Reader, put_text, put_timestamp, utf8},
    plain::{length, optional},
    record::{Outline, Type, put_header_length},
};
use crate::{
    chain::Hash,
    json::Json,
    keyring::{Found, Keyring, ScopeId},
    keys,
    new_event::Scope,
    position::{Position, Seq},
    recorded::{EventHashes, RecordedEvent},
    seal::{self, ErasedRecord, Opened, Seal, TypeTag},
    secret::SecretKey,
    stream_id::StreamId,
};

const HAS_RUN: u8 = 1;
const HAS_TASK: u8 = 1 << 1;
const HAS_DELEGATION_ID: u8 = 1 << 2;
const CLEAR_OPTIONS: u8 = HAS_RUN | HAS_TASK | HAS_DELEGATION_ID;

const HAS_RUN_ID: u8 = 1;
const HAS_TASK_ID: u8 = 1 << 1;
const HAS_CAUSATION_ID: u8 = 1 << 2;
const HAS_CORRELATION_ID: u8 = 1 << 3;
const SEALED_OPTIONS: u8 = HAS_RUN_ID | HAS_TASK_ID | HAS_CAUSATION_ID | HAS_CORRELATION_ID;

/// What a thread keeps of the memory that it opens bodies in.
const OPENED_BODY_BYTES_KEPT: usize = 64 * 1024;

thread_local! {
    /// Bodies are opened here, one after the other, and what is wanted is copied out.
    static OPENED_BODY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The parts of a sealed record.
pub(super) struct Bytes<'a> {
    /// What the body is bound to: prefix and header.
    pub(super) clear: &'a [u8],
    pub(super) header: &'a [u8],
    pub(super) body: &'a [u8],
    /// All but the hash.
    pub(super) record: &'a [u8],
    pub(super) hash: &'a Hash,
}

/// Header and body. `out` holds the first two bytes of the prefix.
pub(super) fn encode(
    event: &RecordedEvent,
    hashes: &EventHashes,
    opened: &Opened,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    put_header(event, hashes, &opened.type_tag, out)?;
    put_header_length(out, start)?;
    let clear_bytes = out.len();
    out.extend_from_slice(&opened.nonce);
    let body_start = out.len();
    put_body(event, out)?;
    let (front, body) = out.split_at_mut(body_start);
    let tag = seal::seal(&opened.key, front.get(..clear_bytes).unwrap_or_default(), body);
    out.extend_from_slice(&tag);
    Ok(())
}

fn put_header(
    event: &RecordedEvent,
    hashes: &EventHashes,
    type_tag: &TypeTag,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    out.extend_from_slice(&event.position.get().to_be_bytes());
    out.extend_from_slice(&event.seq.get().to_be_bytes());
    put_text(out, &event.stream.to_string(), "stream")?;
    out.extend_from_slice(event.event_id.as_uuid().as_bytes());
    out.extend_from_slice(&event.schema_version.to_be_bytes());
    out.push(bits([
        (hashes.run.is_some(), HAS_RUN),
        (hashes.task.is_some(), HAS_TASK),
        (event.scope.delegation_id.is_some(), HAS_DELEGATION_ID),
        (false, 0),
    ]));
    out.extend_from_slice(hashes.run.as_ref().map_or(&[], |run| &run.0[..]));
    out.extend_from_slice(hashes.task.as_ref().map_or(&[], |task| &task[..]));
    if let Some(delegation_id) = &event.scope.delegation_id {
        out.extend_from_slice(delegation_id.as_uuid().as_bytes());
    }
    out.extend_from_slice(type_tag);
    put_timestamp(out, event.created_at);
    put_timestamp(out, event.recorded_at);
    Ok(())
}

fn put_body(event: &RecordedEvent, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    put_text(out, &event.event_type, "event_type")?;
    put_text(out, &event.category, "category")?;
    out.push(bits([
        (event.scope.run_id.is_some(), HAS_RUN_ID),
        (event.scope.task_id.is_some(), HAS_TASK_ID),
        (event.causation_id.is_some(), HAS_CAUSATION_ID),
        (event.correlation_id.is_some(), HAS_CORRELATION_ID),
    ]));
    if let Some(run_id) = &event.scope.run_id {
        put_text(out, run_id.as_str(), "run_id")?;
    }
    if let Some(task_id) = &event.scope.task_id {
        put_text(out, task_id.as_str(), "task_id")?;
    }
    if let Some(causation_id) = &event.causation_id {
        out.extend_from_slice(causation_id.as_uuid().as_bytes());
    }
    if let Some(correlation_id) = &event.correlation_id {
        put_text(out, correlation_id, "correlation_id")?;
    }
    put_text(out, event.owner.as_str(), "owner")?;
    let (content, metadata) = (event.content.get(), event.metadata.get());
    out.extend_from_slice(&length(content.len(), "content")?);
    out.extend_from_slice(content.as_bytes());
    out.extend_from_slice(metadata.as_bytes());
    Ok(())
}

fn bits(present: [(bool, u8); 4]) -> u8 {
    present.iter().filter(|(is_present, _)| *is_present).fold(0, |bits, (_, bit)| bits | bit)
}

/// Reads a record, opened if its key is there and empty if it was destroyed.
#[inline]
pub(super) fn decode(bytes: &Bytes<'_>, keyring: &Keyring) -> Result<RecordedEvent, DecodeError> {
    let header = read_header(bytes.header)?;
    let scope = header.run.unwrap_or_else(|| stream_scope(&header));
    match keyring.find(scope).map_err(DecodeError::Key)? {
        Found::Live(scope_key) => OPENED_BODY.with_borrow_mut(|memory| {
            let event = open_event(bytes, header, &scope_key, memory);
            memory.truncate(OPENED_BODY_BYTES_KEPT);
            memory.shrink_to(OPENED_BODY_BYTES_KEPT);
            event
        }),
        Found::Destroyed => Ok(RecordedEvent { hash: *bytes.hash, ..erased(header, bytes.record) }),
        // A run's key may be lost with an older copy of the key file; its thread was erased all the same.
        Found::Missing if header.run.is_some() && keyring.is_destroyed(stream_scope(&header)) => {
            Ok(RecordedEvent { hash: *bytes.hash, ..erased(header, bytes.record) })
        }
        Found::Missing => Err(DecodeError::KeyMissing { stream: header.stream, seq: header.seq }),
    }
}

fn stream_scope(header: &Header) -> ScopeId {
    ScopeId(keys::stream_entry::hash(&header.stream))
}

/// Opens the body in memory that is used again.
#[inline]
fn open_event(
    bytes: &Bytes<'_>,
    header: Header,
    scope_key: &SecretKey,
    memory: &mut Vec<u8>,
) -> Result<RecordedEvent, DecodeError> {
    let broken = |header: Header| DecodeError::SealBroken { stream: header.stream, seq: header.seq };
    let Some((nonce, sealed)) = bytes.body.split_first_chunk() else { return Err(broken(header)) };
    let key = seal::body_key(scope_key, nonce);
    let Some(body) = seal::open_into(&key, bytes.clear, sealed, memory) else { return Err(broken(header)) };
    let opened = Opened { nonce: *nonce, type_tag: header.type_tag, key };
    read_body(header, body, *bytes.hash, Seal::Opened(opened))
}

/// What is in the clear.
struct Header {
    position: Position,
    seq: Seq,
    stream: StreamId,
    event_id: EventId,
    schema_version: u16,
    run: Option<ScopeId>,
    task: Option<[u8; 16]>,
    delegation_id: Option<DelegationId>,
    type_tag: TypeTag,
    created_at: jiff::Timestamp,
    recorded_at: jiff::Timestamp,
}

#[inline]
fn read_header(header: &[u8]) -> Result<Header, DecodeError> {
    let mut reader = Reader::new(header);
    let position = Position::new(reader.u64("position")?);
    let seq = Seq::new(reader.u64("seq")?);
    let stream = reader.text("stream")?.parse()?;
    let event_id = EventId::from_uuid(reader.uuid("event_id")?);
    let schema_version = reader.u16("schema_version")?;
    let present = options(&mut reader, CLEAR_OPTIONS)?;
    let header = Header {
        position,
        seq,
        stream,
        event_id,
        schema_version,
        run: optional(present, HAS_RUN, || reader.array("run").map(ScopeId))?,
        task: optional(present, HAS_TASK, || reader.array("task"))?,
        delegation_id: optional(present, HAS_DELEGATION_ID, || {
            reader.uuid("delegation_id").map(DelegationId::from_uuid)
        })?,
        type_tag: reader.array("type tag")?,
        created_at: reader.timestamp("created_at")?,
        recorded_at: reader.timestamp("recorded_at")?,
    };
    reader.finish()?;
    Ok(header)
}

fn options(reader: &mut Reader<'_>, known: u8) -> Result<u8, DecodeError> {
    match reader.u8("optional fields")? {
        found if found & !known != 0 => Err(DecodeError::Flags { found }),
        found => Ok(found),
    }
}

#[inline]
fn read_body(header: Header, body: &[u8], hash: Hash, seal: Seal) -> Result<RecordedEvent, DecodeError> {
    let mut reader = Reader::new(body);
    let event_type = reader.text("event_type")?.to_owned();
    let category = reader.text("category")?.to_owned();
    let present = options(&mut reader, SEALED_OPTIONS)?;
    let scope = Scope {
        run_id: optional(present, HAS_RUN_ID, || Ok(RunId::new(reader.text("run_id")?)?))?,
        task_id: optional(present, HAS_TASK_ID, || Ok(ToolCallId::new(reader.text("task_id")?)?))?,
        delegation_id: header.delegation_id,
    };
    let causation_id =
        optional(present, HAS_CAUSATION_ID, || reader.uuid("causation_id").map(EventId::from_uuid))?;
    let correlation_id =
        optional(present, HAS_CORRELATION_ID, || reader.text("correlation_id").map(str::to_owned))?;
    let owner = UserId::new(reader.text("owner")?)?;
    let content_bytes = reader.u32("content")? as usize;
    let content = Json::from_stored(utf8(reader.take(content_bytes, "content")?, "content")?);
    let metadata = Json::from_stored(utf8(reader.rest(), "metadata")?);
    Ok(RecordedEvent {
        position: header.position,
        stream: header.stream,
        seq: header.seq,
        event_id: header.event_id,
        event_type,
        schema_version: header.schema_version,
        category,
        scope,
        owner,
        causation_id,
        correlation_id,
        created_at: header.created_at,
        recorded_at: header.recorded_at,
        content,
        metadata,
        hash,
        seal,
    })
}

/// Reads what is in the clear of a record that nobody can open.
pub(super) fn decode_erased(header: &[u8], record: &[u8]) -> Result<RecordedEvent, DecodeError> {
    Ok(erased(read_header(header)?, record))
}

/// The event as the header alone tells it. The hash is not filled in.
fn erased(header: Header, record: &[u8]) -> RecordedEvent {
    RecordedEvent {
        position: header.position,
        stream: header.stream,
        seq: header.seq,
        event_id: header.event_id,
        event_type: String::new(),
        schema_version: header.schema_version,
        category: String::new(),
        scope: Scope { run_id: None, task_id: None, delegation_id: header.delegation_id },
        owner: UserId::unowned(),
        causation_id: None,
        correlation_id: None,
        created_at: header.created_at,
        recorded_at: header.recorded_at,
        content: Json::null(),
        metadata: Json::empty_object(),
        hash: [0; 32],
        seal: Seal::Erased(ErasedRecord(record.into())),
    }
}

/// What verification needs.
pub(super) fn outline(header: &[u8]) -> Result<Outline, DecodeError> {
    let header = read_header(header)?;
    Ok(Outline {
        position: header.position,
        stream: header.stream,
        seq: header.seq,
        run: header.run,
        task: header.task,
        delegation_id: header.delegation_id,
        event_type: Type::Tag(header.type_tag),
    })
}
