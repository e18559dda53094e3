use std::collections::BTreeSet;

use serde_json::json;

use super::*;

fn record() -> Value {
    json!({
        "thread_id": "t-1", "run_id": "r-1", "seq": 1, "event_type": "subagent.step", "category": "subagent",
        "content": {"task_id": "c1", "message_index": 0, "kind": "tool", "text": "", "truncated": false, "tool_name": "ls"},
        "metadata": {"task_id": "c1", "message_index": 0}, "created_at": "2026-11-30T10:00:00Z",
        "position": 9, "event_id": "0197c0de-0000-7000-8000-000000000001", "schema_version": 1,
        "recorded_at": "2026-11-30T10:00:00.5Z", "user_id": "default", "hash": "0".repeat(64),
    })
}

/// Sets one place of a good record and expects a violation there.
#[track_caller]
fn check_violation(pointer: &str, value: Value, at: &str) {
    let mut record = record();
    *record.pointer_mut(pointer).unwrap() = value.clone();
    let violation = run_event_stream().validate(&record).unwrap_err();
    assert_eq!(violation.pointer, at, "{pointer} = {value}: {violation}");
    assert!(!violation.to_string().contains("s3cret"), "{violation}");
}

#[test]
fn a_good_record_passes_and_a_bad_one_is_named() {
    run_event_stream().validate(&record()).unwrap();
    check_violation("/seq", json!(0), "/seq");
    check_violation("/thread_id", json!("../x"), "/thread_id");
    check_violation("/created_at", json!("s3cret"), "/created_at");
    check_violation("/category", json!("message"), "/category");
    check_violation("/event_type", json!("x".repeat(33)), "/event_type");
    check_violation("/event_id", json!("s3cret"), "/event_id");
    check_violation("/metadata", json!([]), "/metadata");
    check_violation("/metadata", json!({"task_id": "c1"}), "/metadata");
    check_violation("/content", json!("s3cret"), "/content");
    check_violation("/content/text", json!("é".repeat(8_193)), "/content/text");
    check_violation("/content/kind", json!("s3cret"), "/content/kind");
}

// Facts §12 line 93: an index that is negative, a boolean or missing is no step; 0 is.
#[test]
fn a_step_has_a_whole_index_from_zero() {
    for bad in [json!(-1), json!(true), json!(1.5), json!("1"), json!(null)] {
        check_violation("/content/message_index", bad, "/content/message_index");
    }
    check_violation(
        "/content",
        json!({"task_id": "c1", "kind": "tool", "text": "", "truncated": false}),
        "/content",
    );
}

#[test]
fn each_kind_of_step_needs_its_own_field() {
    check_violation("/content/kind", json!("ai"), "/content");
}

#[test]
fn unknown_fields_and_types_pass() {
    let mut record = record();
    record["content"]["later"] = json!(1);
    record["later"] = json!({});
    run_event_stream().validate(&record).unwrap();
    record["event_type"] = json!("somebody.elses");
    record["content"] = json!([1]);
    run_event_stream().validate(&record).unwrap();
}

#[test]
fn a_record_of_the_thread_alone_has_no_run() {
    let mut record = record();
    record["run_id"] = Value::Null;
    run_event_stream().validate(&record).unwrap();
    record.as_object_mut().unwrap().remove("run_id");
    assert_eq!(run_event_stream().validate(&record).unwrap_err().pointer, "");
}

#[test]
fn a_middleware_tag_has_1_to_21_characters() {
    let category_of = |tag: &str| run_event_stream().category_of(&format!("middleware:{tag}"));
    assert_eq!(category_of("x"), Some("middleware"));
    assert_eq!(category_of(&"é".repeat(21)), Some("middleware"));
    assert_eq!(category_of(""), None);
    assert_eq!(category_of(&"x".repeat(22)), None);
    assert_eq!(run_event_stream().category_of("nobody.knows"), None);
}

#[test]
fn every_entry_has_a_category_of_the_contract() {
    let stream = run_event_stream();
    let known: BTreeSet<_> = stream.categories().map(|(name, _)| name).collect();
    let used: BTreeSet<_> = stream.types().map(|(_, event)| event.category.as_str()).collect();
    assert_eq!(known, used);
    assert!(stream.types().all(|(_, event)| !event.description.is_empty()));
    assert_eq!(stream.version(), 1);
}

#[test]
fn a_contract_that_cannot_be_read_is_an_error() {
    assert!(matches!(RunEventStream::read("{}"), Err(ReadError::Json(_))));
    let broken = CONTRACT_JSON.replacen("\"type\": \"object\"", "\"type\": \"nonsense\"", 1);
    assert!(matches!(RunEventStream::read(&broken), Err(ReadError::Schema(_))));
}
