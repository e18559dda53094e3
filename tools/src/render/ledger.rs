//! The ledger: what has been delegated, and what came of it.

use contracts::wire::{
    delegation::{Delegation, DelegationStatus},
    usage::Usage,
};

use super::{
    short_id, status,
    table::{Cell, Column, table},
    tone::{Tone, paint},
    units,
};
use crate::screen::Screen;

/// Narrower screens leave out what came of a delegation; the card has it.
const OUTCOME_WIDTH_MIN: u16 = 110;

/// The table and one line of totals.
pub(crate) fn ledger(screen: Screen, delegations: &[Delegation]) -> String {
    if delegations.is_empty() {
        return paint("nothing has been delegated", Tone::Dim, screen.colours);
    }
    let runs = short_id::shortened(delegations.iter().map(|delegation| delegation.run_id.as_str()));
    let has_runs =
        delegations.iter().any(|one| delegations.first().is_some_and(|first| first.run_id != one.run_id));
    let has_outcome = screen.width.is_none_or(|width| width >= OUTCOME_WIDTH_MIN);
    let mut columns = vec![Column::text("TASK"), Column::text("TYPE"), Column::text("STATUS")];
    columns.extend([Column::number("TOKENS"), Column::number("TIME")]);
    if has_runs {
        columns.push(Column::text("RUN"));
    }
    columns.push(Column::flexible("DESCRIPTION"));
    if has_outcome {
        columns.push(Column::flexible("OUTCOME"));
    }
    let rows = delegations.iter().zip(runs).map(|(delegation, run)| {
        let mut cells = first_cells(delegation);
        if has_runs {
            cells.push(Cell::new(run));
        }
        cells.push(Cell::new(&delegation.description));
        if has_outcome {
            cells.push(Cell::new(outcome(delegation)));
        }
        cells
    });
    format!("{}\n{}", table(screen, &columns, rows.collect()), totals(screen, delegations))
}

fn first_cells(delegation: &Delegation) -> Vec<Cell> {
    let (state, tone) = status::listed_delegation(delegation.status, delegation.stop_reason);
    let began = delegation.started_at.as_deref();
    let time = units::between_ms(began, delegation.ended_at.as_deref()).map(units::duration);
    vec![
        Cell::new(&delegation.task_id),
        Cell::new(&delegation.subagent_type),
        Cell::toned(state, tone),
        Cell::optional(delegation.usage.map(|usage| units::tokens(usage.total_tokens))),
        Cell::optional(time),
    ]
}

/// The error of what went wrong, else the brief of the result.
fn outcome(delegation: &Delegation) -> &str {
    delegation.error.as_deref().or(delegation.result_brief.as_deref()).unwrap_or_default()
}

fn totals(screen: Screen, delegations: &[Delegation]) -> String {
    const ORDER: [DelegationStatus; 8] = [
        DelegationStatus::Queued,
        DelegationStatus::InProgress,
        DelegationStatus::Completed,
        DelegationStatus::Failed,
        DelegationStatus::Cancelled,
        DelegationStatus::TimedOut,
        DelegationStatus::PollingTimedOut,
        DelegationStatus::Refused,
    ];
    let counts = ORDER.into_iter().filter_map(|wanted| {
        let count = delegations.iter().filter(|delegation| delegation.status == wanted).count();
        (count > 0).then(|| format!("{count} {}", status::delegation(wanted).0))
    });
    let counts = counts.collect::<Vec<_>>().join(", ");
    let total = units::counted(delegations.len() as u64, "delegation", "delegations");
    let line = match tokens_of(delegations) {
        Some(tokens) => format!("{total}: {counts}; {} tokens", units::tokens(tokens)),
        None => format!("{total}: {counts}"),
    };
    paint(&line, Tone::Dim, screen.colours)
}

/// All tokens that were reported; none when nobody reported any.
fn tokens_of(delegations: &[Delegation]) -> Option<u64> {
    let reported = delegations.iter().filter_map(|delegation| delegation.usage);
    reported.map(|usage: Usage| usage.total_tokens).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn a_narrow_screen_shows_the_descriptions() {
        insta::assert_snapshot!(ledger(Screen::plain(Some(80)), &samples::ledger()));
    }

    #[test]
    fn a_wide_screen_shows_what_came_of_it() {
        insta::assert_snapshot!(ledger(Screen::plain(Some(140)), &samples::ledger()));
    }

    #[test]
    fn delegations_of_several_runs_name_their_run() {
        let mut delegations = samples::ledger();
        delegations[1].run_id = "0193a1b2-ffff-7000-8000-000000000000".into();
        insta::assert_snapshot!(ledger(Screen::plain(Some(100)), &delegations));
    }

    #[test]
    fn an_empty_ledger_says_so() {
        assert_eq!(ledger(Screen::plain(None), &[]), "nothing has been delegated");
    }
}
