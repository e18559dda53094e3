//! Rows carry what was said on a thread, and are forgotten with it: each is sealed with its
//! thread's key before the engine has it. A row whose key was destroyed is not there.

use eventlog::Sealer;

use crate::{
    keys::{self, KeyKind},
    store::RowError,
};

/// What rows are sealed with.
#[derive(Clone, Default)]
pub(crate) enum Sealing {
    /// Nothing: rows of a store that belongs to no log yet.
    #[default]
    Plain,
    /// The keys of the log that they are made of.
    With(Sealer),
}

impl Sealing {
    /// A row as the engine gets it. What belongs to no thread stays as it is.
    pub(crate) fn seal(&self, key: &[u8], row: Vec<u8>) -> Vec<u8> {
        match (self, keys::thread_of(key)) {
            (Self::With(sealer), Some(thread_id)) => sealer.seal(&thread_id, &row),
            (Self::Plain, _) | (Self::With(_), None) => row,
        }
    }

    /// What [`Self::seal`] was given; none if the thread was erased. A row that does not open
    /// although its thread is there is damaged.
    pub(crate) fn open(
        &self,
        kind: KeyKind,
        key: &[u8],
        sealed: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, RowError> {
        let (Self::With(sealer), Some(thread_id)) = (self, keys::thread_of(key)) else {
            return Ok(Some(sealed));
        };
        match sealer.open(&thread_id, &sealed) {
            Some(row) => Ok(Some(row)),
            None if sealer.is_erased(&thread_id) => Ok(None),
            None => Err(RowError::Unopened { kind: format!("{kind:?}") }),
        }
    }
}
