//! Kinds 25 to 27: who calls which model, and what has been used.

use domain::ids::{DelegationId, ThreadId};

use super::{KeyKind, KeyReader, KeyWriter, NameHash, RowKey};
use crate::views::usage::{LeadModel, SubagentModel, UsageCell};

/// Kind 25: thread, hash of run → the name of the lead's model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LeadModelKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) run: NameHash,
}

impl RowKey for LeadModelKey {
    const KIND: KeyKind = KeyKind::LeadModel;
    type Row = LeadModel;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).hash(&self.run);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, run: parts.hash()? })
    }
}

/// Kind 26: thread, hash of run, delegation → the subagent's model and type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SubagentModelKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) run: NameHash,
    pub(crate) delegation_id: DelegationId,
}

impl RowKey for SubagentModelKey {
    const KIND: KeyKind = KeyKind::SubagentModel;
    type Row = SubagentModel;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).hash(&self.run).delegation(self.delegation_id);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        let (thread_id, run) = (parts.thread()?, parts.hash()?);
        Some(Self { thread_id, run, delegation_id: parts.delegation()? })
    }
}

/// Kind 27: thread, hash of run, hash of day, model and caller → what was used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UsageCellKey {
    pub(crate) thread_id: ThreadId,
    pub(crate) run: NameHash,
    pub(crate) cell: NameHash,
}

impl UsageCellKey {
    /// Those of a run, of a thread, or of all threads.
    pub(crate) fn of(thread_id: Option<&ThreadId>, run: Option<&NameHash>) -> KeyWriter {
        let mut parts = KeyWriter::new(Self::KIND);
        if let Some(thread_id) = thread_id {
            parts.name(thread_id.as_str());
            if let Some(run) = run {
                parts.hash(run);
            }
        }
        parts
    }
}

impl RowKey for UsageCellKey {
    const KIND: KeyKind = KeyKind::UsageCell;
    type Row = UsageCell;
    const MOMENTS: Option<KeyKind> = Some(KeyKind::UsageCellThen);

    fn last_seq(row: &UsageCell) -> u64 {
        row.last_seq
    }

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(self.thread_id.as_str()).hash(&self.run).hash(&self.cell);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { thread_id: parts.thread()?, run: parts.hash()?, cell: parts.hash()? })
    }
}
