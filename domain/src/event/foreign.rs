//! Facts that somebody else recorded.

use serde_json::{Map, Value};

/// A fact that Remit did not make: ingested, of a type that the catalogue does not have, or of one
/// of the frozen types that Remit itself does not write. It is carried, shown and exported as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignEvent {
    /// The type, as given.
    pub event_type: String,
    /// The category, as given.
    pub category: String,
    /// The content, as given.
    pub content: Value,
    /// The metadata, as given.
    pub metadata: Map<String, Value>,
}
