//! Kinds 10 to 12: cards, head and parts apart, and which card a task's name means.

use domain::{
    card::CardHead,
    ids::{DelegationId, RunId, ThreadId, ToolCallId},
};

use super::{KeyKind, KeyReader, KeyWriter, NameHash, RowKey};
use crate::views::card::CardParts;

/// Kind 10: thread, delegation → card head.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CardHeadKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) delegation_id: DelegationId,
}

impl RowKey for CardHeadKey {
    const KIND: KeyKind = KeyKind::CardHead;
    type Row = CardHead;
    const MOMENTS: Option<KeyKind> = Some(KeyKind::CardHeadThen);

    fn last_seq(row: &CardHead) -> u64 {
        row.entry.last_seq
    }

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).delegation(self.delegation_id);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, delegation_id: parts.delegation()? })
    }
}

/// Kind 11: thread, delegation, number of the chunk, hash of run → the card's parts whose seqs are in
/// the chunk. One run's alone, so that they are sealed with its key whoever else names the delegation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CardPartsKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) delegation_id: DelegationId,
    pub(crate) chunk: u64,
    pub(crate) run: NameHash,
}

impl CardPartsKey {
    /// The parts of a card.
    pub(crate) fn of_card(thread_id: &ThreadId, delegation_id: DelegationId) -> KeyWriter {
        let mut parts = KeyWriter::new(Self::KIND);
        parts.name(thread_id.as_str()).delegation(delegation_id);
        parts
    }
}

impl RowKey for CardPartsKey {
    const KIND: KeyKind = KeyKind::CardParts;
    type Row = CardParts;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).delegation(self.delegation_id).number(self.chunk).hash(&self.run);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        let (thread_id, delegation_id) = (parts.thread()?, parts.delegation()?);
        Some(Self { thread_id, delegation_id, chunk: parts.number()?, run: parts.hash()? })
    }
}

/// Kind 12: thread, hash of run and task → newest delegation id. A `task_id` may repeat even within a
/// run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CardOfTaskKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) task: NameHash,
}

impl CardOfTaskKey {
    /// The key of a task.
    pub(crate) fn new(thread_id: &ThreadId, run_id: &RunId, task_id: &ToolCallId) -> Self {
        Self { thread_id: thread_id.clone(), task: NameHash::of_task(thread_id, run_id, task_id) }
    }
}

impl RowKey for CardOfTaskKey {
    const KIND: KeyKind = KeyKind::CardOfTask;
    type Row = DelegationId;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).hash(&self.task);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, task: parts.hash()? })
    }
}
