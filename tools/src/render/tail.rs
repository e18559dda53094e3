//! Events of the whole log, one line each, under each other however they come.

use contracts::wire::event::EventRecord;

use super::{
    events,
    table::{Cell, Column, table, untitled},
    tone::Tone,
    units,
};
use crate::screen::Screen;

const COLUMNS: [Column; 6] = [
    Column::number("POSITION").at_least(8),
    Column::text("TIME (UTC)").at_least(12).dropped_as(0),
    Column::id("THREAD").at_least(11).dropped_as(2),
    Column::words("EVENT").at_least(20),
    Column::id("TASK").at_least(11).dropped_as(1),
    Column::flexible("CONTENT"),
];

/// The line of an event; the first one has titles above it.
pub(crate) fn line(screen: Screen, record: &EventRecord, is_first: bool) -> String {
    let rows = vec![row(record)];
    if is_first { table(screen, &COLUMNS, rows) } else { untitled(screen, &COLUMNS, rows) }
}

fn row(record: &EventRecord) -> Vec<Cell> {
    // Registry events belong to no thread.
    let thread = if record.thread_id.is_empty() { "-" } else { &record.thread_id };
    vec![
        Cell::toned(record.position.to_string(), Tone::Dim),
        Cell::toned(units::time_of_day(&record.created_at), Tone::Dim),
        Cell::toned(thread, Tone::Dim),
        Cell::toned(&record.event_type, events::tone(&record.event_type)),
        Cell::new(record.task_id.as_deref().unwrap_or_default()),
        Cell::new(events::summary(record.content.get())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn lines_stand_under_each_other() {
        for width in [60, 120] {
            let screen = Screen::plain(Some(width));
            let records = samples::events();
            let lines = records.iter().enumerate().map(|(place, record)| line(screen, record, place == 0));
            let shown = lines.collect::<Vec<_>>().join("\n");
            insta::assert_snapshot!(format!("tail_on_{width}_columns"), shown);
        }
    }
}
