//! The ledger: what has been delegated, and what came of it. The entry and its fold are the
//! domain's; here they are arranged for reading.

use domain::{
    event::{Event, Logged},
    ids::{DelegationId, RunId, ThreadId},
    ledger::LedgerEntry,
};
use eventlog::{Seq, engine::Direction};

use crate::{
    keys::{
        KeyKind,
        ledger::{LedgerEntryKey, LedgerOfRunKey, LedgerOrderKey},
    },
    projections::Projections,
    rows::Rows,
    store::{RowError, Snapshot},
    view::{FoldError, View},
};

/// The delegation that an event is about, if it is one that a ledger or a card follows. What
/// somebody else recorded without our id is about none.
pub(crate) fn delegation_of(event: &Logged) -> Option<DelegationId> {
    match &event.event {
        Event::Delegation(_) | Event::Subagent(_) => event.scope.delegation_id,
        Event::Thread(_)
        | Event::Run(_)
        | Event::Model(_)
        | Event::Tool(_)
        | Event::Registry(_)
        | Event::Foreign(_) => None,
    }
}

/// The view of all delegations.
pub(crate) struct LedgerView;

impl View for LedgerView {
    const NAME: &'static str = "ledger";
    const VERSION: u32 = 3;
    const KINDS: &'static [KeyKind] = &[KeyKind::LedgerEntry, KeyKind::LedgerOrder, KeyKind::LedgerOfRun];

    fn apply(&self, event: &Logged, rows: &mut Rows<'_>) -> Result<(), FoldError> {
        let Some(delegation_id) = delegation_of(event) else { return Ok(()) };
        let thread_id = event.thread_id.clone();
        let key = LedgerEntryKey { thread_id: thread_id.clone(), delegation_id };
        if let Some(entry) = rows.update(&key, |entry| LedgerEntry::fold(entry, event))? {
            let (run_id, first_seq) = (entry.run_id.clone(), entry.first_seq);
            rows.put(&LedgerOrderKey { thread_id: thread_id.clone(), first_seq }, delegation_id);
            rows.put(&LedgerOfRunKey::new(&thread_id, &run_id, first_seq), delegation_id);
        }
        Ok(())
    }
}

impl Projections {
    /// The delegations of a thread, or of one of its runs, in the order of their first event. Their
    /// number is bounded by the limit of delegations per run.
    pub fn ledger(&self, thread_id: &ThreadId, run_id: Option<&RunId>) -> Result<Vec<LedgerEntry>, RowError> {
        let snapshot = self.0.store.snapshot();
        let mut entries = Vec::new();
        for delegation_id in delegations(&snapshot, thread_id, run_id, Seq::new(u64::MAX))? {
            entries.extend(snapshot.get(&LedgerEntryKey { thread_id: thread_id.clone(), delegation_id })?);
        }
        Ok(entries)
    }
}

/// Those whose first event is not after a seq, in the order of these events.
pub(crate) fn delegations(
    snapshot: &Snapshot<'_>,
    thread_id: &ThreadId,
    run_id: Option<&RunId>,
    last: Seq,
) -> Result<Vec<DelegationId>, RowError> {
    let (forward, all) = (Direction::Forward, usize::MAX);
    match run_id {
        Some(run_id) => {
            let range = LedgerOfRunKey::of_run(thread_id, run_id).range_within(0, last.get());
            let rows = snapshot.page::<LedgerOfRunKey>(&range, forward, all)?;
            Ok(rows.into_iter().map(|(_, id)| id).collect())
        }
        None => {
            let range = LedgerOrderKey::of_thread(thread_id).range_within(0, last.get());
            let rows = snapshot.page::<LedgerOrderKey>(&range, forward, all)?;
            Ok(rows.into_iter().map(|(_, id)| id).collect())
        }
    }
}
