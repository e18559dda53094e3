//! Opening a folder: lock, engine, format, and the proof that the log has not lost its end.
//!
//! ```text
//! {folder}/remit.lock   who holds the folder
//! {folder}/log/         the engine
//! {folder}/head         the head, noted outside the engine
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
    keys,
    lock::{Acquired, FolderLock, Holder},
    position::Position,
    store::{EngineStore, Head, LogStore, StoreError},
    watermark::{Noted, Watermark},
};

const LOCK_FILE: &str = "remit.lock";
const ENGINE_FOLDER: &str = "log";
const WATERMARK_FILE: &str = "head";

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
}

/// Opens or creates what is in the folder.
pub(crate) fn open(folder: &Path, now: Timestamp) -> Result<Parts, OpenError> {
    std::fs::create_dir_all(folder).map_err(io_error("create the folder", folder))?;
    let lock = acquire_lock(folder, now)?;
    let engine = Engine::open(&folder.join(ENGINE_FOLDER), &keys::KEYSPACES)
        .map_err(|source| OpenError::Engine { folder: folder.to_owned(), source })?;
    let store = EngineStore::new(engine);
    format::check(&store).map_err(|source| OpenError::Format { folder: folder.to_owned(), source })?;
    let head = store.head().map_err(OpenError::Store)?;
    let watermark = check_watermark(folder, &store, head)?;
    Ok(Parts { store: Arc::new(store), head, lock: Some(lock), watermark: Some(watermark) })
}

fn acquire_lock(folder: &Path, now: Timestamp) -> Result<FolderLock, OpenError> {
    let path = folder.join(LOCK_FILE);
    match FolderLock::acquire(&path, now).map_err(io_error("lock", &path))? {
        Acquired::Held(lock) => Ok(lock),
        Acquired::ByOther(Some(Holder { pid, command, since, address })) => {
            Err(OpenError::Held { folder: folder.to_owned(), pid, command, since, address })
        }
        Acquired::ByOther(None) => Err(OpenError::HeldByUnknown { folder: folder.to_owned() }),
    }
}

/// Compares the log's head with the noted one, and notes the present one.
fn check_watermark(folder: &Path, store: &EngineStore, head: Head) -> Result<Watermark, OpenError> {
    let path = folder.join(WATERMARK_FILE);
    let (mut watermark, noted) = Watermark::open(&path).map_err(io_error("open", &path))?;
    match noted {
        Noted::Head(noted) => compare(folder, store, head, noted)?,
        Noted::Damaged => return Err(OpenError::WatermarkDamaged { path }),
        Noted::Nothing if head.position > Position::ZERO => {
            tracing::warn!(path = %path.display(), head = %head.position,
                "the head file is missing: nothing says whether the log is whole; it is made anew");
        }
        Noted::Nothing => {}
    }
    watermark.note(head).map_err(io_error("write", &path))?;
    sync_folder(folder)?;
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
mod tests;
