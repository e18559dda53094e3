//! Kinds 20 to 24: which events are in the feeds of a thread and of its runs. The rows are marks and
//! numbers; what was said is in the log alone.

use domain::ids::ThreadId;

use super::{KeyKind, KeyReader, KeyWriter, NameHash, RowKey};

/// Kind 20: thread, seq, hash of run → nothing. That it is there says that the event is a message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) seq: u64,
    pub(crate) run: NameHash,
}

impl MessageKey {
    /// Those of a thread.
    pub(crate) fn of_thread(thread_id: &ThreadId) -> KeyWriter {
        let mut parts = KeyWriter::new(Self::KIND);
        parts.name(thread_id.as_str());
        parts
    }
}

impl RowKey for MessageKey {
    const KIND: KeyKind = KeyKind::Message;
    type Row = ();

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).number(self.seq).hash(&self.run);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, seq: parts.number()?, run: parts.hash()? })
    }
}

/// Kind 21: thread, seq, hash of run → nothing. Of the messages those that are shown to readers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VisibleMessageKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) seq: u64,
    pub(crate) run: NameHash,
}

impl VisibleMessageKey {
    /// Those of a thread.
    pub(crate) fn of_thread(thread_id: &ThreadId) -> KeyWriter {
        let mut parts = KeyWriter::new(Self::KIND);
        parts.name(thread_id.as_str());
        parts
    }
}

impl RowKey for VisibleMessageKey {
    const KIND: KeyKind = KeyKind::VisibleMessage;
    type Row = ();

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).number(self.seq).hash(&self.run);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, seq: parts.number()?, run: parts.hash()? })
    }
}

/// Kind 22: thread, hash of run, seq → the message's number in its run, from 1.
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
    type Row = u64;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).hash(&self.run).number(self.seq);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, run: parts.hash()?, seq: parts.number()? })
    }
}

/// Kind 23: thread, hash of run, seq → nothing. The replies that are shown to readers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AnswerKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) run: NameHash,
    pub(crate) seq: u64,
}

impl AnswerKey {
    /// Those of a run.
    pub(crate) fn of_run(thread_id: &ThreadId, run: &NameHash) -> KeyWriter {
        let mut parts = KeyWriter::new(Self::KIND);
        parts.name(thread_id.as_str()).hash(run);
        parts
    }
}

impl RowKey for AnswerKey {
    const KIND: KeyKind = KeyKind::Answer;
    type Row = ();

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).hash(&self.run).number(self.seq);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, run: parts.hash()?, seq: parts.number()? })
    }
}

/// Kind 24: thread, hash of run → how many messages it has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunMessagesKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) run: NameHash,
}

impl RunMessagesKey {
    /// Those of a thread.
    pub(crate) fn of_thread(thread_id: &ThreadId) -> KeyWriter {
        let mut parts = KeyWriter::new(Self::KIND);
        parts.name(thread_id.as_str());
        parts
    }
}

impl RowKey for RunMessagesKey {
    const KIND: KeyKind = KeyKind::RunMessages;
    type Row = u64;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).hash(&self.run);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, run: parts.hash()? })
    }
}
