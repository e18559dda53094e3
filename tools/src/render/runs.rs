//! Runs, the newest first.

use std::collections::BTreeMap;

use contracts::wire::run::Run;

use super::{
    ledger::Counts,
    short_id, status,
    table::{Cell, Column, table},
    tone::{Tone, paint},
    units,
};
use crate::screen::Screen;

const COLUMNS: [Column; 9] = [
    Column::text("RUN"),
    Column::text("THREAD").dropped_as(3),
    Column::text("STATUS"),
    Column::number("TURNS").dropped_as(1),
    Column::text("DELEGATIONS").dropped_as(5),
    Column::number("TOKENS").dropped_as(2),
    Column::number("TIME").dropped_as(4),
    Column::text("STARTED (UTC)").dropped_as(0),
    Column::flexible("RESULT"),
];

/// The table of the first so many runs. The others are known too, so that the short ids tell those
/// that are listed from all.
pub(crate) fn runs(
    screen: Screen,
    known: &[Run],
    limit: usize,
    delegations: &BTreeMap<String, Counts>,
) -> String {
    if known.is_empty() {
        return paint("no runs yet", Tone::Dim, screen.colours);
    }
    let run_ids = short_id::shortened(known.iter().map(|run| run.run_id.as_str()));
    let thread_ids = short_id::shortened(known.iter().map(|run| run.thread_id.as_str()));
    let rows = known.iter().take(limit).zip(run_ids.into_iter().zip(thread_ids)).map(
        |(run, (run_id, thread_id))| {
            let counts = delegations.get(&run.run_id).copied().unwrap_or_default();
            row(run, run_id, thread_id, counts)
        },
    );
    table(screen, &COLUMNS, rows.collect())
}

fn row(run: &Run, run_id: String, thread_id: String, counts: Counts) -> Vec<Cell> {
    let (state, tone) = status::capped_run(run.status, run.stop_reason.as_deref());
    let time = units::between_ms(Some(&run.created_at), Some(&run.updated_at)).map(units::duration);
    vec![
        Cell::new(run_id),
        Cell::new(thread_id),
        Cell::toned(state, tone),
        Cell::new(run.turns.to_string()),
        Cell::new(counts.in_short()),
        Cell::optional(run.usage.map(|usage| units::tokens(usage.total_tokens))),
        Cell::optional(time),
        Cell::new(units::instant(&run.created_at)),
        Cell::new(run.error.as_deref().or(run.result.as_deref()).unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{samples, width::columns};

    fn counts() -> BTreeMap<String, Counts> {
        let newest = samples::runs().remove(1).run_id;
        BTreeMap::from([(newest, Counts::of(&samples::ledger()))])
    }

    #[test]
    fn runs_are_listed() {
        for width in [40, 80, 120] {
            let shown = runs(Screen::plain(Some(width)), &samples::runs(), 9, &counts());
            insta::assert_snapshot!(format!("runs_on_{width}_columns"), shown);
        }
        insta::assert_snapshot!("runs_in_a_pipe", runs(Screen::plain(None), &samples::runs(), 9, &counts()));
    }

    #[test]
    fn a_short_id_is_told_from_those_that_are_not_listed() {
        let mut known = samples::runs();
        known[0].run_id = "0193a1b2-c3d4-7100-8000-000000000002".into();
        let shown = runs(Screen::plain(None), &known, 1, &counts());
        assert_eq!(shown.lines().count(), 2);
        assert!(shown.lines().nth(1).unwrap().starts_with("0193a1b2-c3d4-71 "), "{shown}");
    }

    #[test]
    fn a_run_is_one_line_that_fits() {
        for width in 40..200 {
            let shown = runs(Screen::plain(Some(width)), &samples::runs(), 9, &counts());
            assert_eq!(shown.lines().count(), 3, "{shown}");
            assert!(shown.lines().all(|line| columns(line) <= usize::from(width)), "{width}: {shown}");
        }
    }
}
