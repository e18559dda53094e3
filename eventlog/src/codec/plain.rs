//! A record in plain, version 1: the registry's, and those of threads from before bodies were sealed.
//!
//! ```text
//! header   u64 position · u64 seq · text stream · 16 event_id · text event_type
//!          u16 schema_version · text category · u8 which optional ids follow
//!          [text run_id] [text task_id] [16 delegation_id] [16 causation_id] [text correlation_id]
//!          text owner · time created_at · time recorded_at
//! body     u32 length of the content · content · metadata (both JSON text)
//! ```

use domain::ids::{DelegationId, EventId, RunId, ToolCallId, UserId};

use super::record::{Outline, Type};
use super::{
    DecodeError, EncodeError,
    bytes::{Reader, put_text, put_timestamp, utf8},
};
use crate::{
    json::Json,
    new_event::Scope,
    position::{Position, Seq},
    recorded::{EventHashes, RecordedEvent},
    seal::Seal,
};

const HAS_RUN_ID: u8 = 1;
const HAS_TASK_ID: u8 = 1 << 1;
const HAS_DELEGATION_ID: u8 = 1 << 2;
const HAS_CAUSATION_ID: u8 = 1 << 3;
const HAS_CORRELATION_ID: u8 = 1 << 4;
pub(super) const OPTIONAL_IDS: u8 =
    HAS_RUN_ID | HAS_TASK_ID | HAS_DELEGATION_ID | HAS_CAUSATION_ID | HAS_CORRELATION_ID;

/// Header and body, with the length of the header before them.
pub(super) fn encode(event: &RecordedEvent, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    encode_header(event, out)?;
    super::record::put_header_length(out, start)?;
    let (content, metadata) = (event.content.get(), event.metadata.get());
    out.extend_from_slice(&length(content.len(), "content")?);
    out.extend_from_slice(content.as_bytes());
    out.extend_from_slice(metadata.as_bytes());
    Ok(())
}

pub(super) fn length(bytes: usize, field: &'static str) -> Result<[u8; 4], EncodeError> {
    u32::try_from(bytes).map(u32::to_be_bytes).map_err(|_| EncodeError { field, bytes })
}

fn encode_header(event: &RecordedEvent, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.extend_from_slice(&event.position.get().to_be_bytes());
    out.extend_from_slice(&event.seq.get().to_be_bytes());
    put_text(out, &event.stream.to_string(), "stream")?;
    out.extend_from_slice(event.event_id.as_uuid().as_bytes());
    put_text(out, &event.event_type, "event_type")?;
    out.extend_from_slice(&event.schema_version.to_be_bytes());
    put_text(out, &event.category, "category")?;
    out.push(optional_ids(event));
    if let Some(run_id) = &event.scope.run_id {
        put_text(out, run_id.as_str(), "run_id")?;
    }
    if let Some(task_id) = &event.scope.task_id {
        put_text(out, task_id.as_str(), "task_id")?;
    }
    if let Some(delegation_id) = &event.scope.delegation_id {
        out.extend_from_slice(delegation_id.as_uuid().as_bytes());
    }
    if let Some(causation_id) = &event.causation_id {
        out.extend_from_slice(causation_id.as_uuid().as_bytes());
    }
    if let Some(correlation_id) = &event.correlation_id {
        put_text(out, correlation_id, "correlation_id")?;
    }
    put_text(out, event.owner.as_str(), "owner")?;
    put_timestamp(out, event.created_at);
    put_timestamp(out, event.recorded_at);
    Ok(())
}

fn optional_ids(event: &RecordedEvent) -> u8 {
    let mut present = 0;
    for (is_present, bit) in [
        (event.scope.run_id.is_some(), HAS_RUN_ID),
        (event.scope.task_id.is_some(), HAS_TASK_ID),
        (event.scope.delegation_id.is_some(), HAS_DELEGATION_ID),
        (event.causation_id.is_some(), HAS_CAUSATION_ID),
        (event.correlation_id.is_some(), HAS_CORRELATION_ID),
    ] {
        if is_present {
            present |= bit;
        }
    }
    present
}

/// Reads header and body. The hash is not filled in.
pub(super) fn decode(header: &[u8], body: &[u8]) -> Result<RecordedEvent, DecodeError> {
    let mut event = decode_header(header)?;
    let mut reader = Reader::new(body);
    let content_bytes = reader.u32("content")? as usize;
    event.content = Json::from_stored(utf8(reader.take(content_bytes, "content")?, "content")?);
    event.metadata = Json::from_stored(utf8(reader.rest(), "metadata")?);
    Ok(event)
}

/// What verification needs of a record in plain.
pub(super) fn outline(header: &[u8]) -> Result<Outline, DecodeError> {
    let event = decode_header(header)?;
    let EventHashes { run, task, .. } = event.hashes();
    Ok(Outline {
        position: event.position,
        seq: event.seq,
        run,
        task,
        delegation_id: event.scope.delegation_id,
        event_type: Type::Plain(event.event_type),
        stream: event.stream,
    })
}

/// The event with an empty body and no hash yet.
fn decode_header(header: &[u8]) -> Result<RecordedEvent, DecodeError> {
    let mut reader = Reader::new(header);
    let position = Position::new(reader.u64("position")?);
    let seq = Seq::new(reader.u64("seq")?);
    let stream = reader.text("stream")?.parse()?;
    let event_id = EventId::from_uuid(reader.uuid("event_id")?);
    let event_type = reader.text("event_type")?.to_owned();
    let schema_version = reader.u16("schema_version")?;
    let category = reader.text("category")?.to_owned();
    let present = reader.u8("optional ids")?;
    if present & !OPTIONAL_IDS != 0 {
        return Err(DecodeError::Flags { found: present });
    }
    let scope = decode_scope(&mut reader, present)?;
    let causation_id =
        optional(present, HAS_CAUSATION_ID, || reader.uuid("causation_id").map(EventId::from_uuid))?;
    let correlation_id =
        optional(present, HAS_CORRELATION_ID, || reader.text("correlation_id").map(str::to_owned))?;
    let owner = UserId::new(reader.text("owner")?)?;
    let created_at = reader.timestamp("created_at")?;
    let recorded_at = reader.timestamp("recorded_at")?;
    reader.finish()?;
    Ok(RecordedEvent {
        position,
        stream,
        seq,
        event_id,
        event_type,
        schema_version,
        category,
        scope,
        owner,
        causation_id,
        correlation_id,
        created_at,
        recorded_at,
        content: Json::empty_object(),
        metadata: Json::empty_object(),
        hash: [0; 32],
        seal: Seal::None,
    })
}

fn decode_scope(reader: &mut Reader<'_>, present: u8) -> Result<Scope, DecodeError> {
    Ok(Scope {
        run_id: optional(present, HAS_RUN_ID, || Ok(RunId::new(reader.text("run_id")?)?))?,
        task_id: optional(present, HAS_TASK_ID, || Ok(ToolCallId::new(reader.text("task_id")?)?))?,
        delegation_id: optional(present, HAS_DELEGATION_ID, || {
            reader.uuid("delegation_id").map(DelegationId::from_uuid)
        })?,
    })
}

pub(super) fn optional<T>(
    present: u8,
    bit: u8,
    read: impl FnOnce() -> Result<T, DecodeError>,
) -> Result<Option<T>, DecodeError> {
    if present & bit == 0 { Ok(None) } else { read().map(Some) }
}
