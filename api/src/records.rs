//! The answers of the routes for whoever reads a data folder without a server: the same types of
//! the wire, made by the same code.

use contracts::wire::{
    cap, card, delegation, erasure, event, evidence, health, managed, run, subagent, thread, usage_report,
};
use domain::{card::Card, event::RunStatus, ledger::LedgerEntry, pricing::Prices};
use eventlog::RecordedEvent;
use projections::{CapRow, LastRebuild, ReceiptRow, RunRow, ThreadRow, UsageAxis, UsageReport};

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

/// A guard that fired.
pub fn cap(row: &CapRow) -> cap::Cap {
    convert::cap::to_wire(row)
}

/// A receipt with its delegation.
pub fn receipt(row: &ReceiptRow) -> evidence::OwnedReceipt {
    convert::evidence::owned_to_wire(row)
}

/// What was used, all groups of it.
pub fn usage(report: UsageReport, group_by: &[UsageAxis], prices: &Prices) -> usage_report::UsageReport {
    let whole = convert::usage_report::Part { after: None, limit: usize::MAX };
    convert::usage_report::to_wire(report, group_by, prices, &whole)
}

/// How a rebuild ended.
pub fn last_rebuild(last: &LastRebuild) -> health::LastRebuild {
    convert::health::last_rebuild_to_wire(last)
}

/// A record of an event; none when what is stored is not JSON, which is damage.
pub fn event(event: &RecordedEvent) -> Option<event::EventRecord> {
    convert::event::to_wire(event).ok()
}

/// An erasure.
pub fn erasure(erasure: runtime::Erasure) -> erasure::Erasure {
    convert::erasure::to_wire(erasure)
}

/// The erasures of an owner's threads.
pub fn owner_erased(erasures: Vec<erasure::Erasure>) -> erasure::OwnerErased {
    convert::erasure::of_owner(erasures)
}

/// A managed definition.
pub fn managed(one: runtime::Managed) -> managed::ManagedSubagent {
    convert::managed::to_wire(one)
}

/// One version of a managed definition.
pub fn managed_version(version: domain::managed::Version) -> managed::ManagedVersion {
    convert::managed::version_to_wire(version)
}

/// A type of subagent, and whether a lead may delegate to it.
pub fn subagent(resolved: domain::definition::Resolved, available: bool) -> subagent::Subagent {
    convert::subagent::to_wire(resolved, available)
}
