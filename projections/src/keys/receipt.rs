//! Kinds 29 and 30: receipts of all delegations, and those of a run.

use domain::ids::ThreadId;

use super::{KeyKind, KeyReader, KeyWriter, NameHash, RowKey};
use crate::views::receipts::Receipts;

/// Kind 29: thread, number of the chunk, hash of run → the run's receipts whose seqs are in the chunk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReceiptsKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) chunk: u64,
    pub(crate) run: NameHash,
}

impl ReceiptsKey {
    /// Those of a thread.
    pub(crate) fn of_thread(thread_id: &ThreadId) -> KeyWriter {
        KeyWriter::of_thread(Self::KIND, thread_id)
    }
}

impl RowKey for ReceiptsKey {
    const KIND: KeyKind = KeyKind::Receipts;
    type Row = Receipts;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).number(self.chunk).hash(&self.run);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, chunk: parts.number()?, run: parts.hash()? })
    }
}

/// Kind 30: thread, hash of run, number of the chunk → nothing. That it is there says that the run has
/// receipts there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReceiptsOfRunKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) run: NameHash,
    pub(crate) chunk: u64,
}

impl ReceiptsOfRunKey {
    /// Those of a run.
    pub(crate) fn of_run(thread_id: &ThreadId, run: &NameHash) -> KeyWriter {
        let mut parts = KeyWriter::new(Self::KIND);
        parts.name(thread_id.as_str()).hash(run);
        parts
    }
}

impl RowKey for ReceiptsOfRunKey {
    const KIND: KeyKind = KeyKind::ReceiptsOfRun;
    type Row = ();

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).hash(&self.run).number(self.chunk);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, run: parts.hash()?, chunk: parts.number()? })
    }
}
