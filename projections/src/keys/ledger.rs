//! Kinds 7 to 9: ledger entries, and their order on a thread and in a run.

use domain::{
    ids::{DelegationId, RunId, ThreadId},
    ledger::LedgerEntry,
};

use super::{KeyKind, KeyReader, KeyWriter, NameHash, RowKey};

/// Kind 7: thread, delegation → ledger entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LedgerEntryKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) delegation_id: DelegationId,
}

impl RowKey for LedgerEntryKey {
    const KIND: KeyKind = KeyKind::LedgerEntry;
    type Row = LedgerEntry;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).delegation(self.delegation_id);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, delegation_id: parts.delegation()? })
    }
}

/// Kind 8: thread, first seq → delegation id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LedgerOrderKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) first_seq: u64,
}

impl LedgerOrderKey {
    /// The delegations of a thread.
    pub(crate) fn of_thread(thread_id: &ThreadId) -> KeyWriter {
        KeyWriter::of_thread(Self::KIND, thread_id)
    }
}

impl RowKey for LedgerOrderKey {
    const KIND: KeyKind = KeyKind::LedgerOrder;
    type Row = DelegationId;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).number(self.first_seq);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, first_seq: parts.number()? })
    }
}

/// Kind 9: thread, hash of run, first seq → delegation id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LedgerOfRunKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) run: NameHash,
    pub(crate) first_seq: u64,
}

impl LedgerOfRunKey {
    /// The key of a delegation of a run.
    pub(crate) fn new(thread_id: &ThreadId, run_id: &RunId, first_seq: u64) -> Self {
        Self { thread_id: thread_id.clone(), run: NameHash::of_run(thread_id, run_id), first_seq }
    }

    /// The delegations of a run.
    pub(crate) fn of_run(thread_id: &ThreadId, run_id: &RunId) -> KeyWriter {
        let mut parts = KeyWriter::new(Self::KIND);
        parts.name(thread_id.as_str()).hash(&NameHash::of_run(thread_id, run_id));
        parts
    }
}

impl RowKey for LedgerOfRunKey {
    const KIND: KeyKind = KeyKind::LedgerOfRun;
    type Row = DelegationId;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).hash(&self.run).number(self.first_seq);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, run: parts.hash()?, first_seq: parts.number()? })
    }
}
