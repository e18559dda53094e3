//! Guards that fired, one line each.

use contracts::wire::cap::Cap;

use super::{
    short_id,
    table::{Cell, Column, table},
    tone::{Tone, paint},
    units,
};
use crate::screen::Screen;

const COLUMNS: [Column; 8] = [
    Column::number("SEQ").dropped_as(2),
    Column::text("TIME (UTC)").dropped_as(0),
    Column::text("RUN").dropped_as(1),
    Column::id("TASK"),
    Column::text("ACTION"),
    Column::text("AXIS"),
    Column::number("USED"),
    Column::number("BUDGET").dropped_as(3),
];

/// The table of caps, in the order in which they fired.
pub(crate) fn caps(screen: Screen, caps: &[Cap]) -> String {
    if caps.is_empty() {
        return paint("no caps: no guard had to step in", Tone::Dim, screen.colours);
    }
    let run_ids = short_id::shortened(caps.iter().map(|cap| cap.run_id.as_deref().unwrap_or_default()));
    let rows = caps.iter().zip(run_ids).map(|(cap, run_id)| row(cap, run_id));
    table(screen, &COLUMNS, rows.collect())
}

fn row(cap: &Cap, run_id: String) -> Vec<Cell> {
    let tone = if cap.action == "stop" { Tone::Bad } else { Tone::Warn };
    vec![
        Cell::toned(cap.seq.to_string(), Tone::Dim),
        Cell::toned(units::instant(&cap.at), Tone::Dim),
        Cell::new(run_id),
        Cell::new(cap.task_id.as_deref().unwrap_or("lead")),
        Cell::toned(&cap.action, tone),
        Cell::new(&cap.axis),
        Cell::new(units::grouped(cap.used)),
        Cell::new(units::grouped(cap.budget)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn caps_have_a_line_each() {
        for width in [40, 80, 120] {
            let shown = caps(Screen::plain(Some(width)), &samples::caps());
            insta::assert_snapshot!(format!("caps_on_{width}_columns"), shown);
        }
        assert_eq!(caps(Screen::plain(None), &[]), "no caps: no guard had to step in");
    }
}
