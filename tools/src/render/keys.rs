//! The keys of threads and runs: whose they are, and how they are.

use super::{
    table::{Cell, Column, table},
    tone::{Tone, paint},
};
use crate::{commands::keys::KeyRow, screen::Screen};

const COLUMNS: [Column; 4] = [
    Column::number("SLOT").dropped_as(0),
    Column::text("THREAD HASH"),
    Column::text("RUN HASH"),
    Column::text("STATE"),
];

/// The table.
pub(crate) fn keys(screen: Screen, rows: &[KeyRow]) -> String {
    if rows.is_empty() {
        return paint("no keys", Tone::Dim, screen.colours);
    }
    let cells = rows.iter().map(|row| {
        let tone = match row.state {
            "live" => Tone::Plain,
            "damaged" => Tone::Bad,
            _ => Tone::Dim,
        };
        vec![
            Cell::new(row.slot.to_string()),
            Cell::optional(row.thread_hash.clone()),
            Cell::optional(row.run_hash.clone()),
            Cell::toned(row.state, tone),
        ]
    });
    table(screen, &COLUMNS, cells.collect())
}
