//! Kinds 29 and 30: receipts of all delegations, and those of a run.

use domain::ids::ThreadId;

use super::{KeyKind, KeyReader, KeyWriter, NameHash, RowKey};
use crate::views::receipts::ReceiptRow;

/// Kind 29: thread, seq → receipt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReceiptKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) seq: u64,
}

impl ReceiptKey {
    /// Those of a thread.
    pub(crate) fn of_thread(thread_id: &ThreadId) -> KeyWriter {
        KeyWriter::of_thread(Self::KIND, thread_id)
    }
}

impl RowKey for ReceiptKey {
    const KIND: KeyKind = KeyKind::Receipt;
    type Row = ReceiptRow;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).number(self.seq);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, seq: parts.number()? })
    }
}

/// Kind 30: thread, hash of run, seq → nothing. That it is there says that the run has a receipt there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReceiptOfRunKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) run: NameHash,
    pub(crate) seq: u64,
}

impl ReceiptOfRunKey {
    /// Those of a run.
    pub(crate) fn of_run(thread_id: &ThreadId, run: &NameHash) -> KeyWriter {
        let mut parts = KeyWriter::new(Self::KIND);
        parts.name(thread_id.as_str()).hash(run);
        parts
    }
}

impl RowKey for ReceiptOfRunKey {
    const KIND: KeyKind = KeyKind::ReceiptOfRun;
    type Row = ();

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).hash(&self.run).number(self.seq);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, run: parts.hash()?, seq: parts.number()? })
    }
}
