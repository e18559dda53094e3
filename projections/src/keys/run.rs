//! Kinds 5 and 6: runs, and their order on a thread.

use domain::ids::{RunId, ThreadId};

use super::{KeyKind, KeyReader, KeyWriter, NameHash, RowKey};
use crate::views::run::RunRow;

/// Kind 5: thread, hash of run → run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) run: NameHash,
}

impl RunKey {
    /// The key of a run.
    pub(crate) fn new(thread_id: &ThreadId, run_id: &RunId) -> Self {
        Self { thread_id: thread_id.clone(), run: NameHash::of_run(thread_id, run_id) }
    }
}

impl RowKey for RunKey {
    const KIND: KeyKind = KeyKind::Run;
    type Row = RunRow;
    const MOMENTS: Option<KeyKind> = Some(KeyKind::RunThen);

    fn last_seq(row: &RunRow) -> u64 {
        row.last_seq
    }

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).hash(&self.run);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, run: parts.hash()? })
    }
}

/// Kind 6: thread, first seq → run id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunOrderKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) first_seq: u64,
}

impl RunOrderKey {
    /// The runs of a thread.
    pub(crate) fn of_thread(thread_id: &ThreadId) -> KeyWriter {
        KeyWriter::of_thread(Self::KIND, thread_id)
    }
}

impl RowKey for RunOrderKey {
    const KIND: KeyKind = KeyKind::RunOrder;
    type Row = RunId;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).number(self.first_seq);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, first_seq: parts.number()? })
    }
}
