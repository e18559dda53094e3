//! Threads.

use contracts::wire::thread::Thread;

use super::{
    short_id, status,
    table::{Cell, Column, table},
    tone::{Tone, paint},
    units,
};
use crate::screen::Screen;

const COLUMNS: [Column; 5] = [
    Column::text("THREAD"),
    Column::text("STATUS"),
    Column::number("EVENTS").dropped_as(2),
    Column::text("CREATED (UTC)").dropped_as(0),
    Column::text("LAST EVENT (UTC)").dropped_as(1),
];
/// Here the id of a thread is whole, as a URL needs it; narrower screens show how it begins.
const WHOLE_IDS_WIDTH_MIN: u16 = 60;

/// The table.
pub(crate) fn threads(screen: Screen, threads: &[Thread]) -> String {
    let has_whole_ids = screen.width.is_none_or(|width| width >= WHOLE_IDS_WIDTH_MIN);
    let short_ids = short_id::shortened(threads.iter().map(|thread| thread.thread_id.as_str()));
    if threads.is_empty() {
        return paint("no threads yet", Tone::Dim, screen.colours);
    }
    let rows = threads.iter().zip(short_ids).map(|(thread, short_id)| {
        let (state, tone) = status::thread(thread.status);
        vec![
            Cell::new(if has_whole_ids { &thread.thread_id } else { &short_id }),
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
        for width in [40, 80, 100] {
            let shown = threads(Screen::plain(Some(width)), &samples::threads());
            insta::assert_snapshot!(format!("threads_on_{width}_columns"), shown);
        }
    }
}
