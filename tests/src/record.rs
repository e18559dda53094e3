//! Records of the event stream, as anybody outside reads them.

use contracts::run_event_stream;
use serde_json::Value;

/// Every record keeps the contract.
#[track_caller]
pub fn assert_valid(events: &[Value]) {
    assert!(!events.is_empty(), "there are no events to check");
    for event in events {
        if let Err(violation) = run_event_stream().validate(event) {
            panic!("{violation}: {event}");
        }
        let event_type = text(event, "event_type");
        assert!(run_event_stream().category_of(event_type).is_some(), "the contract has no {event_type}");
    }
}

/// The records of a whole thread: seqs from 1 without a gap, positions that only grow.
#[track_caller]
pub fn assert_gapless(events: &[Value]) {
    let seqs: Vec<u64> = events.iter().map(|event| number(event, "seq")).collect();
    let expected: Vec<u64> = (1..=events.len() as u64).collect();
    assert_eq!(seqs, expected);
    assert_ascending(events);
}

/// Positions and seqs only grow.
#[track_caller]
pub fn assert_ascending(events: &[Value]) {
    for pair in events.windows(2) {
        for key in ["seq", "position"] {
            assert!(number(&pair[0], key) < number(&pair[1], key), "{key}: {} then {}", pair[0], pair[1]);
        }
    }
}

/// A field that is text; empty when it is not there.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// A field that is a whole number.
#[track_caller]
pub fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no number {key} in {value}"))
}

/// The records of one type.
pub fn of_type<'a>(events: &'a [Value], event_type: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event_type"] == event_type).collect()
}

/// The types of the records, in order.
pub fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| text(event, "event_type")).collect()
}

/// The one record of this type.
#[track_caller]
pub fn only<'a>(events: &'a [Value], event_type: &str) -> &'a Value {
    let found = of_type(events, event_type);
    assert_eq!(found.len(), 1, "{event_type} in {:?}", types(events));
    found[0]
}

/// The seq of the last record.
#[track_caller]
pub fn last_seq(events: &[Value]) -> u64 {
    number(events.last().unwrap(), "seq")
}
