//! An engine that fails, writes half, or dies when it is told to, for tests of what happens then.
//!
//! It wraps another engine and asks one closure at each [`Moment`]. What that closure does to the
//! batch is done, and what it refuses fails.

use std::sync::Arc;

use super::{
    Batch, Direction, Durability, Engine, EngineError, KeyRange, Keyspace, OrderedStore, View, Visit,
};

/// Where an engine can fail.
pub(crate) enum Moment<'a> {
    /// Somebody is about to read.
    Read,
    /// This is about to be written; when it fails, nothing of it is. It may be changed.
    Commit(&'a mut Batch),
    /// It was written durably, and the caller does not know yet.
    Written,
}

/// Says why the engine fails at this moment, if it does.
pub(crate) type Faults = dyn Fn(Moment<'_>) -> Result<(), &'static str> + Send + Sync;

pub(super) struct FaultyEngine {
    pub(super) inner: Engine,
    pub(super) faults: Arc<Faults>,
}

impl FaultyEngine {
    fn meet(&self, moment: Moment<'_>, action: &str) -> Result<(), EngineError> {
        (self.faults)(moment).map_err(|reason| EngineError::new(action, reason))
    }
}

impl OrderedStore for FaultyEngine {
    fn view(&self) -> Box<dyn View + '_> {
        match self.meet(Moment::Read, "read") {
            Ok(()) => self.inner.view(),
            Err(error) => Box::new(Unreadable(error.source.to_string())),
        }
    }

    fn commit(&self, mut batch: Batch, durability: Durability) -> Result<(), EngineError> {
        self.meet(Moment::Commit(&mut batch), "commit a batch")?;
        self.inner.commit(batch, durability)?;
        self.meet(Moment::Written, "commit a batch")
    }

    fn disk_bytes(&self) -> Result<u64, EngineError> {
        self.inner.disk_bytes()
    }
}

/// What is seen of an engine that cannot be read.
struct Unreadable(String);

impl View for Unreadable {
    fn get(&self, _: Keyspace, _: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        Err(EngineError::new("read a key", self.0.as_str()))
    }

    fn scan(&self, _: Keyspace, _: &KeyRange, _: Direction, _: &mut Visit<'_>) -> Result<(), EngineError> {
        Err(EngineError::new("read a range", self.0.as_str()))
    }
}
