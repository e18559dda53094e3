//! States one after the other: redrawn in place where a person watches, plain blocks otherwise.

use contracts::wire::{card::Card, delegation::Delegation, event::EventRecord, run::Run};
use domain::recheck::Rechecked;
use serde::Serialize;

use super::{
    card, events, ledger, runs,
    tone::{Tone, paint},
    units,
    verify::named,
};
use crate::{render::ledger::Counts, screen::Screen};

/// Goes to the upper left corner and clears the screen: a state may be longer than the screen was.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Draws one state over the other.
#[derive(Debug, Default)]
pub(crate) struct Redraw {
    shown: usize,
}

impl Redraw {
    /// What is to be printed for the next state.
    pub(crate) fn next(&mut self, screen: Screen, title: &str, text: &str) -> String {
        self.shown += 1;
        let text = text.trim_end_matches('\n');
        if screen.is_terminal {
            return format!("{CLEAR}{text}\n");
        }
        let gap = if self.shown > 1 { "\n" } else { "" };
        format!("{gap}== {title}\n{text}\n")
    }
}

/// A thread, run or delegation after one of its events.
#[derive(Debug, Serialize)]
pub(crate) struct State {
    /// The event's place in the thread.
    pub(crate) seq: u64,
    /// The event's place in the log.
    pub(crate) position: u64,
    /// What happened.
    pub(crate) event_type: String,
    /// What it is like then.
    #[serde(flatten)]
    pub(crate) what: What,
}

/// What is folded.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum What {
    /// A thread, or one run of it.
    Thread {
        /// The runs, newest first.
        runs: Vec<Run>,
        /// What was delegated.
        delegations: Vec<Delegation>,
    },
    /// One delegation; none before it was requested.
    Delegation {
        /// The card.
        card: Option<Box<Card>>,
    },
}

/// The state as text.
pub(crate) fn state(screen: Screen, state: &State) -> String {
    match &state.what {
        What::Delegation { card: Some(shown) } => card::card(screen, shown),
        What::Delegation { card: None } => paint("not requested yet", Tone::Dim, screen.colours),
        What::Thread { runs, delegations } => {
            let mut counts = std::collections::BTreeMap::<String, Counts>::new();
            for delegation in delegations {
                counts.entry(delegation.run_id.clone()).or_default().add(delegation);
            }
            let table = runs::runs(screen, runs, usize::MAX, &counts);
            format!("{table}\n\n{}", ledger::ledger(screen, delegations))
        }
    }
}

/// The event that led to a state.
pub(crate) fn event(screen: Screen, record: &EventRecord) -> String {
    events::page(screen, std::slice::from_ref(record), false)
}

/// What a check compared.
pub(crate) fn checked(screen: Screen, threads: u64, checked: Rechecked) -> String {
    let rows = [
        ("REPLAY", "what was recorded is what the agents ask for".to_owned()),
        ("THREADS", units::grouped(threads)),
        ("RUNS", units::grouped(checked.runs)),
        ("DELEGATIONS", units::grouped(checked.delegations)),
        ("EFFECTS", units::grouped(checked.effects)),
    ];
    named(screen, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn a_pipe_gets_blocks_and_a_terminal_one_picture() {
        let mut redraw = Redraw::default();
        let pipe = Screen::plain(Some(80));
        assert_eq!(redraw.next(pipe, "seq 1", "one\n"), "== seq 1\none\n");
        assert_eq!(redraw.next(pipe, "seq 2", "two"), "\n== seq 2\ntwo\n");
        let terminal = Screen { is_terminal: true, ..pipe };
        assert_eq!(redraw.next(terminal, "seq 3", "three"), format!("{CLEAR}three\n"));
    }

    #[test]
    fn a_check_says_what_it_compared() {
        let compared = Rechecked { runs: 12, delegations: 34, effects: 5_678 };
        insta::assert_snapshot!(checked(Screen::plain(Some(100)), 7, compared));
    }

    #[test]
    fn a_state_has_the_runs_and_what_they_delegated() {
        let what = What::Thread { runs: samples::runs(), delegations: samples::ledger() };
        let shown = State { seq: 9, position: 12, event_type: "run.status".to_owned(), what };
        insta::assert_snapshot!(state(Screen::plain(Some(100)), &shown));
    }
}
