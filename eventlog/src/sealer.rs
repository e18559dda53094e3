//! Sealing for what is kept beside the log: rows of views carry text of threads too, and must be
//! forgotten with them.

use std::sync::Arc;

use domain::ids::{RunId, ThreadId};

use crate::{
    keyring::{Found, Keyring, Nonce, ScopeId},
    keys,
    seal::{self, Purpose},
    secret::SecretKey,
    stream_id::StreamId,
};

/// What stands before a row. Stored: never renumber.
const PLAIN: u8 = 0;
const SEALED: u8 = 1;
const ERASED: u8 = 2;

/// Seals bytes with the keys of threads and runs. Cheap to clone.
#[derive(Clone)]
pub struct Sealer(Arc<Keyring>);

impl Sealer {
    pub(crate) fn new(keyring: Arc<Keyring>) -> Self {
        Self(keyring)
    }

    #[cfg(test)]
    pub(crate) fn keyring(&self) -> &Keyring {
        &self.0
    }

    /// Seals bytes with the thread's key. Of a thread that was erased nothing is kept, and a
    /// thread without a key (its events were written in plain) has its rows in plain as well.
    pub fn seal(&self, thread_id: &ThreadId, bytes: &[u8]) -> Vec<u8> {
        self.seal_in(thread_scope(thread_id), bytes)
    }

    /// Opens what [`Self::seal`] sealed. None if the thread was erased, or the bytes are not what
    /// was sealed for it.
    pub fn open(&self, thread_id: &ThreadId, bytes: &[u8]) -> Option<Vec<u8>> {
        self.open_in(thread_scope(thread_id), bytes)
    }

    /// Whether the thread was erased, so that nothing of it opens.
    pub fn is_erased(&self, thread_id: &ThreadId) -> bool {
        self.0.is_destroyed(thread_scope(thread_id))
    }

    /// Seals bytes with the run's key, so that they are forgotten with the run or its thread.
    pub fn seal_run(&self, thread_id: &ThreadId, run_id: &RunId, bytes: &[u8]) -> Vec<u8> {
        self.seal_in(run_scope(thread_id, run_id), bytes)
    }

    /// Opens what [`Self::seal_run`] sealed.
    pub fn open_run(&self, thread_id: &ThreadId, run_id: &RunId, bytes: &[u8]) -> Option<Vec<u8>> {
        self.open_in(run_scope(thread_id, run_id), bytes)
    }

    /// A key that cannot be read from the disk now counts as gone: rows can be made again.
    fn seal_in(&self, scope: ScopeId, bytes: &[u8]) -> Vec<u8> {
        let scope_key = match self.0.find(scope) {
            Ok(Found::Live(key)) => key,
            Ok(Found::Missing) => return [&[PLAIN], bytes].concat(),
            Ok(Found::Destroyed) | Err(_) => return vec![ERASED],
        };
        let nonce = self.0.next_nonce();
        let mut row = bytes.to_vec();
        let tag = seal::seal(&row_key(&scope_key, &nonce), &scope.0, &mut row);
        [&[SEALED], &nonce[..], &row, &tag].concat()
    }

    fn open_in(&self, scope: ScopeId, bytes: &[u8]) -> Option<Vec<u8>> {
        let (kind, rest) = bytes.split_first()?;
        let found = self.0.find(scope).ok()?;
        match (*kind, found) {
            (PLAIN, Found::Missing | Found::Live(_)) => Some(rest.to_vec()),
            (SEALED, Found::Live(key)) => {
                let (nonce, sealed) = rest.split_first_chunk()?;
                seal::open(&row_key(&key, nonce), &scope.0, sealed)
            }
            _ => None,
        }
    }
}

fn row_key(scope_key: &SecretKey, nonce: &Nonce) -> SecretKey {
    SecretKey::new(seal::derive(scope_key, Purpose::Row, nonce))
}

pub(crate) fn thread_scope(thread_id: &ThreadId) -> ScopeId {
    ScopeId(keys::stream_entry::hash(&StreamId::Thread(thread_id.clone())))
}

pub(crate) fn run_scope(thread_id: &ThreadId, run_id: &RunId) -> ScopeId {
    ScopeId(keys::run_entry::hash(&StreamId::Thread(thread_id.clone()), run_id))
}
