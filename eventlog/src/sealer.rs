//! Sealing for what is kept beside the log: rows of views carry text of threads and runs too, and must
//! be forgotten with them.
//!
//! ```text
//! 0 · bytes                                 in plain: the thread has no key
//! 1 · 24 nonce · sealed · 16 tag            with the thread's key
//! 2                                         nothing: it was erased when the row was to be sealed
//! 3 · 16 run · 24 nonce · sealed · 16 tag   with the run's key
//! ```
//!
//! What is sealed with a run's key is bound to its thread as well.

use std::{cell::RefCell, sync::Arc};

use domain::ids::{RunHash, ThreadId};

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
const SEALED_FOR_RUN: u8 = 3;

/// Seals bytes with the keys of threads and runs. Cheap to clone.
#[derive(Clone)]
pub struct Sealer(Arc<Keyring>);

/// What sealed bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsealed {
    /// They say this, and are the run's, or the thread's where there is no run.
    Said(Vec<u8>, Option<RunHash>),
    /// Whose they are was erased.
    Erased,
    /// They are not what was sealed for this thread.
    Broken,
}

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
        let thread = thread_scope(thread_id);
        match self.key(thread) {
            Some(Some(key)) => self.sealed(&[SEALED], &key, &thread.0, bytes),
            Some(None) => [&[PLAIN], bytes].concat(),
            None => vec![ERASED],
        }
    }

    /// Seals bytes with the key of a run on the thread, so that they are forgotten with either. A
    /// run without a key has its rows with its thread's.
    pub fn seal_run(&self, thread_id: &ThreadId, run: RunHash, bytes: &[u8]) -> Vec<u8> {
        let (thread, scope) = (thread_scope(thread_id), hashed_scope(run));
        match self.key(scope) {
            Some(Some(key)) => {
                let front = [&[SEALED_FOR_RUN], &scope.0[..]].concat();
                self.sealed(&front, &key, &both(thread, scope), bytes)
            }
            Some(None) => self.seal(thread_id, bytes),
            None => vec![ERASED],
        }
    }

    /// Opens what [`Self::seal`] or [`Self::seal_run`] sealed for the thread.
    pub fn open(&self, thread_id: &ThreadId, bytes: &[u8]) -> Unsealed {
        let thread = thread_scope(thread_id);
        let (kind, rest) = match bytes.split_first() {
            Some((kind, rest)) => (*kind, rest),
            None => return Unsealed::Broken,
        };
        if self.0.is_destroyed(thread) {
            return Unsealed::Erased;
        }
        match kind {
            PLAIN => Unsealed::Said(rest.to_vec(), None),
            SEALED => self.opened(thread, &thread.0, rest, None),
            ERASED => Unsealed::Erased,
            SEALED_FOR_RUN => match rest.split_first_chunk() {
                Some((run, sealed)) => {
                    let (scope, run) = (ScopeId(*run), RunHash::from_bytes(*run));
                    self.opened(scope, &both(thread, scope), sealed, Some(run))
                }
                None => Unsealed::Broken,
            },
            _ => Unsealed::Broken,
        }
    }

    /// Whether the thread was erased, so that nothing of it opens.
    pub fn is_erased(&self, thread_id: &ThreadId) -> bool {
        self.0.is_destroyed(thread_scope(thread_id))
    }

    /// Whether the key of this one run was destroyed.
    pub fn is_run_erased(&self, run: RunHash) -> bool {
        self.0.is_destroyed(hashed_scope(run))
    }

    /// The key, or that there never was one; none if it was destroyed. One that cannot be read from
    /// the disk now counts as gone: rows can be made again.
    fn key(&self, scope: ScopeId) -> Option<Option<Arc<SecretKey>>> {
        match self.0.find(scope) {
            Ok(Found::Live(key)) => Some(Some(key)),
            Ok(Found::Missing) => Some(None),
            Ok(Found::Destroyed) | Err(_) => None,
        }
    }

    fn sealed(&self, front: &[u8], key: &SecretKey, associated: &[u8], bytes: &[u8]) -> Vec<u8> {
        let nonce = self.0.next_nonce();
        let mut row = Vec::with_capacity(front.len() + nonce.len() + bytes.len() + seal::TAG_BYTES);
        row.extend_from_slice(front);
        row.extend_from_slice(&nonce);
        row.extend_from_slice(bytes);
        let body = row.get_mut(front.len() + nonce.len()..).unwrap_or_default();
        let tag = seal::seal(&row_key(key, &nonce), associated, body);
        row.extend_from_slice(&tag);
        row
    }

    fn opened(&self, scope: ScopeId, associated: &[u8], bytes: &[u8], run: Option<RunHash>) -> Unsealed {
        let key = match self.0.find(scope) {
            Ok(Found::Live(key)) => key,
            Ok(Found::Destroyed) => return Unsealed::Erased,
            Ok(Found::Missing) | Err(_) => return Unsealed::Broken,
        };
        let Some((nonce, sealed)) = bytes.split_first_chunk() else { return Unsealed::Broken };
        let opened = seal::open(&row_key(&key, nonce), associated, sealed);
        opened.map_or(Unsealed::Broken, |said| Unsealed::Said(said, run))
    }
}

fn row_key(scope_key: &SecretKey, nonce: &Nonce) -> SecretKey {
    SecretKey::new(seal::derive(scope_key, Purpose::Row, nonce))
}

fn both(thread: ScopeId, run: ScopeId) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(thread.0.iter().chain(&run.0)) {
        *to = *from;
    }
    bytes
}

thread_local! {
    /// The thread that was hashed last: neighbouring rows are mostly of one.
    static NEWEST_THREAD: RefCell<Option<(ThreadId, ScopeId)>> = const { RefCell::new(None) };
}

pub(crate) fn thread_scope(thread_id: &ThreadId) -> ScopeId {
    NEWEST_THREAD.with_borrow_mut(|newest| match newest {
        Some((thread, scope)) if thread == thread_id => *scope,
        Some(_) | None => {
            let scope = ScopeId(keys::stream_entry::hash(&StreamId::Thread(thread_id.clone())));
            *newest = Some((thread_id.clone(), scope));
            scope
        }
    })
}

pub(crate) const fn hashed_scope(run: RunHash) -> ScopeId {
    ScopeId(*run.as_bytes())
}
