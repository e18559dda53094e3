//! Secrets are masked before an event is checked, hashed, compared or stored, so that no copy of
//! them is ever written.

use std::collections::BTreeMap;

use domain::redaction::Redactor;
use serde_json::value::RawValue;

use crate::{json::Json, new_event::NewEvent};

/// The metadata key that says how many masks are in an event's content and metadata.
const MASKS_KEY: &str = "redacted";

/// Masks the secrets in an event's content and metadata, and notes how many there were.
pub(crate) fn redact(redactor: &Redactor, event: &mut NewEvent) {
    let mut masks = 0;
    for json in [&mut event.content, &mut event.metadata] {
        if let Some(redacted) = redactor.redact_json(json.get()) {
            *json = Json::from_stored(&redacted.text);
            masks += redacted.masks;
        }
    }
    if masks > 0 && event.metadata.is_object() {
        event.metadata = Json::from_stored(&with_masks(event.metadata.get(), masks));
    }
}

/// The metadata with the number of masks added. A number that is there already, because an event
/// comes from another log, is raised; anything else under that name is the source's own and stays.
fn with_masks(metadata: &str, masks: u32) -> String {
    let known: BTreeMap<String, &RawValue> = serde_json::from_str(metadata).unwrap_or_default();
    if let Some(value) = known.get(MASKS_KEY) {
        let Ok(before) = value.get().parse::<u64>() else { return metadata.to_owned() };
        let sum = before.saturating_add(u64::from(masks)).to_string();
        // The value is a part of the text, and this is where it begins.
        let start = (value.get().as_ptr() as usize).saturating_sub(metadata.as_ptr() as usize);
        let (head, tail) = (metadata.get(..start), metadata.get(start + value.get().len()..));
        return [head.unwrap_or_default(), &sum, tail.unwrap_or_default()].concat();
    }
    let inside = metadata.trim_end().trim_end_matches('}');
    let comma = if known.is_empty() { "" } else { "," };
    // Only the last brace is the object's own.
    let braces = "}".repeat(metadata.trim_end().len() - inside.len() - 1);
    format!("{inside}{braces}{comma}\"{MASKS_KEY}\":{masks}}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Append, AppendError, EventLog, Expected, Options, Seq, sample};

    #[track_caller]
    fn check(metadata: &str, masks: u32, expected: &str) {
        assert_eq!(with_masks(metadata, masks), expected);
        assert!(Json::parse(expected).is_ok());
    }

    #[test]
    fn the_number_of_masks_is_added_and_the_rest_stays() {
        check("{}", 2, r#"{"redacted":2}"#);
        check("{ }", 2, r#"{ "redacted":2}"#);
        check(r#"{"a":{"b":{}}}"#, 1, r#"{"a":{"b":{}},"redacted":1}"#);
        check(r#"{"a":1.50 }"#, 1, r#"{"a":1.50 ,"redacted":1}"#);
        check(r#"{"redacted": 3,"a":"redacted"}"#, 2, r#"{"redacted": 5,"a":"redacted"}"#);
        check(r#"{"redacted":true}"#, 2, r#"{"redacted":true}"#);
    }

    #[test]
    fn an_event_without_secrets_is_not_touched() {
        let event = sample::note(1);
        let mut same = event.clone();
        redact(&Redactor::standard(), &mut same);
        assert_eq!(same, event);
    }

    fn with_secret(content: &str) -> NewEvent {
        let mut event = sample::note(1);
        event.content = Json::parse(content).unwrap();
        event
    }

    // Field report 102: masked before it is written, and marked as redacted.
    #[tokio::test]
    async fn nothing_that_is_appended_has_a_secret() {
        let (log, stream) = (sample::memory_log(), sample::thread("t"));
        let mut event =
            with_secret(r#"{"n":1.50,"text":"curl -H 'Authorization: Bearer s3cr3tTokenValue1'"}"#);
        event.metadata = Json::parse(r#"{"task_id":"call_1","api_key":"s3cr3tTokenValue2"}"#).unwrap();
        let answer = log.append(sample::to(&stream, Expected::Any, vec![event])).await.unwrap();
        let stored = log.read_stream(&stream, Seq::ZERO, 10).unwrap();
        assert_eq!(*answer.events[0], stored[0]);
        let text = serde_json::to_string(&stored).unwrap();
        assert!(!text.contains("s3cr3t"), "{text}");
        let content = stored[0].content.get();
        assert!(
            content.starts_with(r#"{"n":1.50,"text":"curl -H 'Authorization: Bearer [redacted:"#),
            "{content}"
        );
        let metadata = stored[0].metadata.get();
        assert!(metadata.starts_with(r#"{"task_id":"call_1","api_key":"[redacted:secret:"#), "{metadata}");
        assert!(metadata.ends_with(r#","redacted":2}"#), "{metadata}");
    }

    #[tokio::test]
    async fn a_repeat_with_the_same_secret_is_a_repeat_and_another_secret_is_not() {
        let (log, stream) = (sample::memory_log(), sample::thread("t"));
        let append = |secret: &str| {
            let events = vec![with_secret(&format!("\"password={secret}\""))];
            Append { idempotency_key: sample::key("k"), ..sample::to(&stream, Expected::Any, events) }
        };
        assert!(!log.append(append("hunter2")).await.unwrap().is_repeat);
        assert!(log.append(append("hunter2")).await.unwrap().is_repeat);
        assert!(matches!(log.append(append("hunter3")).await, Err(AppendError::KeyReused { .. })));
    }

    #[tokio::test]
    async fn a_log_without_a_redactor_keeps_what_it_is_given() {
        let options = Options { redactor: None, ..sample::options() };
        let (log, stream) = (EventLog::in_memory(options), sample::thread("t"));
        let event = with_secret(r#"{"password":"hunter2"}"#);
        let stored = log.append(sample::to(&stream, Expected::Any, vec![event.clone()])).await.unwrap();
        assert_eq!(
            (&stored.events[0].content, &stored.events[0].metadata),
            (&event.content, &event.metadata)
        );
    }
}
