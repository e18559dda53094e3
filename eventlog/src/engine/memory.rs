//! The engine that keeps everything in memory.

use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock, RwLockReadGuard},
};

use super::{
    Batch, Direction, Durability, EngineError, KeyRange, Keyspace, Operation, OrderedStore, View, Visit,
};

type Maps = BTreeMap<&'static str, BTreeMap<Vec<u8>, Vec<u8>>>;

pub(super) struct MemoryEngine(RwLock<Maps>);

impl MemoryEngine {
    pub(super) fn new(keyspaces: &[Keyspace]) -> Self {
        Self(RwLock::new(keyspaces.iter().map(|keyspace| (keyspace.name, BTreeMap::new())).collect()))
    }
}

impl OrderedStore for MemoryEngine {
    fn view(&self) -> Box<dyn View + '_> {
        Box::new(MemoryView(self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }

    fn commit(&self, batch: Batch, _: Durability) -> Result<(), EngineError> {
        let mut maps = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for operation in &batch.operations {
            match operation {
                Operation::Put { keyspace, .. } | Operation::Delete { keyspace, .. } => {
                    find(&maps, *keyspace)?;
                }
                Operation::PutTwice { places: [(one, _), (other, _)], .. } => {
                    find(&maps, *one)?;
                    find(&maps, *other)?;
                }
            }
        }
        for operation in batch.operations {
            match operation {
                Operation::Put { keyspace, key, value } => {
                    maps.entry(keyspace.name).or_default().insert(key, value);
                }
                Operation::PutTwice { places: [(one, one_key), (other, other_key)], value } => {
                    maps.entry(one.name).or_default().insert(one_key, value.clone());
                    maps.entry(other.name).or_default().insert(other_key, value);
                }
                Operation::Delete { keyspace, key } => {
                    maps.entry(keyspace.name).or_default().remove(&key);
                }
            }
        }
        Ok(())
    }

    fn disk_bytes(&self) -> Result<u64, EngineError> {
        Ok(0)
    }

    #[cfg(test)]
    fn fork(&self) -> Option<super::Engine> {
        let maps = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        Some(super::Engine(std::sync::Arc::new(Self(RwLock::new(maps)))))
    }
}

/// Holds the lock for as long as somebody reads, which makes it consistent.
struct MemoryView<'a>(RwLockReadGuard<'a, Maps>);

impl View for MemoryView<'_> {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        Ok(find(&self.0, keyspace)?.get(key).cloned())
    }

    fn scan(
        &self,
        keyspace: Keyspace,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), EngineError> {
        let map = find(&self.0, keyspace)?;
        if range.is_empty() {
            return Ok(());
        }
        let mut pairs = map.range(range.clone());
        while let Some((key, value)) = match direction {
            Direction::Forward => pairs.next(),
            Direction::Backward => pairs.next_back(),
        } {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn find(maps: &Maps, keyspace: Keyspace) -> Result<&BTreeMap<Vec<u8>, Vec<u8>>, EngineError> {
    maps.get(keyspace.name).ok_or_else(|| EngineError::unknown_keyspace(keyspace))
}
