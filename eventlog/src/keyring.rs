//! The keys that bodies are sealed with: one for each thread, and one for each run on it.
//!
//! To forget a thread or a run is to destroy its key. So a key lies in one place only, a slot of a
//! file that is overwritten where it stands (`file`); nothing else on disk ever holds it, wrapped
//! or not. An event is sealed with the key of its run, or with the thread's if it belongs to none,
//! so that a run can be forgotten without the rest of its thread. Destroying a thread's key
//! destroys those of its runs.
//!
//! A new key is saved before the first event that uses it is committed: [`Keyring::save`] writes
//! all new keys of a group with one sync. A key whose first commit fails stays unused.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    io,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::secret::{self, SecretKey};

mod file;
mod listed;
mod master;
mod slot;
#[cfg(test)]
mod tests;

pub(crate) use file::{CopiedKeys, KeyFile};
pub use listed::{KeyState, ListedKey, Rewrapped};
pub use master::MasterKey;
pub(crate) use slot::Slot;

/// What stands before the number in a nonce: random for each opening of the log.
const NONCE_PREFIX_BYTES: usize = 16;

/// A number that is used once: 16 random bytes of this opening of the log, and a count.
pub(crate) type Nonce = [u8; NONCE_PREFIX_BYTES + 8];

/// Whose key: the hash of a stream's name, or of a stream and a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScopeId(pub(crate) [u8; 16]);

/// It is a hash already: half of it tells the keys of a map apart.
impl Hash for ScopeId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        state.write_u64(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
    }
}

/// Whether bodies of a scope can be opened.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    /// They can, with this key.
    Live(Arc<SecretKey>),
    /// The key was destroyed: they never can.
    Destroyed,
    /// There never was a key, or it is lost.
    Missing,
}

/// All keys of a log.
pub struct Keyring {
    entries: RwLock<Entries>,
    nonce_prefix: [u8; NONCE_PREFIX_BYTES],
    nonces: AtomicU64,
}

struct Entries {
    by_scope: HashMap<ScopeId, Entry>,
    /// None keeps the keys in memory only.
    file: Option<KeyFile>,
    /// Keys that are not on disk yet.
    unsaved: Vec<ScopeId>,
}

struct Entry {
    thread: ScopeId,
    slot: Option<u32>,
    key: Key,
}

enum Key {
    Live(Arc<SecretKey>),
    /// It is in its slot and was not needed yet.
    OnDisk,
    Destroyed,
}

impl Keyring {
    /// Keys that are gone when this is dropped.
    pub(crate) fn in_memory() -> io::Result<Self> {
        Self::new(HashMap::new(), None)
    }

    /// The keys of a file.
    pub(crate) fn open(mut file: KeyFile) -> io::Result<Self> {
        let mut by_scope = HashMap::new();
        for (number, slot) in file.slots()? {
            let (thread, scope) = (slot.thread(), slot.scope());
            let key = if slot.is_destroyed() { Key::Destroyed } else { Key::OnDisk };
            by_scope.insert(scope, Entry { thread, slot: Some(number), key });
        }
        Self::new(by_scope, Some(file))
    }

    fn new(by_scope: HashMap<ScopeId, Entry>, file: Option<KeyFile>) -> io::Result<Self> {
        let mut nonce_prefix = [0; NONCE_PREFIX_BYTES];
        secret::fill_random(&mut nonce_prefix)?;
        let entries = RwLock::new(Entries { by_scope, file, unsaved: Vec::new() });
        Ok(Self { entries, nonce_prefix, nonces: AtomicU64::new(0) })
    }

    /// A nonce that was never given out.
    pub(crate) fn next_nonce(&self) -> Nonce {
        let count = self.nonces.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut nonce = [0; NONCE_PREFIX_BYTES + 8];
        for (to, from) in nonce.iter_mut().zip(self.nonce_prefix.iter().chain(&count)) {
            *to = *from;
        }
        nonce
    }

    /// The key of a scope.
    pub(crate) fn find(&self, scope: ScopeId) -> io::Result<Found> {
        match self.read().by_scope.get(&scope).map(|entry| &entry.key) {
            Some(Key::Live(key)) => return Ok(Found::Live(Arc::clone(key))),
            Some(Key::Destroyed) => return Ok(Found::Destroyed),
            Some(Key::OnDisk) => {}
            None => return Ok(Found::Missing),
        }
        self.write().load(scope)
    }

    /// Whether the key of a scope was destroyed.
    pub(crate) fn is_destroyed(&self, scope: ScopeId) -> bool {
        self.read().by_scope.get(&scope).is_some_and(|entry| matches!(entry.key, Key::Destroyed))
    }

    /// The key of a scope of the thread, made if there is none. None if it was destroyed.
    pub(crate) fn find_or_create(
        &self,
        thread: ScopeId,
        scope: ScopeId,
    ) -> io::Result<Option<Arc<SecretKey>>> {
        match self.find(scope)? {
            Found::Live(key) => return Ok(Some(key)),
            Found::Destroyed => return Ok(None),
            Found::Missing => {}
        }
        let key = Arc::new(SecretKey::random()?);
        let mut entries = self.write();
        entries.by_scope.insert(scope, Entry { thread, slot: None, key: Key::Live(Arc::clone(&key)) });
        entries.unsaved.push(scope);
        Ok(Some(key))
    }

    /// Brings new keys to the disk: one sync for all of them, none if there are none.
    pub(crate) fn save(&self) -> io::Result<()> {
        if self.read().unsaved.is_empty() {
            return Ok(());
        }
        self.write().save()
    }

    /// Copies the key file as it is now, while no key is made or destroyed. None if the keys are in
    /// memory only.
    pub(crate) fn copy_to(&self, to: &mut std::fs::File) -> io::Result<Option<CopiedKeys>> {
        self.read().file.as_ref().map(|file| file.copy_to(to)).transpose()
    }

    /// Destroys one key. Says whether there was one; when it returns, it is gone from the disk. Where
    /// a key was used and is lost, a destroyed one takes its place.
    pub(crate) fn destroy(&self, thread: ScopeId, scope: ScopeId, is_used: bool) -> io::Result<bool> {
        let mut entries = self.write();
        if is_used {
            entries.bury(thread, scope)?;
        }
        entries.destroy(|one, _| one == scope)
    }

    /// Destroys the key of a thread and those of its runs.
    pub(crate) fn destroy_thread(&self, thread: ScopeId, is_used: bool) -> io::Result<bool> {
        let mut entries = self.write();
        if is_used {
            entries.bury(thread, thread)?;
        }
        entries.destroy(|_, entry| entry.thread == thread)
    }

    /// Puts a known key into the ring.
    #[cfg(test)]
    pub(crate) fn insert(&self, thread: ScopeId, scope: ScopeId, key: SecretKey) {
        let entry = Entry { thread, slot: None, key: Key::Live(Arc::new(key)) };
        self.write().by_scope.insert(scope, entry);
    }

    fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    /// Unwraps a key that is on disk.
    fn load(&mut self, scope: ScopeId) -> io::Result<Found> {
        let Some(entry) = self.by_scope.get_mut(&scope) else {
            return Ok(Found::Missing);
        };
        match (&entry.key, entry.slot, &self.file) {
            (Key::Live(key), _, _) => Ok(Found::Live(Arc::clone(key))),
            (Key::OnDisk, Some(slot), Some(file)) => {
                let key = Arc::new(file.unwrap_key(slot)?);
                entry.key = Key::Live(Arc::clone(&key));
                Ok(Found::Live(key))
            }
            (Key::Destroyed, _, _) => Ok(Found::Destroyed),
            (Key::OnDisk, _, _) => Ok(Found::Missing),
        }
    }

    fn save(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            self.unsaved.clear();
            return Ok(());
        };
        for scope in std::mem::take(&mut self.unsaved) {
            if let Some(entry) = self.by_scope.get_mut(&scope)
                && let Key::Live(key) = &entry.key
            {
                entry.slot = Some(file.put(entry.thread, scope, key)?);
            }
        }
        file.sync()
    }

    /// Puts a destroyed key where there is none. It is on disk after the next sync.
    fn bury(&mut self, thread: ScopeId, scope: ScopeId) -> io::Result<()> {
        if self.by_scope.contains_key(&scope) {
            return Ok(());
        }
        let slot = self.file.as_mut().map(|file| file.put_destroyed(thread, scope)).transpose()?;
        self.by_scope.insert(scope, Entry { thread, slot, key: Key::Destroyed });
        Ok(())
    }

    /// In memory the keys go first, so that nothing is sealed with a key that is half gone.
    fn destroy(&mut self, is_meant: impl Fn(ScopeId, &Entry) -> bool) -> io::Result<bool> {
        let mut was_live = false;
        for (scope, entry) in &mut self.by_scope {
            if !is_meant(*scope, entry) {
                continue;
            }
            was_live |= !matches!(entry.key, Key::Destroyed);
            entry.key = Key::Destroyed;
            // Also when it was destroyed before: that write may have failed half way.
            if let (Some(slot), Some(file)) = (entry.slot, &mut self.file) {
                file.destroy(slot, entry.thread, *scope)?;
            }
        }
        if let Some(file) = &mut self.file {
            file.sync()?;
        }
        Ok(was_live)
    }
}
