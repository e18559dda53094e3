//! Writes that happen together or not at all.

use super::Keyspace;

/// One write.
#[derive(Clone)]
pub(crate) enum Operation {
    Put { keyspace: Keyspace, key: Vec<u8>, value: Vec<u8> },
    PutTwice { places: [(Keyspace, Vec<u8>); 2], value: Vec<u8> },
    Delete { keyspace: Keyspace, key: Vec<u8> },
}

/// Writes over any of an engine's keyspaces. Of two writes to one key the later counts.
#[derive(Clone, Default)]
pub struct Batch {
    pub(crate) operations: Vec<Operation>,
}

impl Batch {
    /// A batch with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a value under a key, in place of any before.
    pub fn put(&mut self, keyspace: Keyspace, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.operations.push(Operation::Put { keyspace, key: key.into(), value: value.into() });
    }

    /// Puts one value under two keys, and holds it once.
    pub(crate) fn put_twice(&mut self, places: [(Keyspace, Vec<u8>); 2], value: Vec<u8>) {
        self.operations.push(Operation::PutTwice { places, value });
    }

    /// Removes a key; that it is absent is no error.
    pub fn delete(&mut self, keyspace: Keyspace, key: impl Into<Vec<u8>>) {
        self.operations.push(Operation::Delete { keyspace, key: key.into() });
    }

    /// How many writes there are.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}
