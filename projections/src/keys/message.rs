//! Kinds 20 to 23: which events are in the feeds of a thread and of its runs. The rows are marks and
//! numbers; what was said is in the log alone.

use domain::ids::ThreadId;

use super::{KeyKind, KeyReader, KeyWriter, NameHash, RowKey};
use crate::views::messages::MessageMark;

/// Kinds 20 and 21: thread, seq → nothing. That it is there says that the event is a message which
/// readers are shown, or are not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageKey<const IS_VISIBLE: bool> {
    pub(crate) thread_id: ThreadId,
    pub(crate) seq: u64,
}

/// Kind 20.
pub(crate) type VisibleMessageKey = MessageKey<true>;
/// Kind 21.
pub(crate) type HiddenMessageKey = MessageKey<false>;

impl<const IS_VISIBLE: bool> MessageKey<IS_VISIBLE> {
    /// Those of a thread.
    pub(crate) fn of_thread(thread_id: &ThreadId) -> KeyWriter {
        KeyWriter::of_thread(Self::KIND, thread_id)
    }
}

impl<const IS_VISIBLE: bool> RowKey for MessageKey<IS_VISIBLE> {
    const KIND: KeyKind = if IS_VISIBLE { KeyKind::VisibleMessage } else { KeyKind::HiddenMessage };
    type Row = ();

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).number(self.seq);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, seq: parts.number()? })
    }
}

/// Kind 22: thread, hash of run, seq → where the run's messages stand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageOfRunKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) run: NameHash,
    pub(crate) seq: u64,
}

impl MessageOfRunKey {
    /// Those of a run.
    pub(crate) fn of_run(thread_id: &ThreadId, run: &NameHash) -> KeyWriter {
        let mut parts = KeyWriter::new(Self::KIND);
        parts.name(thread_id.as_str()).hash(run);
        parts
    }
}

impl RowKey for MessageOfRunKey {
    const KIND: KeyKind = KeyKind::MessageOfRun;
    type Row = MessageMark;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).hash(&self.run).number(self.seq);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, run: parts.hash()?, seq: parts.number()? })
    }
}

/// Kind 23: thread, hash of run → where the run's messages stand now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunMessagesKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) run: NameHash,
}

impl RunMessagesKey {
    /// Those of a thread.
    pub(crate) fn of_thread(thread_id: &ThreadId) -> KeyWriter {
        KeyWriter::of_thread(Self::KIND, thread_id)
    }
}

impl RowKey for RunMessagesKey {
    const KIND: KeyKind = KeyKind::RunMessages;
    type Row = MessageMark;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).hash(&self.run);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, run: parts.hash()? })
    }
}
