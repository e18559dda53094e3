//! A thread folded event by event, so that each of its states can be looked at: by the functions that
//! the views are made with.

use std::collections::BTreeMap;

use domain::{
    event::Logged,
    ids::{DelegationId, RunId},
    ledger::LedgerEntry,
};

use crate::views::{ledger::delegation_of, run::RunRow};

/// The runs and delegations after the last event that was taken.
#[derive(Debug, Default)]
pub struct ThreadReplay {
    runs: BTreeMap<RunId, RunRow>,
    delegations: BTreeMap<DelegationId, LedgerEntry>,
}

impl ThreadReplay {
    /// Takes the next event of the thread.
    pub fn take(&mut self, event: &Logged) {
        if let Some(run_id) = &event.scope.run_id
            && RunRow::check(event).is_ok()
            && let Some(row) = RunRow::fold(self.runs.remove(run_id), event)
        {
            self.runs.insert(run_id.clone(), row);
        }
        if let Some(id) = delegation_of(event)
            && let Some(entry) = LedgerEntry::fold(self.delegations.remove(&id), event)
        {
            self.delegations.insert(id, entry);
        }
    }

    /// The runs, newest first.
    pub fn runs(&self) -> Vec<&RunRow> {
        let mut runs: Vec<_> = self.runs.values().collect();
        runs.sort_by_key(|row| std::cmp::Reverse(row.first_seq));
        runs
    }

    /// The delegations, in the order in which they were asked for.
    pub fn delegations(&self) -> Vec<&LedgerEntry> {
        let mut entries: Vec<_> = self.delegations.values().collect();
        entries.sort_by_key(|entry| entry.first_seq);
        entries
    }
}
