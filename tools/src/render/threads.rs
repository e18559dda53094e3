//! Threads.

use contracts::wire::thread::Thread;

use super::{
    status,
    table::{Cell, Column, table},
    tone::{Tone, paint},
    units,
};
use crate::screen::Screen;

const COLUMNS: [Column; 5] = [
    Column::text("THREAD"),
    Column::text("STATUS"),
    Column::number("EVENTS"),
    Column::text("CREATED (UTC)"),
    Column::text("LAST EVENT (UTC)"),
];

/// The table.
pub(crate) fn threads(screen: Screen, threads: &[Thread]) -> String {
    if threads.is_empty() {
        return paint("no threads yet", Tone::Dim, screen.colours);
    }
    let rows = threads.iter().map(|thread| {
        let (state, tone) = status::thread(thread.status);
        vec![
            Cell::new(&thread.thread_id),
            Cell::toned(state, tone),
            Cell::new(units::grouped(thread.seq)),
            Cell::new(units::instant(&thread.created_at)),
            Cell::new(units::instant(&thread.updated_at)),
        ]
    });
    table(screen, &COLUMNS, rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn threads_are_listed() {
        insta::assert_snapshot!(threads(Screen::plain(Some(100)), &samples::threads()));
    }
}
