//! The engine on disk. This alone knows fjall.
//!
//! Facts that it rests on (fjall 3.1.13): a batch is buffered unless it asks for a sync, and
//! becomes visible after it; a failed write poisons the database until it is opened again; there
//! is no group commit, so whoever wants one builds large batches.

use std::{io, path::Path};

use fjall::{
    Database, Error, KeyspaceCreateOptions, LsmError, PersistMode, Readable, Snapshot,
    config::BlockSizePolicy,
};

mod creation;

use super::{
    Access, Batch, Direction, Durability, EngineError, Fill, KeyRange, Keyspace, Operation, OrderedStore,
    View, Visit,
};

/// Whether the engine says that its files are not what it wrote.
pub(super) fn is_damage(error: &(dyn std::error::Error + 'static)) -> bool {
    let is_cut =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData);
    match error.downcast_ref() {
        Some(Error::Storage(LsmError::Io(error)) | Error::Io(error)) => is_cut(error),
        Some(
            Error::Storage(
                LsmError::Decompress(_)
                | LsmError::Unrecoverable
                | LsmError::ChecksumMismatch { .. }
                | LsmError::InvalidTag(_)
                | LsmError::InvalidTrailer
                | LsmError::InvalidHeader(_)
                | LsmError::Utf8(_),
            )
            | Error::JournalRecovery(_)
            | Error::Decompress(_)
            | Error::InvalidTrailer
            | Error::InvalidTag(_)
            | Error::Unrecoverable,
        ) => true,
        Some(_) | None => false,
    }
}

/// Blocks of keyspaces that are read in ranges: a page of 100 rows costs half of what it costs
/// with 4 KiB blocks.
const SCANNED_BLOCK_BYTES: u32 = 16 * 1024;
/// Blocks of keyspaces that are read key by key.
const POINTED_BLOCK_BYTES: u32 = 4 * 1024;
/// Cached blocks. A page of one task stays warm; more only helps scans of old data.
const CACHE_BYTES: u64 = 64 * 1024 * 1024;
/// What a keyspace that is read in ranges holds in memory before it becomes a table. Larger ones
/// make less work later, and more memory and journal now; opening reads the journal again.
const SCANNED_MEMTABLE_BYTES: u64 = 32 * 1024 * 1024;
/// The same where entries are small: as many events' worth of them.
const POINTED_MEMTABLE_BYTES: u64 = 8 * 1024 * 1024;
/// Journals at most, before keyspaces that hold them up are made into tables: what opening may have
/// to read.
const JOURNAL_BYTES: u64 = 192 * 1024 * 1024;

pub(super) struct FjallEngine {
    database: Database,
    keyspaces: Vec<(&'static str, fjall::Keyspace)>,
}

impl FjallEngine {
    pub(super) fn open(folder: &Path, keyspaces: &[Keyspace]) -> Result<Self, EngineError> {
        creation::ensure(folder, |unfinished| Self::open_in_place(unfinished, keyspaces)?.sync())?;
        Self::open_in_place(folder, keyspaces)
    }

    fn open_in_place(folder: &Path, keyspaces: &[Keyspace]) -> Result<Self, EngineError> {
        let database = Database::builder(folder)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES)
            .open()
            .map_err(|error| EngineError::new(format!("open the storage in {}", folder.display()), error))?;
        let mut opened = Vec::with_capacity(keyspaces.len());
        for keyspace in keyspaces {
            let handle = database
                .keyspace(keyspace.name, || options(keyspace.access))
                .map_err(|error| EngineError::new(format!("open keyspace {}", keyspace.name), error))?;
            opened.push((keyspace.name, handle));
        }
        Ok(Self { database, keyspaces: opened })
    }

    /// Makes everything durable that was done so far, the keyspaces themselves among it.
    fn sync(&self) -> Result<(), EngineError> {
        self.database
            .persist(PersistMode::SyncAll)
            .map_err(|error| EngineError::new("sync the storage", error))
    }

    fn find(&self, keyspace: Keyspace) -> Result<&fjall::Keyspace, EngineError> {
        self.keyspaces
            .iter()
            .find(|(name, _)| *name == keyspace.name)
            .map(|(_, handle)| handle)
            .ok_or_else(|| EngineError::unknown_keyspace(keyspace))
    }
}

fn options(access: Access) -> KeyspaceCreateOptions {
    let (block_bytes, memtable_bytes) = match access {
        Access::Scanned => (SCANNED_BLOCK_BYTES, SCANNED_MEMTABLE_BYTES),
        Access::Pointed => (POINTED_BLOCK_BYTES, POINTED_MEMTABLE_BYTES),
    };
    KeyspaceCreateOptions::default()
        .data_block_size_policy(BlockSizePolicy::all(block_bytes))
        .max_memtable_size(memtable_bytes)
}

impl OrderedStore for FjallEngine {
    fn view(&self) -> Box<dyn View + '_> {
        Box::new(FjallView { engine: self, snapshot: self.database.snapshot() })
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), EngineError> {
        let mode = match durability {
            Durability::Synced => PersistMode::SyncData,
            Durability::Buffered => PersistMode::Buffer,
        };
        let mut writes = self.database.batch().durability(Some(mode));
        for operation in batch.operations {
            match operation {
                Operation::Put { keyspace, key, value } => writes.insert(self.find(keyspace)?, key, value),
                Operation::Delete { keyspace, key } => writes.remove(self.find(keyspace)?, key),
            }
        }
        writes.commit().map_err(|error| EngineError::new("commit a batch", error))
    }

    fn ingest(&self, keyspace: Keyspace, fill: &mut Fill<'_>) -> Result<(), EngineError> {
        let failed = |error| EngineError::new(format!("load keyspace {}", keyspace.name), error);
        let mut ingestion = self.find(keyspace)?.start_ingestion().map_err(failed)?;
        fill(&mut |key, value| ingestion.write(key, value).map_err(failed))?;
        ingestion.finish().map_err(failed)
    }

    fn disk_bytes(&self) -> Result<u64, EngineError> {
        self.database.disk_space().map_err(|error| EngineError::new("measure the storage", error))
    }
}

struct FjallView<'a> {
    engine: &'a FjallEngine,
    snapshot: Snapshot,
}

impl View for FjallView<'_> {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        let value = self
            .snapshot
            .get(self.engine.find(keyspace)?, key)
            .map_err(|error| EngineError::new(format!("read a key of {}", keyspace.name), error))?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn scan(
        &self,
        keyspace: Keyspace,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), EngineError> {
        let handle = self.engine.find(keyspace)?;
        if range.is_empty() {
            return Ok(());
        }
        let mut pairs = self.snapshot.range(handle, range.clone());
        while let Some(pair) = match direction {
            Direction::Forward => pairs.next(),
            Direction::Backward => pairs.next_back(),
        } {
            let (key, value) = pair
                .into_inner()
                .map_err(|error| EngineError::new(format!("read a range of {}", keyspace.name), error))?;
            if visit(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_says_what_is_damaged() {
        for (error, expected) in [
            (Error::InvalidTrailer, true),
            (Error::Unrecoverable, true),
            (Error::Storage(LsmError::InvalidHeader("block")), true),
            (Error::Storage(LsmError::Io(io::ErrorKind::UnexpectedEof.into())), true),
            (Error::Storage(LsmError::Io(io::ErrorKind::StorageFull.into())), false),
            (Error::Io(io::ErrorKind::PermissionDenied.into()), false),
            (Error::Poisoned, false),
            (Error::Locked, false),
        ] {
            let said = format!("{error:?}");
            assert_eq!(EngineError::new("read", error).is_damage(), expected, "{said}");
        }
    }
}
