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

/// What came of a delegation is left out where it would have less; the card has it.
const OUTCOME_COLUMNS_MIN: usize = 24;

/// The first columns of every ledger. A delegation's short id is always there: it names one, which
/// a task id need not.
const FIRST: [Column; 6] = [
    Column::text("DELEGATION"),
    Column::id("TASK").dropped_as(2),
    Column::words("TYPE").dropped_as(5),
    Column::text("STATUS"),
    Column::number("TOKENS").dropped_as(4),
    Column::number("TIME").dropped_as(3),
];

/// The table and one line of totals.
pub(crate) fn ledger(screen: Screen, delegations: &[Delegation]) -> String {
    if delegations.is_empty() {
        return paint("nothing has been delegated", Tone::Dim, screen.colours);
    }
    let ids = short_id::shortened(delegations.iter().map(|delegation| delegation.delegation_id.as_str()));
    let runs = short_id::shortened(delegations.iter().map(|delegation| delegation.run_id.as_str()));
    let has_runs =
        delegations.iter().any(|one| delegations.first().is_some_and(|first| first.run_id != one.run_id));
    let mut columns = FIRST.to_vec();
    if has_runs {
        columns.push(Column::text("RUN").dropped_as(1));
    }
    columns.push(Column::flexible("DESCRIPTION"));
    columns.push(Column::flexible("OUTCOME").at_least(OUTCOME_COLUMNS_MIN).dropped_as(0));
    let rows = delegations.iter().zip(ids.into_iter().zip(runs)).map(|(delegation, (id, run))| {
        let mut cells = first_cells(delegation, id);
        if has_runs {
            cells.push(Cell::new(run));
        }
        cells.push(Cell::new(&delegation.description));
        cells.push(Cell::new(outcome(delegation)));
        cells
    });
    format!("{}\n{}", table(screen, &columns, rows.collect()), totals(screen, delegations))
}

fn first_cells(delegation: &Delegation, id: String) -> Vec<Cell> {
    let (state, tone) = status::capped_delegation(delegation.status, delegation.stop_reason);
    let began = delegation.started_at.as_deref();
    let time = units::between_ms(began, delegation.ended_at.as_deref()).map(units::duration);
    vec![
        Cell::new(id),
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

/// `3 delegations, 7 refused (1 in progress, 2 completed); 13.2K tokens`.
fn totals(screen: Screen, delegations: &[Delegation]) -> String {
    const ORDER: [DelegationStatus; 7] = [
        DelegationStatus::Queued,
        DelegationStatus::InProgress,
        DelegationStatus::Completed,
        DelegationStatus::Failed,
        DelegationStatus::Cancelled,
        DelegationStatus::TimedOut,
        DelegationStatus::PollingTimedOut,
    ];
    let states = ORDER.into_iter().filter_map(|wanted| {
        let count = delegations.iter().filter(|delegation| delegation.status == wanted).count();
        (count > 0).then(|| format!("{count} {}", status::delegation(wanted).0))
    });
    let states = states.collect::<Vec<_>>().join(", ");
    let mut line = Counts::of(delegations).in_words();
    if !states.is_empty() {
        line.push_str(&format!(": {states}"));
    }
    if let Some(tokens) = tokens_of(delegations) {
        line.push_str(&format!("; {} tokens", units::tokens(tokens)));
    }
    paint(&line, Tone::Dim, screen.colours)
}

/// How many delegations were taken on and how many refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    taken_on: u64,
    refused: u64,
}

impl Counts {
    /// Counts rows of the ledger.
    pub(crate) fn of<'a>(delegations: impl IntoIterator<Item = &'a Delegation>) -> Self {
        let mut counts = Self::default();
        for delegation in delegations {
            counts.add(delegation);
        }
        counts
    }

    /// Counts one more.
    pub(crate) fn add(&mut self, delegation: &Delegation) {
        if delegation.status == DelegationStatus::Refused {
            self.refused += 1;
        } else {
            self.taken_on += 1;
        }
    }

    /// `3`, or `3, 7 refused`: for a column whose title says what is counted.
    pub(crate) fn in_short(self) -> String {
        match self.refused {
            0 => self.taken_on.to_string(),
            refused => format!("{}, {refused} refused", self.taken_on),
        }
    }

    /// `3 delegations`, or `3 delegations, 7 refused`.
    fn in_words(self) -> String {
        let taken_on = units::counted(self.taken_on, "delegation", "delegations");
        if self.refused == 0 { taken_on } else { format!("{taken_on}, {} refused", self.refused) }
    }
}

/// All tokens that were reported; none when nobody reported any.
fn tokens_of(delegations: &[Delegation]) -> Option<u64> {
    let reported = delegations.iter().filter_map(|delegation| delegation.usage);
    reported.map(|usage: Usage| usage.total_tokens).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{samples, table::UNLIMITED_WIDTH, width::columns};

    #[test]
    fn every_screen_shows_what_fits() {
        for width in [40, 60, 80, 120] {
            let shown = ledger(Screen::plain(Some(width)), &samples::ledger());
            insta::assert_snapshot!(format!("a_ledger_on_{width}_columns"), shown);
        }
        insta::assert_snapshot!("a_ledger_in_a_pipe", ledger(Screen::plain(None), &samples::ledger()));
    }

    #[test]
    fn delegations_of_several_runs_name_their_run() {
        let mut delegations = samples::ledger();
        delegations[1].run_id = "0193a1b2-ffff-7000-8000-000000000000".into();
        insta::assert_snapshot!(ledger(Screen::plain(Some(120)), &delegations));
    }

    #[test]
    fn rows_stay_rows_whatever_is_in_them() {
        let mut delegations = samples::ledger();
        delegations[0].task_id = "t".repeat(256);
        delegations[1].description = "long ".repeat(1_000);
        delegations[2].error = Some("漢字\n".repeat(1_000));
        delegations[3].subagent_type = "s".repeat(64);
        for width in (40..200).map(Some).chain([None]) {
            let shown = ledger(Screen::plain(width), &delegations);
            assert_eq!(shown.lines().count(), 6, "{shown}");
            let widest = shown.lines().take(5).map(columns).max().unwrap();
            assert!(widest <= usize::from(width.unwrap_or(UNLIMITED_WIDTH)), "{width:?}: {shown}");
        }
    }

    #[test]
    fn what_was_refused_is_counted_apart() {
        let refused = || samples::ledger().remove(2);
        let mut delegations = samples::ledger();
        delegations.extend([refused(), refused()]);
        let last = |delegations: &[Delegation]| totals(Screen::plain(None), delegations);
        assert_eq!(last(&delegations), "3 delegations, 3 refused: 1 in progress, 2 completed; 13.2K tokens");
        assert_eq!(last(&delegations[..2]), "2 delegations: 2 completed; 13.2K tokens");
        assert_eq!(last(&[refused()]), "0 delegations, 1 refused");
        assert_eq!(Counts::of(&delegations).in_short(), "3, 3 refused");
        assert_eq!(Counts::of(&delegations[..1]).in_short(), "1");
    }

    #[test]
    fn an_empty_ledger_says_so() {
        assert_eq!(ledger(Screen::plain(None), &[]), "nothing has been delegated");
    }
}
