//! Kinds 1 and 2: how far a view has got, and what it could not take.

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

/// Kind 2: view name, position → parked event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ParkedKey {
    pub(crate) view: String,
    pub(crate) position: u64,
}

impl ParkedKey {
    /// What a view has parked.
    pub(crate) fn of_view(view: &str) -> KeyWriter {
        let mut parts = KeyWriter::new(Self::KIND);
        parts.name(view);
        parts
    }
}

impl RowKey for ParkedKey {
    const KIND: KeyKind = KeyKind::Parked;
    type Row = ParkedRow;

    fn write(&self, parts: &mut KeyWriter) {
        parts.name(&self.view).number(self.position);
    }

    fn read(parts: &mut KeyReader<'_>) -> Option<Self> {
        Some(Self { view: parts.name()?.to_owned(), position: parts.number()? })
    }
}
