//! An event before it has a place in the log.

pub use domain::event::Scope;
use domain::ids::{EventId, UserId};
use jiff::Timestamp;

use crate::json::Json;

/// An event that somebody asks the log to record. It is checked when it is appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Names the event; made by the caller's id source.
    pub event_id: EventId,
    /// What happened, such as `subagent.start`: 1 to 32 characters.
    pub event_type: String,
    /// The version of the content's shape.
    pub schema_version: u16,
    /// Which feed the event belongs to: 1 to 16 characters.
    pub category: String,
    /// What the event belongs to.
    pub scope: Scope,
    /// Whose thread it is.
    pub owner: UserId,
    /// The event that brought this one about.
    pub causation_id: Option<EventId>,
    /// The trace that this event is part of: 1 to 128 characters.
    pub correlation_id: Option<String>,
    /// When it happened, by the clock of whoever saw it happen.
    pub created_at: Timestamp,
    /// The payload, exactly as given.
    pub content: Json,
    /// Facts about the payload: a JSON object.
    pub metadata: Json,
}
