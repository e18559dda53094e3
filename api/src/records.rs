//! The answers of the routes for whoever reads a data folder without a server: the same types of
//! the wire, made by the same code.

use contracts::wire::{card, delegation, event, run, thread};
use domain::{card::Card, event::RunStatus, ledger::LedgerEntry};
use eventlog::RecordedEvent;
use projections::{RunRow, ThreadRow};

use crate::convert;

/// A thread, with the status of its newest run.
pub fn thread(row: ThreadRow, newest_run: Option<RunStatus>) -> thread::Thread {
    convert::thread::to_wire(row, newest_run)
}

/// A run.
pub fn run(row: RunRow) -> run::Run {
    convert::run::to_wire(row)
}

/// A row of the ledger.
pub fn delegation(entry: &LedgerEntry) -> delegation::Delegation {
    convert::delegation::to_wire(entry)
}

/// A card.
pub fn card(card: Card) -> card::Card {
    convert::card::to_wire(card)
}

/// A record of an event; none when what is stored is not JSON, which is damage.
pub fn event(event: &RecordedEvent) -> Option<event::EventRecord> {
    convert::event::to_wire(event).ok()
}
