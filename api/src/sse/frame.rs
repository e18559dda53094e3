//! One frame as bytes.

use axum::body::Bytes;
use contracts::wire::{card::Card, problem::ProblemCode};
use domain::ids::{DelegationId, RunId, ThreadId};
use eventlog::{Position, RecordedEvent};
use serde_json::json;

use crate::{convert, error::Answer};

/// Frames that are not events of the log. A foreign event of one of these types must not pass for
/// one of them.
const OUR_NAMES: [&str; 3] = ["metadata", "end", "error"];
/// What an event is called whose type is one of [`OUR_NAMES`]; its record has the true type.
const RECORD: &str = "record";

/// The first frame.
pub(super) fn metadata(thread_id: &ThreadId, run_id: &RunId) -> Bytes {
    frame("metadata", &json!({"run_id": run_id, "thread_id": thread_id}).to_string())
}

/// The last frame.
pub(super) fn end() -> Bytes {
    frame("end", "null")
}

/// The stream failed and closes; resuming it may work if the code says that something is unavailable.
pub(super) fn error(code: ProblemCode, message: &str) -> Bytes {
    frame("error", &json!({"message": message, "name": code.as_str()}).to_string())
}

/// Whether reading failed for now, or because what is stored is not what was written.
pub(super) fn code_of(error: &(dyn std::error::Error + 'static)) -> ProblemCode {
    if eventlog::is_damage(error) { ProblemCode::Integrity } else { ProblemCode::Unavailable }
}

/// A comment: nothing to read, but bytes on the wire.
pub(super) fn heartbeat() -> Bytes {
    Bytes::from_static(b": heartbeat\n\n")
}

/// One event of the log.
pub(super) fn event(event: &RecordedEvent) -> Answer<Bytes> {
    let record = convert::event::to_text(event)?;
    let name = if OUR_NAMES.contains(&event.event_type.as_str()) { RECORD } else { &event.event_type };
    Ok(Bytes::from(format!("id: {}\n{}", event.position, text(name, &record))))
}

/// The first frame of the whole log: what follows comes after this position.
pub(super) fn log_metadata(position: Position) -> Bytes {
    Bytes::from(format!("id: {position}\n{}", text("metadata", &json!({"position": position}).to_string())))
}

/// A comment that also says how far a quiet stream has come. It is no event.
pub(super) fn heartbeat_at(position: Position) -> Bytes {
    Bytes::from(format!(": heartbeat\nid: {position}\n\n"))
}

/// The first frame of a card's replay.
pub(super) fn card_metadata(delegation_id: DelegationId) -> Bytes {
    frame("metadata", &json!({"delegation_id": delegation_id}).to_string())
}

/// One state of a card, after the event at this position.
pub(super) fn card(position: u64, card: &Card) -> Result<Bytes, serde_json::Error> {
    let data = serde_json::to_string(card)?;
    Ok(Bytes::from(format!("id: {position}\n{}", text("card", &data))))
}

fn frame(name: &str, data: &str) -> Bytes {
    Bytes::from(text(name, data))
}

/// Line breaks would end a field early. In JSON they can only stand between tokens, where a space
/// means the same.
fn text(name: &str, data: &str) -> String {
    let breaks = ['\n', '\r'];
    format!("event: {}\ndata: {}\n\n", name.replace(breaks, " "), data.replace(breaks, " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_never_ends_early() {
        assert_eq!(text("a\nid: 9", "{\r\n \"b\": 1\n}"), "event: a id: 9\ndata: {   \"b\": 1 }\n\n");
    }

    #[test]
    fn frames_that_are_not_events_have_no_id() {
        let (thread_id, run_id) = (ThreadId::new("t").unwrap(), RunId::new("r").unwrap());
        let expected = "event: metadata\ndata: {\"run_id\":\"r\",\"thread_id\":\"t\"}\n\n";
        assert_eq!(metadata(&thread_id, &run_id), expected);
        assert_eq!(end(), "event: end\ndata: null\n\n");
        assert_eq!(
            error(ProblemCode::Unavailable, "gone"),
            "event: error\ndata: {\"message\":\"gone\",\"name\":\"unavailable\"}\n\n"
        );
    }
}
