//! The blobs of an open log.

use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use domain::ids::{RunHash, ThreadId};

use super::{
    BlobDigest, BlobError, BlobReader, BlobScope,
    error::io_error,
    header::Header,
    named,
    place::{self, Name, Place},
    reader::{self, Found, Probe},
    staged_file::{self, StagedFile},
};
use crate::{
    durable,
    keyring::{self, Keyring, ScopeId},
    recorded::RecordedEvent,
    sealer,
    secret::SecretKey,
    space::{Shortage, Space},
    stream_id::StreamId,
};

/// Figures of one process's use of the blobs, since the log was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlobStats {
    /// Blobs that were written.
    pub written: u64,
    /// Their bytes, before sealing.
    pub written_bytes: u64,
    /// Blobs that were there already.
    pub found: u64,
    /// Blobs that no event has named yet.
    pub staged: u64,
}

/// The blobs of an open log.
pub(crate) struct Blobs {
    pub(super) place: Place,
    pub(super) keyring: Arc<Keyring>,
    pub(super) staged: Mutex<Staged>,
    written: AtomicU64,
    written_bytes: AtomicU64,
    found: AtomicU64,
}

/// Blobs that no event has named yet, by thread and name.
pub(super) type Staged = HashMap<(ScopeId, Name), Vec<StagedBlob>>;

/// A file in the folder of staged ones, perhaps with a key beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StagedBlob {
    pub(super) scope: ScopeId,
    pub(super) stem: String,
}

/// A blob, by what its file is found under.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    thread: ScopeId,
    scope: ScopeId,
    name: Name,
}

impl Blobs {
    pub(super) fn new(place: Place, keyring: Arc<Keyring>, staged: Staged) -> Self {
        let [written, written_bytes, found] = [0; 3].map(AtomicU64::new);
        Self { place, keyring, staged: Mutex::new(staged), written, written_bytes, found }
    }

    pub(super) fn root(&self) -> &Path {
        self.place.root()
    }

    /// The data folder.
    pub(crate) fn data(&self) -> &Path {
        self.place.data()
    }

    pub(crate) fn stats(&self) -> BlobStats {
        BlobStats {
            written: self.written.load(Ordering::Relaxed),
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
            found: self.found.load(Ordering::Relaxed),
            staged: self.staged().values().map(|blobs| blobs.len() as u64).sum(),
        }
    }

    pub(super) fn new_file(&self) -> Result<StagedFile, BlobError> {
        StagedFile::create(&self.place).map_err(io_error("create a file in", &self.place.staged_folder()))
    }

    /// A large output must not take the room that the log itself needs.
    pub(super) fn check_room(&self) -> Result<(), BlobError> {
        match Space::new(self.data().to_owned()).look() {
            Some(Shortage { free_bytes, reserve_bytes, .. }) => {
                Err(BlobError::NoRoom { free_bytes, reserve_bytes })
            }
            None => Ok(()),
        }
    }

    /// Makes a written file durable, unless the blob is there already. When this returns, an event
    /// may name it.
    pub(super) fn stage(&self, header: Header, file: StagedFile) -> Result<(), BlobError> {
        let scope_key = self.live_key(&header.owner, header.owner.sealing())?;
        let thread_key = self.live_key(&header.owner, header.owner.thread())?;
        let name = Name::of(&thread_key, &header.blob.sha256);
        let wanted = Wanted { thread: header.owner.thread(), scope: header.owner.sealing(), name };
        let failed = io_error("keep a blob in", self.place.root());
        let stem = match self.known(wanted).map_err(&failed)? {
            Known::Own => {
                self.found.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            Known::OfAnother(path, found) => match self.link(&path, &found.header, &header, &scope_key) {
                Ok(stem) => {
                    self.found.fetch_add(1, Ordering::Relaxed);
                    stem
                }
                // Links have limits, and an erasure may have removed the file.
                Err(error) => {
                    tracing::debug!(%error, "a blob of another run cannot be shared and is stored again");
                    self.keep(&header, &scope_key, file).map_err(&failed)?
                }
            },
            Known::No => self.keep(&header, &scope_key, file).map_err(&failed)?,
        };
        let mut staged = self.staged();
        // An erasure takes the same lock after it has destroyed the keys.
        if let Err(error) = self.live_key(&header.owner, wanted.scope) {
            self.remove_staged(&stem).map_err(&failed)?;
            return Err(error);
        }
        staged.entry((wanted.thread, name)).or_default().push(StagedBlob { scope: wanted.scope, stem });
        Ok(())
    }

    fn keep(&self, header: &Header, scope_key: &SecretKey, file: StagedFile) -> io::Result<String> {
        let stem = file.keep(&header.seal(scope_key, &self.keyring.next_nonce()))?;
        self.written.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(header.blob.bytes, Ordering::Relaxed);
        Ok(stem)
    }

    fn live_key(&self, owner: &BlobScope, scope: ScopeId) -> Result<Arc<SecretKey>, BlobError> {
        let thread_id = owner.thread_id.clone();
        match self.keyring.find(scope).map_err(io_error("read the key for", self.place.root()))? {
            keyring::Found::Live(key) => Ok(key),
            keyring::Found::Destroyed => Err(BlobError::Erased { thread_id }),
            keyring::Found::Missing if self.keyring.is_destroyed(owner.thread()) => {
                Err(BlobError::Erased { thread_id })
            }
            keyring::Found::Missing => Err(BlobError::NoKey { thread_id }),
        }
    }

    /// Looks whether the thread has the blob.
    fn known(&self, wanted: Wanted) -> io::Result<Known> {
        let Wanted { thread, scope, name } = wanted;
        if let Probe::Whole(_) = reader::probe(&self.place.blob(thread, scope, name), scope, &self.keyring)? {
            return Ok(Known::Own);
        }
        let is_own = |blobs: &Vec<StagedBlob>| blobs.iter().any(|blob| blob.scope == scope);
        if self.staged().get(&(thread, name)).is_some_and(is_own) {
            return Ok(Known::Own);
        }
        for other in self.place.scopes(thread)?.into_iter().filter(|other| *other != scope) {
            let path = self.place.blob(thread, other, name);
            if let Probe::Whole(found) = reader::probe(&path, other, &self.keyring)? {
                return Ok(Known::OfAnother(path, found));
            }
        }
        Ok(Known::No)
    }

    /// Stages the file of another scope for this one: a link, and its key wrapped anew.
    fn link(&self, path: &Path, theirs: &Header, ours: &Header, scope_key: &SecretKey) -> io::Result<String> {
        let stem = staged_file::random_stem()?;
        let (link, key) = (self.place.staged(&stem), place::key_beside(&self.place.staged(&stem)));
        let header = Header { file_key: theirs.file_key.clone(), ..ours.clone() };
        let make = || {
            fs::hard_link(path, &link)?;
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&key)?;
            file.write_all(&header.seal(scope_key, &self.keyring.next_nonce()))?;
            file.sync_all()?;
            durable::sync_folder(&self.place.staged_folder())
        };
        let made = make();
        if made.is_err() {
            self.remove_staged(&stem)?;
        }
        made.map(|()| stem)
    }

    pub(super) fn remove_staged(&self, stem: &str) -> io::Result<()> {
        let path = self.place.staged(stem);
        place::remove_file(&path)?;
        place::remove_file(&place::key_beside(&path))
    }

    /// Moves the blobs that events name to their place. The events are durable.
    pub(crate) fn settle(&self, events: &[Arc<RecordedEvent>]) {
        if self.staged().is_empty() {
            return;
        }
        for event in events {
            let StreamId::Thread(thread_id) = &event.stream else { continue };
            let owner = BlobScope { thread_id: thread_id.clone(), run_id: event.scope.run_id.clone() };
            for blob in named::named(event) {
                self.settle_one(&owner, &blob.sha256);
            }
        }
    }

    fn settle_one(&self, owner: &BlobScope, sha256: &BlobDigest) {
        let (thread, scope) = (owner.thread(), owner.sealing());
        let Ok(keyring::Found::Live(thread_key)) = self.keyring.find(thread) else { return };
        let name = Name::of(&thread_key, sha256);
        let mut staged = self.staged();
        let Some(blobs) = staged.remove(&(thread, name)) else { return };
        let (meant, mut left): (Vec<_>, Vec<_>) = blobs.into_iter().partition(|blob| blob.scope == scope);
        for blob in meant {
            if let Err(error) = move_to_place(&self.place, thread, name, &blob, &self.keyring) {
                // It stays where it is, can be read there, and is moved when the log is opened next.
                let thread_id = &owner.thread_id;
                tracing::warn!(%thread_id, %sha256, %error, "a blob could not be moved to its place");
                left.push(blob);
            }
        }
        if !left.is_empty() {
            staged.insert((thread, name), left);
        }
    }

    /// Opens a blob of a thread.
    pub(crate) fn open(&self, thread_id: &ThreadId, sha256: &BlobDigest) -> Result<BlobReader, BlobError> {
        let missing = || BlobError::NotFound { thread_id: thread_id.clone(), sha256: *sha256 };
        let thread = sealer::thread_scope(thread_id);
        let failed = io_error("look for a blob in", self.place.root());
        let keyring::Found::Live(thread_key) = self.keyring.find(thread).map_err(&failed)? else {
            return Err(missing());
        };
        let name = Name::of(&thread_key, sha256);
        let mut problem = missing();
        // Twice, because it may be moved to its place while it is looked for.
        for _ in 0..2 {
            for (path, scope) in self.candidates(thread, name).map_err(&failed)? {
                match reader::probe(&path, scope, &self.keyring).map_err(&failed)? {
                    Probe::Whole(found) if found.header.blob.sha256 == *sha256 => {
                        return BlobReader::new(*found);
                    }
                    Probe::Whole(_) => {
                        problem =
                            BlobError::Damaged { sha256: *sha256, what: "another blob is in its place" };
                    }
                    Probe::Damaged(what) => problem = BlobError::Damaged { sha256: *sha256, what },
                    Probe::Missing | Probe::Erased => {}
                }
            }
        }
        Err(problem)
    }

    /// Where the blob may be.
    fn candidates(&self, thread: ScopeId, name: Name) -> io::Result<Vec<(PathBuf, ScopeId)>> {
        let staged = self.staged().get(&(thread, name)).cloned().unwrap_or_default();
        let staged = staged.into_iter().map(|blob| (self.place.staged(&blob.stem), blob.scope));
        let scopes = self.place.scopes(thread)?.into_iter();
        let settled = scopes.map(|scope| (self.place.blob(thread, scope, name), scope));
        Ok(staged.chain(settled).collect())
    }

    /// Removes the files of a thread, or of one run on it, whose keys were destroyed. Doing it again
    /// is harmless.
    pub(crate) fn erase(&self, thread_id: &ThreadId, run: Option<RunHash>) -> io::Result<()> {
        let (thread, scope) = (sealer::thread_scope(thread_id), run.map(sealer::hashed_scope));
        self.erase_staged(thread, scope)?;
        // The keys are gone, so that nothing comes here again: others need not wait for this.
        let folder = scope.map_or_else(|| self.place.thread(thread), |scope| self.place.scope(thread, scope));
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            removed => removed?,
        }
        folder.parent().map_or(Ok(()), durable::sync_folder)
    }

    fn erase_staged(&self, thread: ScopeId, scope: Option<ScopeId>) -> io::Result<()> {
        let mut staged = self.staged();
        let is_meant = |blob: &StagedBlob| scope.is_none_or(|scope| scope == blob.scope);
        for ((_, _), blobs) in staged.iter_mut().filter(|((of, _), _)| *of == thread) {
            for blob in blobs.iter().filter(|blob| is_meant(blob)) {
                self.remove_staged(&blob.stem)?;
            }
            blobs.retain(|blob| !is_meant(blob));
        }
        staged.retain(|_, blobs| !blobs.is_empty());
        Ok(())
    }

    pub(super) fn staged(&self) -> MutexGuard<'_, Staged> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a thread has a blob.
enum Known {
    No,
    /// In this scope.
    Own,
    /// In another.
    OfAnother(PathBuf, Box<Found>),
}

/// Moves a staged blob to its place. A whole one that is there already stays. May be stopped at any
/// point and done again.
pub(super) fn move_to_place(
    place: &Place,
    thread: ScopeId,
    name: Name,
    blob: &StagedBlob,
    keyring: &Keyring,
) -> io::Result<()> {
    let (from, to) = (place.staged(&blob.stem), place.blob(thread, blob.scope, name));
    let (from_key, to_key) = (place::key_beside(&from), place::key_beside(&to));
    if let Probe::Whole(_) = reader::probe(&to, blob.scope, keyring)? {
        place::remove_file(&from)?;
        return place::remove_file(&from_key);
    }
    if let Some(folder) = to.parent() {
        place::create_folder(folder)?;
    }
    // The blob before its key: a key alone in `staged` then belongs to a blob in its place.
    if from.exists() {
        fs::rename(&from, &to)?;
    }
    if from_key.exists() { fs::rename(&from_key, &to_key) } else { Ok(()) }
}
