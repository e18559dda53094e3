//! Opening a folder: lock, record, keys, index, and the proof that the log has not lost its end.
//!
//! ```text
//! {folder}/remit.lock     who holds the folder
//! {folder}/log/version    the version of what is stored
//! {folder}/log/segments/  the record
//! {folder}/log/index/     the index, which can be made from the record
//! {folder}/head           the head, noted outside the record
//! {folder}/keys/          what bodies are sealed with
//! ```
//!
//! Everybody who opens a folder, or only looks at it, begins with the same look at the record
//! (`look`), which writes nothing.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;

use crate::{
    durable, format,
    index::Index,
    keyring::{KeyFile, Keyring},
    lock::{Acquired, FolderLock, Holder},
    migrate,
    options::Options,
    position::Position,
    segment::{Appender, Segments},
    space::Space,
    store::{Head, LogStore, SegmentStore},
    watermark::{Noted, Watermark},
};

mod error;
mod inspect;
mod keys;
mod look;
pub(crate) mod recover;

pub use error::OpenError;
pub use inspect::{Inspection, free_bytes, inspect, peek_registry};
pub use keys::{list_keys, rewrap_keys};
pub(crate) use look::{Look, look};

const LOCK_FILE: &str = "remit.lock";
pub(crate) const LOG_FOLDER: &str = "log";
const SEGMENTS_FOLDER: &str = "segments";
const INDEX_FOLDER: &str = "index";
pub(crate) const WATERMARK_FILE: &str = "head";
pub(crate) const KEYS_FOLDER: &str = "keys";

/// Where the record of a log is.
pub(crate) fn segments_folder(log_folder: &Path) -> PathBuf {
    log_folder.join(SEGMENTS_FOLDER)
}

/// Where the index of a log is.
pub(crate) fn index_folder(log_folder: &Path) -> PathBuf {
    log_folder.join(INDEX_FOLDER)
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
    open_by(folder, options, &|_| {}, &recover::open_index)
}

/// Opens the index of a log, with everything that its record has up to a head.
pub(crate) type OpenIndex<'a> = dyn Fn(&Path, &Segments, Head) -> Result<Index, OpenError> + 'a;

/// The same, with a say in how the record and its index are opened.
pub(crate) fn open_by(
    folder: &Path,
    options: &Options,
    prepare: &dyn Fn(&Segments),
    open_index: &OpenIndex<'_>,
) -> Result<Parts, OpenError> {
    // The master key comes first: with a wrong one nothing is made.
    options.master_key.check_given()?;
    std::fs::create_dir_all(folder).map_err(io_error("create the folder", folder))?;
    let lock = acquire_lock(folder, (options.clock)())?;
    KeyFile::check_master(&folder.join(KEYS_FOLDER), &options.master_key)?;
    migrate::bring_up_to_date(folder, options)?;
    let looked = look(folder)?;
    prepare(&looked.segments);
    if let Some(refusal) = looked.refusal(folder) {
        return Err(refusal);
    }
    let keyring = open_keys(folder, options, looked.must_have_keys())?;
    // Nothing of the log is written before here.
    looked.cut_torn_end(folder)?;
    let (head, end) = (looked.survey.head, looked.survey.end);
    let log_folder = folder.join(LOG_FOLDER);
    // First what is there is made durable, then the index tells of it.
    let written_again = looked.segments.write_again(looked.survey.last, end);
    written_again.map_err(|error| OpenError::Store(error.into()))?;
    let appender = Appender::new(looked.segments.clone(), end);
    let appender = appender.map_err(|error| OpenError::Store(error.into()))?;
    let index = open_index(&log_folder, &looked.segments, head)?;
    let watermark = note_head(folder, head, looked.noted)?;
    // The version is written when the keys are on disk, so that a log that may have sealed events
    // always has a key file.
    if looked.version.is_none() {
        format::write(&log_folder).map_err(io_error("write the version of the log in", &log_folder))?;
    }
    sync_folder(folder)?;
    let store = SegmentStore::new(looked.segments, index, appender, Arc::new(keyring));
    let space = Some(Space::new(folder.to_owned()));
    Ok(Parts { store: Arc::new(store), head, lock: Some(lock), watermark: Some(watermark), space })
}

/// Begins to note heads, with the present one.
fn note_head(folder: &Path, head: Head, noted: Noted) -> Result<Watermark, OpenError> {
    let path = folder.join(WATERMARK_FILE);
    if noted == Noted::Nothing && head.position > Position::ZERO {
        tracing::warn!(path = %path.display(), head = %head.position,
            "the head file is missing: nothing says whether the log is whole; it is made anew");
    }
    let (mut watermark, _) = Watermark::open(&path).map_err(io_error("open", &path))?;
    watermark.note(head).map_err(io_error("write", &path))?;
    Ok(watermark)
}

/// Opens the keys, or makes new ones if there need be none yet.
pub(crate) fn open_keys(folder: &Path, options: &Options, must_exist: bool) -> Result<Keyring, OpenError> {
    let keys_folder = folder.join(KEYS_FOLDER);
    let file = KeyFile::open(&keys_folder, &options.master_key, must_exist)?;
    Keyring::open(file).map_err(io_error("read the keys in", &keys_folder))
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

/// Makes the names of new files survive power loss.
fn sync_folder(folder: &Path) -> Result<(), OpenError> {
    durable::sync_folder(folder).map_err(io_error("sync the folder", folder))
}

pub(crate) fn io_error(action: &'static str, path: &Path) -> impl Fn(io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Io { action, path: path.clone(), source }
}

#[cfg(test)]
mod damage;
#[cfg(test)]
mod tests;
