//! Kind 28: guards that fired.

use domain::ids::ThreadId;

use super::{KeyKind, KeyReader, KeyWriter, RowKey};
use crate::views::caps::CapRow;

/// Kind 28: thread, seq → cap.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CapKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) seq: u64,
}

impl CapKey {
    /// Those of a thread.
    pub(crate) fn of_thread(thread_id: &ThreadId) -> KeyWriter {
        KeyWriter::of_thread(Self::KIND, thread_id)
    }
}

impl RowKey for CapKey {
    const KIND: KeyKind = KeyKind::Cap;
    type Row = CapRow;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).number(self.seq);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, seq: parts.number()? })
    }
}
