//! Records of the run event stream. Content and metadata pass through byte by byte.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One recorded event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EventRecord {
    /// The thread.
    pub thread_id: String,
    /// The run; null for what belongs to the thread alone.
    pub run_id: Option<String>,
    /// Place in the thread, from 1 and without a gap.
    pub seq: u64,
    /// What happened.
    pub event_type: String,
    /// What kind of reader it is for.
    pub category: String,
    /// The fact.
    pub content: Box<RawValue>,
    /// What readers filter by.
    pub metadata: Box<RawValue>,
    /// When it happened.
    pub created_at: String,
    /// Place in the whole log, from 1.
    pub position: u64,
    /// A UUID v7.
    pub event_id: String,
    /// The version of the content's fields.
    pub schema_version: u16,
    /// When it was made durable.
    pub recorded_at: String,
    /// The `task` call that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The delegation that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation_id: Option<String>,
    /// The owner of the thread.
    pub user_id: String,
    /// The event that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<String>,
    /// The trace that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The integrity chain's hash, in hexadecimal.
    pub hash: String,
    /// In answers to ingestion alone: whether this request recorded it, or `if_absent` found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_and_metadata_pass_through_byte_by_byte() {
        let line = r#"{"thread_id":"t","run_id":null,"seq":1,"event_type":"x","category":"y","content":{"b":1.0,"a" : 1e2,"u":"\u2028"},"metadata":{ },"created_at":"c","position":1,"event_id":"e","schema_version":1,"recorded_at":"r","user_id":"u","hash":"h"}"#;
        let record: EventRecord = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
    }
}
