//! The ledger: what has been delegated, and what came of it. The entry and its fold are the
//! domain's; here they are arranged for reading.

use domain::{
    event::{Event, Logged},
    ids::{DelegationId, RunId, ThreadId},
    ledger::LedgerEntry,
};
use eventlog::{Seq, engine::Direction};

use crate::{
    as_of::entry_as_of,
    keys::{
        KeyKind,
        ledger::{LedgerEntryKey, LedgerOfRunKey, LedgerOrderKey},
    },
    projections::Projections,
    rows::Rows,
    store::{RowError, Snapshot},
    view::{FoldError, View},
    views::listing::{Listed, Listing},
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
    /// The delegations of a thread, or of one of its runs, in the order of their first event.
    pub fn ledger(&self, thread_id: &ThreadId, run_id: Option<&RunId>) -> Result<Vec<LedgerEntry>, RowError> {
        Ok(self.ledger_part(thread_id, run_id, Listing::WHOLE)?.rows)
    }

    /// A part of the same: those whose first event is after a seq, perhaps as they were at a moment.
    pub fn ledger_part(
        &self,
        thread_id: &ThreadId,
        run_id: Option<&RunId>,
        part: Listing,
    ) -> Result<Listed<LedgerEntry>, RowError> {
        let snapshot = self.0.store.snapshot();
        let last = part.as_of.map_or(u64::MAX, Seq::get);
        part.list(|after, rows| {
            // An entry of an earlier moment may have to be folded: no more of them than are wanted.
            let rows = rows.min(part.limit.saturating_add(1));
            let seqs = (after.get().saturating_add(1), last);
            let found = delegations(&snapshot, thread_id, run_id, seqs, rows)?;
            let mut entries = Vec::with_capacity(found.len());
            for (_, delegation_id) in &found {
                let key = LedgerEntryKey { thread_id: thread_id.clone(), delegation_id: *delegation_id };
                match (snapshot.get(&key)?, part.as_of) {
                    (Some(now), Some(seq)) => entries.extend(entry_as_of(self, now, thread_id, seq)?),
                    (now, _) => entries.extend(now),
                }
            }
            Ok((entries, found.last().map(|(seq, _)| Seq::new(*seq))))
        })
    }
}

/// Those whose first event has one of these seqs, both included, in the order of these events.
pub(crate) fn delegations(
    snapshot: &Snapshot<'_>,
    thread_id: &ThreadId,
    run_id: Option<&RunId>,
    (first, last): (u64, u64),
    limit: usize,
) -> Result<Vec<(u64, DelegationId)>, RowError> {
    if first > last {
        return Ok(Vec::new());
    }
    let forward = Direction::Forward;
    match run_id {
        Some(run_id) => {
            let range = LedgerOfRunKey::of_run(thread_id, run_id).range_within(first, last);
            let rows = snapshot.page::<LedgerOfRunKey>(&range, forward, limit)?;
            Ok(rows.into_iter().map(|(key, id)| (key.first_seq, id)).collect())
        }
        None => {
            let range = LedgerOrderKey::of_thread(thread_id).range_within(first, last);
            let rows = snapshot.page::<LedgerOrderKey>(&range, forward, limit)?;
            Ok(rows.into_iter().map(|(key, id)| (key.first_seq, id)).collect())
        }
    }
}
