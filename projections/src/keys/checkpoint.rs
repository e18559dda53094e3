//! Kinds 1 and 2: how far a view has got, and what it could not take.

use domain::ids::ThreadId;
use eventlog::engine::KeyRange;

use super::{KeyKind, KeyReader, KeyWriter, RowKey};
use crate::checkpoint::{Checkpoint, ParkedRow};

/// Kind 1: view name → checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CheckpointKey {
    pub(crate) view: String,
}

impl RowKey for CheckpointKey {
    const KIND: KeyKind = KeyKind::Checkpoint;
    type Row = Checkpoint;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(&self.view);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { view: parts.name()?.to_owned() })
    }
}

/// Kind 2: view name, position, thread → parked event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ParkedKey {
    pub(crate) view: String,
    pub(crate) position: u64,
    pub(crate) thread_id: ThreadId,
}

impl ParkedKey {
    /// What a view has parked.
    pub(crate) fn of_view(view: &str) -> KeyWriter {
        let mut parts = KeyWriter::new(Self::KIND);
        parts.name(view);
        parts
    }

    /// What a view has parked after a position.
    pub(crate) fn after(view: &str, position: u64) -> KeyRange {
        let of_view = Self::of_view(view);
        let mut first = Self::of_view(view);
        first.number(position.saturating_add(1));
        of_view.range_from(&first)
    }
}

impl RowKey for ParkedKey {
    const KIND: KeyKind = KeyKind::Parked;
    type Row = ParkedRow;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(&self.view).number(self.position).name(self.thread_id.as_str());
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { view: parts.name()?.to_owned(), position: parts.number()?, thread_id: parts.thread()? })
    }
}
