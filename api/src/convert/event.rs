//! The public record of an event. Content and metadata pass through as the text that they are.

mod redaction;

use contracts::wire::{event::EventRecord, problem::ProblemCode};
use eventlog::RecordedEvent;
use serde_json::value::RawValue;

use crate::error::{Answer, ApiError};

/// The record of an event, as everybody may see it.
pub(crate) fn to_wire(event: &RecordedEvent) -> Answer<EventRecord> {
    Ok(EventRecord {
        thread_id: event.stream.thread_id().map(ToString::to_string).unwrap_or_default(),
        run_id: event.scope.run_id.as_ref().map(ToString::to_string),
        seq: event.seq.get(),
        event_type: event.event_type.clone(),
        category: event.category.clone(),
        content: raw(event.content.get().to_owned())?,
        metadata: raw(redaction::without_auth_token(event.metadata.get()))?,
        created_at: event.created_at.to_string(),
        position: event.position.get(),
        event_id: event.event_id.to_string(),
        schema_version: event.schema_version,
        recorded_at: event.recorded_at.to_string(),
        task_id: event.scope.task_id.as_ref().map(ToString::to_string),
        delegation_id: event.scope.delegation_id.map(|id| id.to_string()),
        user_id: event.owner.to_string(),
        causation_id: event.causation_id.map(|id| id.to_string()),
        correlation_id: event.correlation_id.clone(),
        hash: hex(&event.hash),
        created: None,
    })
}

/// The record as JSON text.
pub(crate) fn to_text(event: &RecordedEvent) -> Answer<String> {
    serde_json::to_string(&to_wire(event)?).map_err(|error| unreadable(&error))
}

fn raw(text: String) -> Answer<Box<RawValue>> {
    RawValue::from_string(text).map_err(|error| unreadable(&error))
}

/// The log took only JSON, so text that is none is damage.
fn unreadable(error: &serde_json::Error) -> ApiError {
    ApiError::failed(ProblemCode::Integrity, "reading a stored event", error)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
