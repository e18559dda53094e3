//! Opening a folder: lock, engine, format, and the proof that the log has not lost its end.
//!
//! ```text
//! {folder}/remit.lock   who holds the folder
//! {folder}/log/         the engine
//! {folder}/head         the head, noted outside the engine
//! {folder}/keys/        what bodies are sealed with
//! ```

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;

use crate::{
    engine::{Engine, EngineError},
    format::{self, FormatError},
    journal_scan::JournalScan,
    keyring::{KeyFile, Keyring},
    keys,
    lock::{Acquired, FolderLock, Holder},
    options::Options,
    position::Position,
    repair,
    secret::InvalidKey,
    space::Space,
    store::{EngineStore, Head, LogStore, StoreError},
    verify::{self, Damage},
    watermark::{Noted, Watermark},
};

mod inspect;

pub use inspect::{Inspection, free_bytes, inspect, peek_registry};

const LOCK_FILE: &str = "remit.lock";
pub(crate) const ENGINE_FOLDER: &str = "log";
pub(crate) const WATERMARK_FILE: &str = "head";
pub(crate) const KEYS_FOLDER: &str = "keys";

/// Why the log was not opened. No event was written; the engine may have dropped a torn tail of its
/// journal, as it does on every start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file or folder could not be used.
    #[error("could not {action} {}", .path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// Another process has the folder open.
    #[error("{}", held_text(folder, *pid, command, *since, address.as_deref()))]
    Held {
        /// The folder.
        folder: PathBuf,
        /// The process that has it.
        pid: u32,
        /// Its command line.
        command: String,
        /// Since when.
        since: Timestamp,
        /// Where it listens, if it is a server.
        address: Option<String>,
    },
    /// Another process has just opened the folder and has not said who it is.
    #[error("{} is held by another process that is just starting; try again, or stop it", .folder.display())]
    HeldByUnknown {
        /// The folder.
        folder: PathBuf,
    },
    /// The storage engine cannot be opened.
    #[error("could not open the log in {}; keep the folder as it is, and restore a backup or run `remit doctor`", .folder.display())]
    Engine {
        /// The folder.
        folder: PathBuf,
        /// Why it failed.
        #[source]
        source: EngineError,
    },
    /// The log was written by a program that this one does not understand.
    #[error("could not open the log in {}", .folder.display())]
    Format {
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        #[source]
        source: FormatError,
    },
    /// The log could not be read.
    #[error("could not find the end of the log")]
    Store(#[source] StoreError),
    /// Durable events are gone: the log ends before where it is known to have been.
    #[error(
        "the log in {} ends at position {log}, but had durably reached position {noted}: the events \
         between are lost; keep the folder as it is, and restore a backup or run `remit doctor`",
        .folder.display()
    )]
    HeadBehind {
        /// The folder.
        folder: PathBuf,
        /// Where the log ends.
        log: Position,
        /// Where it is known to have been.
        noted: Position,
    },
    /// The engine's journal is damaged, and commits behind the damage would be lost by opening it.
    /// It was not opened.
    #[error(
        "the journal {} is damaged at byte {at}, and later commits stand behind the damage; it was left \
         as it is: keep it, and restore a backup, or run `remit verify` to see what is whole",
        .path.display()
    )]
    JournalDamaged {
        /// The file.
        path: PathBuf,
        /// Where its whole batches end.
        at: u64,
    },
    /// The last commits do not hold together.
    #[error(
        "the log in {} is damaged ({damage}); keep the folder as it is, and restore a backup, or run \
         `remit verify` to see what is whole",
        .folder.display()
    )]
    Damaged {
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        damage: Damage,
    },
    /// The events up to the noted head are not those that were there.
    #[error(
        "the log in {} is another one than was there when it reached position {noted}: its chain differs; \
         keep the folder as it is, and restore a backup or run `remit doctor`",
        .folder.display()
    )]
    HeadDiffers {
        /// The folder.
        folder: PathBuf,
        /// Where the chains differ.
        noted: Position,
    },
    /// The noted head is unreadable, so nothing says whether the log is whole.
    #[error(
        "the head file {} is damaged, so nothing says whether the log is whole; \
         run `remit verify` on a copy, then remove the file",
        .path.display()
    )]
    WatermarkDamaged {
        /// The file.
        path: PathBuf,
    },
    /// The log has sealed events, and the file with their keys is gone.
    #[error(
        "the key file {} is missing, and the log has events that were sealed with its keys; \
         keep the folder as it is, and restore a backup into a new one",
        .path.display()
    )]
    KeysLost {
        /// The file.
        path: PathBuf,
    },
    /// The file with the keys was cut, or its beginning is damaged.
    #[error("the key file {} is damaged; keep the folder as it is, and restore a backup into a new one", .path.display())]
    KeysDamaged {
        /// The file.
        path: PathBuf,
    },
    /// Keys were wrapped with a master key that is gone.
    #[error(
        "the master key {} is missing, and the keys of threads are wrapped with it; put back the one that was \
         used, or say in log.master_key where it is",
        .path.display()
    )]
    MasterKeyLost {
        /// Where a generated key would be.
        path: PathBuf,
    },
    /// The file that the master key is to come from is not there.
    #[error(
        "there is no master key in {}, where log.master_key says it is; put back the one that was used, or, for \
         a new data folder, make one there, for example with `openssl rand -hex 32`",
        .path.display()
    )]
    MasterKeyMissing {
        /// Where it would be.
        path: PathBuf,
    },
    /// Keys were wrapped with another master key.
    #[error(
        "the master key from {given} is not the one that the keys in {} are wrapped with; say in log.master_key \
         where the one is that was used",
        .path.display()
    )]
    MasterKeyWrong {
        /// The file with the wrapped keys.
        path: PathBuf,
        /// Where the master key was taken from.
        given: String,
    },
    /// The file of the master key holds something else.
    #[error("the master key {} cannot be used", .path.display())]
    MasterKeyInvalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: InvalidKey,
    },
    /// The writer's thread could not be started.
    #[error("could not start the log's writer")]
    Writer(#[source] io::Error),
}

fn held_text(folder: &Path, pid: u32, command: &str, since: Timestamp, address: Option<&str>) -> String {
    let folder = folder.display();
    let who = format!("{folder} is held by process {pid} (`{command}`, since {since})");
    match address {
        Some(address) => format!("{who}; stop it, or pass --server {address} to speak to it"),
        None => format!("{who}; stop it, or pass --server URL to speak to it if it is a server"),
    }
}

/// What an open log is made of.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn LogStore>,
    pub(crate) head: Head,
    pub(crate) lock: Option<FolderLock>,
    pub(crate) watermark: Option<Watermark>,
    pub(crate) space: Option<Space>,
}

/// Opens or creates what is in the folder.
pub(crate) fn open(folder: &Path, options: &Options) -> Result<Parts, OpenError> {
    open_on(folder, options, open_folder)
}

/// The same with the engine that is opened so.
pub(crate) fn open_on(
    folder: &Path,
    options: &Options,
    open: impl FnOnce(&Path) -> Result<Engine, EngineError>,
) -> Result<Parts, OpenError> {
    // The master key comes first: with a wrong one nothing is made, and the engine drops nothing.
    options.master_key.check_given()?;
    std::fs::create_dir_all(folder).map_err(io_error("create the folder", folder))?;
    let lock = acquire_lock(folder, (options.clock)())?;
    KeyFile::check_master(&folder.join(KEYS_FOLDER), &options.master_key)?;
    check_journal(folder)?;
    let (engine, version) = open_engine_by(folder, open)?;
    let keyring = open_keys(folder, options, version)?;
    let store = EngineStore::new(engine.clone(), Arc::new(keyring));
    let head = store.head().map_err(OpenError::Store)?;
    let mut watermark = check_watermark(folder, &store, head)?;
    if let Some(damage) = verify::check_recent(&engine, head).map_err(OpenError::Store)? {
        return Err(OpenError::Damaged { folder: folder.to_owned(), damage });
    }
    // Nothing is written before here. The version is raised when the keys are on disk, so that a
    // log that may have sealed events always has a key file.
    let path = folder.join(WATERMARK_FILE);
    watermark.note(head).map_err(io_error("write", &path))?;
    sync_folder(folder)?;
    format::raise(&engine, version)
        .map_err(|source| OpenError::Format { folder: folder.to_owned(), source })?;
    let space = Some(Space::new(folder.to_owned()));
    Ok(Parts { store: Arc::new(store), head, lock: Some(lock), watermark: Some(watermark), space })
}

/// Looks at the engine's journal before the engine does, which would cut what it cannot read. A
/// torn end is fine if it was never acknowledged.
fn check_journal(folder: &Path) -> Result<(), OpenError> {
    let engine_folder = folder.join(ENGINE_FOLDER);
    let scanned =
        JournalScan::of(&engine_folder).map_err(io_error("read the journals in", &engine_folder))?;
    if let Some(journal) = scanned.damaged() {
        return Err(OpenError::JournalDamaged { path: journal.path.clone(), at: journal.valid_bytes });
    }
    let Some((journal, bytes)) = scanned.torn() else {
        return Ok(());
    };
    let path = folder.join(WATERMARK_FILE);
    let noted = Watermark::peek(&path).map_err(io_error("read", &path))?;
    match (noted, scanned.last_commit) {
        (Noted::Head(Head { position, .. }), Some(last)) if position > last => {
            Err(OpenError::HeadBehind { folder: folder.to_owned(), log: last, noted: position })
        }
        // The last commit is in a table, so only the engine can tell which it is.
        (Noted::Head(Head { position, .. }), None) if position > Position::ZERO => {
            repair::keep_end(folder, journal).map_err(io_error("copy the torn end of", &journal.path))
        }
        _ => {
            tracing::warn!(path = %journal.path.display(), bytes,
                "the journal has a torn end, which was never acknowledged and is dropped");
            Ok(())
        }
    }
}

/// Opens the engine, and reads the version of what is in it.
fn open_engine(folder: &Path) -> Result<(Engine, Option<u32>), OpenError> {
    open_engine_by(folder, open_folder)
}

fn open_folder(engine_folder: &Path) -> Result<Engine, EngineError> {
    Engine::open(engine_folder, &keys::KEYSPACES)
}

fn open_engine_by(
    folder: &Path,
    open: impl FnOnce(&Path) -> Result<Engine, EngineError>,
) -> Result<(Engine, Option<u32>), OpenError> {
    let engine = open(&folder.join(ENGINE_FOLDER))
        .map_err(|source| OpenError::Engine { folder: folder.to_owned(), source })?;
    let version =
        format::check(&engine).map_err(|source| OpenError::Format { folder: folder.to_owned(), source })?;
    Ok((engine, version))
}

fn open_keys(folder: &Path, options: &Options, version: Option<u32>) -> Result<Keyring, OpenError> {
    let keys_folder = folder.join(KEYS_FOLDER);
    let file = KeyFile::open(&keys_folder, &options.master_key, format::is_sealed(version))?;
    Keyring::open(file).map_err(io_error("read the keys in", &keys_folder))
}

/// A folder that was opened only to be looked at.
pub(crate) struct OpenedFolder {
    pub(crate) engine: Engine,
    pub(crate) keyring: Keyring,
    pub(crate) head: Head,
    pub(crate) noted: Option<Head>,
    _lock: FolderLock,
}

/// What became of opening a folder to verify it.
pub(crate) enum ToVerify {
    /// There is nothing.
    NoLog,
    /// Opening it would lose what is to be looked at.
    Damaged(Damage),
    Opened(Box<OpenedFolder>),
}

/// Opens what is in a folder without the checks that would refuse it, and writes nothing.
pub(crate) fn open_to_verify(folder: &Path, options: &Options) -> Result<ToVerify, OpenError> {
    let engine_folder = folder.join(ENGINE_FOLDER);
    if !engine_folder.exists() {
        return Ok(ToVerify::NoLog);
    }
    let lock = acquire_lock(folder, (options.clock)())?;
    KeyFile::check_master(&folder.join(KEYS_FOLDER), &options.master_key)?;
    let scanned =
        JournalScan::of(&engine_folder).map_err(io_error("read the journals in", &engine_folder))?;
    let path = folder.join(WATERMARK_FILE);
    let noted = match Watermark::peek(&path).map_err(io_error("read", &path))? {
        Noted::Head(head) => Some(head),
        Noted::Nothing | Noted::Damaged => None,
    };
    if let Some(damage) = scanned.damage(noted) {
        return Ok(ToVerify::Damaged(damage));
    }
    let (engine, version) = open_engine(folder)?;
    let keyring = if format::is_sealed(version) {
        open_keys(folder, options, version)?
    } else {
        Keyring::in_memory().map_err(io_error("make keys for", folder))?
    };
    let head = EngineStore::head_of(&engine).map_err(OpenError::Store)?;
    Ok(ToVerify::Opened(Box::new(OpenedFolder { engine, keyring, head, noted, _lock: lock })))
}

pub(crate) fn acquire_lock(folder: &Path, now: Timestamp) -> Result<FolderLock, OpenError> {
    let path = folder.join(LOCK_FILE);
    match FolderLock::acquire(&path, now).map_err(io_error("lock", &path))? {
        Acquired::Held(lock) => Ok(lock),
        Acquired::ByOther(Some(Holder { pid, command, since, address })) => {
            Err(OpenError::Held { folder: folder.to_owned(), pid, command, since, address })
        }
        Acquired::ByOther(None) => Err(OpenError::HeldByUnknown { folder: folder.to_owned() }),
    }
}

/// Compares the log's head with the noted one.
fn check_watermark(folder: &Path, store: &EngineStore, head: Head) -> Result<Watermark, OpenError> {
    let path = folder.join(WATERMARK_FILE);
    let (watermark, noted) = Watermark::open(&path).map_err(io_error("open", &path))?;
    match noted {
        Noted::Head(noted) => compare(folder, store, head, noted)?,
        Noted::Damaged => return Err(OpenError::WatermarkDamaged { path }),
        Noted::Nothing if head.position > Position::ZERO => {
            tracing::warn!(path = %path.display(), head = %head.position,
                "the head file is missing: nothing says whether the log is whole; it is made anew");
        }
        Noted::Nothing => {}
    }
    Ok(watermark)
}

/// Makes the names of new files survive power loss.
fn sync_folder(folder: &Path) -> Result<(), OpenError> {
    let sync = || std::fs::File::open(folder)?.sync_all();
    sync().map_err(io_error("sync the folder", folder))
}

fn compare(folder: &Path, store: &EngineStore, head: Head, noted: Head) -> Result<(), OpenError> {
    let folder = folder.to_owned();
    if head.position < noted.position {
        return Err(OpenError::HeadBehind { folder, log: head.position, noted: noted.position });
    }
    if noted == Head::EMPTY {
        return Ok(());
    }
    let commit = store.commit_at(noted.position).map_err(OpenError::Store)?;
    if commit.is_none_or(|commit| commit.chain != noted.chain) {
        return Err(OpenError::HeadDiffers { folder, noted: noted.position });
    }
    Ok(())
}

fn io_error(action: &'static str, path: &Path) -> impl Fn(io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Io { action, path: path.clone(), source }
}

#[cfg(test)]
mod damage;
#[cfg(test)]
mod tests;
