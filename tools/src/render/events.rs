//! Events, one line each.

use contracts::wire::event::EventRecord;
use serde_json::Value;

use super::{
    printable,
    table::{Cell, Column, table, untitled},
    tone::Tone,
    units,
};
use crate::screen::Screen;

/// Each value of a content is cut to this; the whole content is in the JSON form.
const VALUE_CHARS_MAX: usize = 60;

/// Fields of a content that other columns show, or that all lines share.
const SHOWN_ELSEWHERE: [&str; 3] = ["task_id", "run_id", "response_metadata"];

const COLUMNS: [Column; 5] = [
    Column::number("SEQ").at_least(5),
    Column::text("TIME (UTC)").at_least(12).dropped_as(0),
    Column::words("EVENT").at_least(20),
    Column::id("TASK").at_least(11).dropped_as(1),
    Column::flexible("CONTENT"),
];

/// One page of events; only the first page has titles.
pub(crate) fn page(screen: Screen, records: &[EventRecord], is_first: bool) -> String {
    let rows = records.iter().map(row).collect();
    if is_first { table(screen, &COLUMNS, rows) } else { untitled(screen, &COLUMNS, rows) }
}

fn row(record: &EventRecord) -> Vec<Cell> {
    vec![
        Cell::toned(record.seq.to_string(), Tone::Dim),
        Cell::toned(units::time_of_day(&record.created_at), Tone::Dim),
        Cell::toned(&record.event_type, tone(&record.event_type)),
        Cell::new(record.task_id.as_deref().unwrap_or_default()),
        Cell::new(summary(record.content.get())),
    ]
}

/// Endings and what went wrong stand out; unknown types look like any other.
pub(super) fn tone(event_type: &str) -> Tone {
    match event_type {
        "run.error" | "llm.error" | "delegation.refused" => Tone::Bad,
        "run.cap" | "subagent.cap" | "llm.retry" => Tone::Warn,
        "run.end" | "subagent.end" => Tone::Good,
        _ => Tone::Plain,
    }
}

/// The content in one line: `status=running`, or the beginning of a text.
pub(super) fn summary(content: &str) -> String {
    match serde_json::from_str(content) {
        Ok(Value::Object(fields)) => {
            let fields = fields.iter().filter(|(name, _)| !SHOWN_ELSEWHERE.contains(&name.as_str()));
            let pairs = fields.map(|(name, value)| format!("{name}={}", value_text(value)));
            pairs.collect::<Vec<_>>().join(" ")
        }
        Ok(Value::String(text)) => printable::short_line(&text, VALUE_CHARS_MAX),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) | Err(_) => {
            printable::short_line(content, VALUE_CHARS_MAX)
        }
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => printable::short_line(text, VALUE_CHARS_MAX),
        Value::Object(message) if message.contains_key("content") => {
            let part = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
            printable::short_line(&format!("{}: {}", part("type"), part("content")), VALUE_CHARS_MAX)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            printable::short_line(&value.to_string(), VALUE_CHARS_MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn events_have_a_line_each() {
        for width in [40, 80, 120] {
            let shown = page(Screen::plain(Some(width)), &samples::events(), true);
            insta::assert_snapshot!(format!("events_on_{width}_columns"), shown);
        }
    }

    #[test]
    fn later_pages_stand_under_the_titles_of_the_first() {
        let screen = Screen::plain(Some(100));
        let whole = page(screen, &samples::events(), true);
        let later = page(screen, &samples::events(), false);
        assert_eq!(whole.lines().skip(1).collect::<Vec<_>>(), later.lines().collect::<Vec<_>>());
    }

    #[test]
    fn any_content_has_a_line() {
        for (content, expected) in [
            (r#"{"status":"running","task_id":"t","n":1}"#, "status=running n=1"),
            (r#"{"message":{"type":"ai","content":"hi\nyou"}}"#, "message=ai: hi you"),
            (r#""two\nlines""#, "two lines"),
            ("[1,2]", "[1,2]"),
            ("null", "null"),
        ] {
            assert_eq!(summary(content), expected);
        }
    }
}
