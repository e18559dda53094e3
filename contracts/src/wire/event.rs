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
    /// In answers to ingestion alone: false when `if_absent` found an earlier record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<bool>,
}

/// The body of `POST /threads/{t}/events`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Ingest {
    /// One event.
    One(Box<IngestEvent>),
    /// Several, stored all or none.
    Many(Vec<IngestEvent>),
}

/// An event that somebody else made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IngestEvent {
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// What happened.
    pub event_type: String,
    /// What kind of reader it is for.
    pub category: String,
    /// The fact; absent means empty text.
    #[serde(default = "empty_text")]
    pub content: serde_json::Value,
    /// What readers filter by.
    #[serde(default)]
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// When it happened; absent means now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Store it only if its thread, run and type have no record yet.
    #[serde(default)]
    pub if_absent: bool,
    /// Makes a repeat of the same request harmless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

fn empty_text() -> serde_json::Value {
    serde_json::Value::String(String::new())
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

    #[test]
    fn a_body_is_one_event_or_several() {
        let one = r#"{"run_id":"r","event_type":"x","category":"y"}"#;
        let Ingest::One(event) = serde_json::from_str(one).unwrap() else { panic!("not one event") };
        assert_eq!(event.content, "");
        let several = format!("[{one},{one}]");
        assert!(matches!(serde_json::from_str(&several).unwrap(), Ingest::Many(events) if events.len() == 2));
        assert!(serde_json::from_str::<Ingest>(r#"{"event_type":"x","category":"y","seq":1}"#).is_err());
    }
}
