//! The version of everything that is on disk.
//!
//! It is raised when an older program could no longer read what a newer one writes, or would harm
//! it by writing to it: a new key kind, a record version, another meaning of old bytes. Adding an
//! event type does not raise it. A program reads its own version and all before it.
//!
//! 1: everything in plain. 2: records of threads are sealed, and the keys are in `keys/`. 3: the
//! record is in segments, and the storage engine has only the index.
//!
//! Since version 3 the number is in `log/version`. The engine of earlier versions had a file of
//! that name there, so that a program of that time refuses the folder instead of writing to it.

use std::{fs, io, path::Path};

use crate::{durable, engine::EngineError, store::StoreError};

/// The version that this program writes.
pub(crate) const FORMAT_VERSION: u32 = 3;
/// The first version with sealed records.
const SEALED_SINCE: u32 = 2;
/// In the log's folder.
const VERSION_FILE: &str = "version";
/// Stands before the number.
const TEXT: &str = "remit log ";
/// Begins the file that the engine of earlier versions has in the same place.
const ENGINE_MAGIC: &[u8] = b"FJL";

/// Why this program may not touch the log.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// A later program has written to the log.
    #[error(
        "the log has format version {found}, and this program knows versions up to {FORMAT_VERSION}; \
         use the version of remit that wrote it, or a later one"
    )]
    Newer {
        /// The log's version.
        found: u32,
    },
    /// The file with the version says something else.
    #[error("the file `version` of the log does not hold a version")]
    Unreadable,
    /// The version could not be read or written.
    #[error("could not use the file `version` of the log")]
    Io(#[source] io::Error),
    /// A log of an earlier version could not be read.
    #[error("could not read the log of an earlier version")]
    Store(#[source] StoreError),
    /// The storage of an earlier version could not be opened.
    #[error("could not open the storage of an earlier version")]
    Engine(#[source] EngineError),
}

/// What a log's folder says of its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing: it is new.
    Nothing,
    /// It is of version 1 or 2, all in the storage engine.
    InEngine,
    /// This one.
    Version(u32),
}

/// Reads the version of the log in a folder. Refuses a later one than ours.
pub(crate) fn check(log_folder: &Path) -> Result<Found, FormatError> {
    let bytes = match fs::read(log_folder.join(VERSION_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        read => read.map_err(FormatError::Io)?,
    };
    if bytes.starts_with(ENGINE_MAGIC) {
        return Ok(Found::InEngine);
    }
    let text = str::from_utf8(&bytes).ok().and_then(|text| text.trim_end().strip_prefix(TEXT));
    let found = text.and_then(|number| number.parse().ok()).ok_or(FormatError::Unreadable)?;
    if found > FORMAT_VERSION { Err(FormatError::Newer { found }) } else { Ok(Found::Version(found)) }
}

/// Whether a log of this version may have sealed records.
pub(crate) fn is_sealed(version: Option<u32>) -> bool {
    version.is_some_and(|version| version >= SEALED_SINCE)
}

/// Writes our version, and returns when it is on disk.
pub(crate) fn write(log_folder: &Path) -> io::Result<()> {
    write_version(log_folder, FORMAT_VERSION)
}

/// Writes a version.
pub(crate) fn write_version(log_folder: &Path, version: u32) -> io::Result<()> {
    durable::write_whole(&log_folder.join(VERSION_FILE), format!("{TEXT}{version}\n").as_bytes())
}
