//! Ordered keys and values with an atomic, durable commit: all that the log and the views need
//! from a storage engine.
//!
//! It must not know what is stored. Two engines stand behind one small object-safe trait: fjall on
//! disk, and memory for tests and for work that is thrown away. Everyone else sees the plain
//! struct [`Engine`].

use std::{error::Error, ops::ControlFlow, path::Path, sync::Arc};

mod batch;
#[cfg(test)]
pub(crate) mod faulty;
mod fjall;
mod memory;
mod range;

#[cfg(test)]
mod tests;

pub use batch::Batch;
pub(crate) use batch::Operation;
pub(crate) use fjall::journal;
pub use range::KeyRange;

/// Names a keyspace: its own ordered map. A batch may write to several atomically.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Keyspace {
    /// The name on disk.
    pub name: &'static str,
    /// How it is mostly read. Fixed when the keyspace is first created.
    pub access: Access,
}

/// How a keyspace is mostly read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// In ranges: large blocks.
    Scanned,
    /// Key by key: small blocks.
    Pointed,
}

/// What must be true when a commit returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It survives power loss, and was not visible before it did.
    Synced,
    /// It survives the end of the process, but not power loss.
    Buffered,
}

/// The order in which a range is visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the least key.
    Forward,
    /// From the greatest key.
    Backward,
}

/// A storage engine failed.
#[derive(Debug, thiserror::Error)]
#[error("could not {action}")]
pub struct EngineError {
    /// What was being done.
    pub action: String,
    /// Why it failed.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

impl EngineError {
    fn new(action: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { action: action.into(), source: source.into() }
    }

    /// Whether the engine found that its files are not what it wrote.
    pub fn is_damage(&self) -> bool {
        fjall::is_damage(&*self.source)
    }

    fn unknown_keyspace(keyspace: Keyspace) -> Self {
        Self::new(
            format!("use keyspace {}", keyspace.name),
            "it was not among the keyspaces that the engine was opened with",
        )
    }
}

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// Is shown each key and value of a range, and says whether it wants more.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// A consistent state of all keyspaces, as of the moment the view was made.
pub trait View {
    /// The value under a key.
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError>;

    /// Shows each pair of the range to `visit`, in order, until it breaks off.
    fn scan(
        &self,
        keyspace: Keyspace,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), EngineError>;

    /// The first `limit` pairs of the range.
    fn page(
        &self,
        keyspace: Keyspace,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>, EngineError> {
        let mut pairs = Vec::new();
        if limit == 0 {
            return Ok(pairs);
        }
        self.scan(keyspace, range, direction, &mut |key, value| {
            pairs.push((key.to_vec(), value.to_vec()));
            if pairs.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(pairs)
    }
}

/// What a storage engine can do.
trait OrderedStore: Send + Sync {
    fn view(&self) -> Box<dyn View + '_>;
    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), EngineError>;
    fn disk_bytes(&self) -> Result<u64, EngineError>;
    #[cfg(test)]
    fn flush(&self) -> Result<(), EngineError> {
        Ok(())
    }
    /// A copy that goes its own way; none if the engine cannot be copied.
    #[cfg(test)]
    fn fork(&self) -> Option<Engine> {
        None
    }
}

/// A storage engine. Cheap to clone; the last clone that is dropped closes it.
#[derive(Clone)]
pub struct Engine(Arc<dyn OrderedStore>);

impl Engine {
    /// Opens or creates an engine in its own folder.
    pub fn open(folder: &Path, keyspaces: &[Keyspace]) -> Result<Self, EngineError> {
        Ok(Self(Arc::new(fjall::FjallEngine::open(folder, keyspaces)?)))
    }

    /// Makes an engine that keeps nothing when it is dropped.
    pub fn in_memory(keyspaces: &[Keyspace]) -> Self {
        Self(Arc::new(memory::MemoryEngine::new(keyspaces)))
    }

    /// A consistent state to read from. Keep it only while reading: in memory it holds writers
    /// up, and on disk it holds back old versions. Never ask for a second one while holding one.
    pub fn view(&self) -> Box<dyn View + '_> {
        self.0.view()
    }

    /// The value under a key, as of now.
    pub fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.view().get(keyspace, key)
    }

    /// Writes all of the batch or nothing. After an error nobody knows which: stop writing.
    pub fn commit(&self, batch: Batch, durability: Durability) -> Result<(), EngineError> {
        self.0.commit(batch, durability)
    }

    /// Writes what is in memory to tables, as happens by itself when there is enough.
    #[cfg(test)]
    pub(crate) fn flush(&self) -> Result<(), EngineError> {
        self.0.flush()
    }

    /// The same engine, but what the closure refuses fails.
    #[cfg(test)]
    pub(crate) fn faulty(inner: Self, faults: Arc<faulty::Faults>) -> Self {
        Self(Arc::new(faulty::FaultyEngine { inner, faults }))
    }

    /// A copy of an engine in memory, which goes its own way.
    #[cfg(test)]
    pub(crate) fn fork(&self) -> Option<Self> {
        self.0.fork()
    }

    /// Space on disk, in bytes; 0 in memory.
    pub fn disk_bytes(&self) -> Result<u64, EngineError> {
        self.0.disk_bytes()
    }
}
