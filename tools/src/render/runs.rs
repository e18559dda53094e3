//! Runs, the newest first.

use contracts::wire::run::Run;

use super::{
    short_id, status,
    table::{Cell, Column, table},
    tone::{Tone, paint},
    units,
};
use crate::screen::Screen;

const COLUMNS: [Column; 9] = [
    Column::text("RUN"),
    Column::text("THREAD"),
    Column::text("STATUS"),
    Column::number("TURNS"),
    Column::number("TASKS"),
    Column::number("TOKENS"),
    Column::number("TIME"),
    Column::text("STARTED (UTC)"),
    Column::flexible("RESULT"),
];

/// The table.
pub(crate) fn runs(screen: Screen, runs: &[Run]) -> String {
    if runs.is_empty() {
        return paint("no runs yet", Tone::Dim, screen.colours);
    }
    let run_ids = short_id::shortened(runs.iter().map(|run| run.run_id.as_str()));
    let thread_ids = short_id::shortened(runs.iter().map(|run| run.thread_id.as_str()));
    let rows = runs.iter().zip(run_ids.into_iter().zip(thread_ids));
    table(screen, &COLUMNS, rows.map(|(run, (run_id, thread_id))| row(run, run_id, thread_id)).collect())
}

fn row(run: &Run, run_id: String, thread_id: String) -> Vec<Cell> {
    let (state, tone) = status::run(run.status);
    let state = match &run.stop_reason {
        Some(reason) => format!("{state} ({reason})"),
        None => state.to_owned(),
    };
    let time = units::between_ms(Some(&run.created_at), Some(&run.updated_at)).map(units::duration);
    vec![
        Cell::new(run_id),
        Cell::new(thread_id),
        Cell::toned(state, tone),
        Cell::new(run.turns.to_string()),
        Cell::new(run.delegations.to_string()),
        Cell::optional(run.usage.map(|usage| units::tokens(usage.total_tokens))),
        Cell::optional(time),
        Cell::new(units::instant(&run.created_at)),
        Cell::new(run.error.as_deref().or(run.result.as_deref()).unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn runs_are_listed() {
        insta::assert_snapshot!(runs(Screen::plain(Some(120)), &samples::runs()));
    }
}
