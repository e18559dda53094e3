//! Events that somebody else made, on their way into the log.
//!
//! Only the envelope is checked. What an event says is its source's business: it is stored as
//! version 0 of its type, which promises nothing, and its content and metadata keep their bytes.

use std::collections::BTreeMap;

use contracts::wire::{
    event::EventRecord,
    ingest::{Ingest, IngestEvent},
};
use domain::{
    ids::{InvalidId, RunId, ToolCallId, UserId},
    limits::{CATEGORY_CHARS_MAX, EVENT_BODY_BYTES_MAX, EVENT_TYPE_CHARS_MAX, EVENTS_PER_APPEND_MAX},
};
use eventlog::{
    FOREIGN_SCHEMA_VERSION, IdempotencyKey, Json, NESTING_MAX, NewEvent, Scope,
    append::IDEMPOTENCY_KEY_CHARS_MAX,
};
use jiff::Timestamp;
use runtime::{Clock as _, IdSource as _, SystemClock, SystemIds};
use serde_json::value::RawValue;

use crate::{
    convert,
    error::{Answer, ApiError},
    ingest::{Incoming, Stored},
};

/// The events of a body, checked, and what makes a repeat of it harmless.
pub(crate) fn from_wire(
    body: &Ingest,
    header_key: Option<&str>,
) -> Answer<(Vec<Incoming>, Option<IdempotencyKey>)> {
    let events = body.events();
    if events.len() > EVENTS_PER_APPEND_MAX {
        let rule = format!("at most {EVENTS_PER_APPEND_MAX} events");
        return Err(ApiError::invalid("body", &rule));
    }
    let now = SystemClock.now();
    let is_list = matches!(body, Ingest::Many(_));
    let place = |index| Place { index: is_list.then_some(index) };
    let incoming = events
        .iter()
        .enumerate()
        .map(|(index, event)| incoming(&place(index), event, now))
        .collect::<Answer<_>>()?;
    Ok((incoming, request_key(events, header_key, place)?))
}

/// The stored events, as they were asked for: one, or a list.
pub(crate) fn to_wire(stored: &[Stored]) -> Answer<Vec<EventRecord>> {
    let record = |stored: &Stored| {
        let mut record = convert::event::to_wire(&stored.event)?;
        record.created = Some(stored.is_created);
        Ok(record)
    };
    stored.iter().map(record).collect()
}

/// Where in a body an event stands.
struct Place {
    index: Option<usize>,
}

impl Place {
    fn field(&self, name: &str) -> String {
        self.index.map_or_else(|| name.to_owned(), |index| format!("[{index}].{name}"))
    }

    fn invalid(&self, name: &str, rule: &str) -> ApiError {
        ApiError::invalid(&self.field(name), rule)
    }

    fn invalid_id(&self, name: &str, error: &InvalidId) -> ApiError {
        self.invalid(name, &error.rule)
    }
}

fn incoming(place: &Place, event: &IngestEvent, now: Timestamp) -> Answer<Incoming> {
    check_length(place, "event_type", &event.event_type, EVENT_TYPE_CHARS_MAX)?;
    check_length(place, "category", &event.category, CATEGORY_CHARS_MAX)?;
    let (content, metadata) = body(place, event)?;
    let new = NewEvent {
        event_id: SystemIds.event_id(),
        event_type: event.event_type.clone(),
        schema_version: FOREIGN_SCHEMA_VERSION,
        category: event.category.clone(),
        scope: scope(place, event, &metadata)?,
        owner: UserId::unowned(),
        causation_id: None,
        correlation_id: None,
        created_at: created_at(place, event.created_at.as_deref(), now)?,
        content,
        metadata,
    };
    if event.if_absent && new.scope.run_id.is_none() {
        return Err(place.invalid("run_id", "given with if_absent, which looks at one run"));
    }
    Ok(Incoming { event: new, is_if_absent: event.if_absent })
}

fn check_length(place: &Place, name: &str, text: &str, chars_max: usize) -> Answer<()> {
    if (1..=chars_max).contains(&text.chars().count()) {
        return Ok(());
    }
    Err(place.invalid(name, &format!("text of 1 to {chars_max} characters")))
}

fn body(place: &Place, event: &IngestEvent) -> Answer<(Json, Json)> {
    let content = match &event.content {
        Some(content) => json(place, "content", content)?,
        None => Json::empty_text(),
    };
    let metadata = match &event.metadata {
        Some(metadata) => json(place, "metadata", metadata)?,
        None => Json::empty_object(),
    };
    if !metadata.is_object() {
        return Err(place.invalid("metadata", "an object"));
    }
    if content.get().len() + metadata.get().len() > EVENT_BODY_BYTES_MAX {
        let rule = format!("at most {EVENT_BODY_BYTES_MAX} bytes, together with metadata");
        return Err(place.invalid("content", &rule));
    }
    Ok((content, metadata))
}

fn json(place: &Place, name: &str, value: &RawValue) -> Answer<Json> {
    let rule = || format!("nested at most {NESTING_MAX} deep");
    Json::from_foreign(value).map_err(|_| place.invalid(name, &rule()))
}

fn scope(place: &Place, event: &IngestEvent, metadata: &Json) -> Answer<Scope> {
    let run_id = event.run_id.as_deref().map(RunId::new).transpose();
    let task_id = match &event.task_id {
        Some(task_id) => {
            let task_id = ToolCallId::new(task_id.as_str());
            Some(task_id.map_err(|error| place.invalid_id("task_id", &error))?)
        }
        None => task_of(metadata),
    };
    Ok(Scope {
        run_id: run_id.map_err(|error| place.invalid_id("run_id", &error))?,
        task_id,
        delegation_id: None,
    })
}

/// The task that the metadata names. Whatever else stands there is the source's own.
fn task_of(metadata: &Json) -> Option<ToolCallId> {
    if !metadata.get().contains("task") && !metadata.get().contains('\\') {
        return None;
    }
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(metadata.get()).ok()?;
    let text: String = serde_json::from_str(members.get("task_id")?.get()).ok()?;
    ToolCallId::new(text).ok()
}

fn created_at(place: &Place, text: Option<&str>, now: Timestamp) -> Answer<Timestamp> {
    let Some(text) = text else { return Ok(now) };
    let rule = "a time with its zone, such as 2026-11-30T12:00:00Z";
    text.parse().map_err(|_| place.invalid("created_at", rule))
}

/// One request is one append, so it has one key: in the header, or in its first event.
fn request_key(
    events: &[IngestEvent],
    header_key: Option<&str>,
    place: impl Fn(usize) -> Place,
) -> Answer<Option<IdempotencyKey>> {
    let first = events.first().and_then(|event| event.idempotency_key.as_deref());
    let chosen = header_key.or(first);
    for (index, event) in events.iter().enumerate() {
        if event.idempotency_key.as_deref().is_some_and(|key| Some(key) != chosen) {
            let rule = "the same in all events of a request, and in its Idempotency-Key header";
            return Err(place(index).invalid("idempotency_key", rule));
        }
    }
    let key = chosen.map(IdempotencyKey::new).transpose();
    let rule = || format!("text of 1 to {IDEMPOTENCY_KEY_CHARS_MAX} characters");
    key.map_err(|_| place(0).invalid("idempotency_key", &rule()))
}
