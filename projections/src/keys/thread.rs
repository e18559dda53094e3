//! Kinds 3 and 4: threads, and which runs were counted for them.

use domain::ids::{RunId, ThreadId};

use super::{KeyKind, KeyReader, KeyWriter, NameHash, RowKey};
use crate::views::thread::ThreadRow;

/// Kind 3: thread → thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadKey {
    pub(crate) thread_id: ThreadId,
}

impl RowKey for ThreadKey {
    const KIND: KeyKind = KeyKind::Thread;
    type Row = ThreadRow;
    const MOMENTS: Option<KeyKind> = Some(KeyKind::ThreadThen);

    fn last_seq(row: &ThreadRow) -> u64 {
        row.last_seq
    }

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str());
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()? })
    }
}

/// Kind 4: thread, hash of run → nothing. That it is there says that the run was counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadRunKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) run: NameHash,
}

impl ThreadRunKey {
    /// The key of a run.
    pub(crate) fn new(thread_id: &ThreadId, run_id: &RunId) -> Self {
        Self { thread_id: thread_id.clone(), run: NameHash::of_run(thread_id, run_id) }
    }
}

impl RowKey for ThreadRunKey {
    const KIND: KeyKind = KeyKind::ThreadRun;
    type Row = ();

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).hash(&self.run);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, run: parts.hash()? })
    }
}
