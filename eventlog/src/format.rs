//! The version of everything that is on disk.
//!
//! It is raised when an older program could no longer read what a newer one writes, or would harm
//! it by writing to it: a new key kind, a record version, another meaning of old bytes. Adding an
//! event type does not raise it. A program reads its own version and all before it.

use crate::store::{EngineStore, StoreError};

/// The version that this program writes.
pub(crate) const FORMAT_VERSION: u32 = 1;

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
    /// The version could not be read or written.
    #[error("could not read the format version of the log")]
    Store(#[source] StoreError),
}

/// Checks the version of a log, and gives a new log the current one.
pub(crate) fn check(store: &EngineStore) -> Result<(), FormatError> {
    match store.format_version().map_err(FormatError::Store)? {
        Some(found) if found > FORMAT_VERSION => Err(FormatError::Newer { found }),
        Some(_) => Ok(()),
        None => store.set_format_version(FORMAT_VERSION).map_err(FormatError::Store),
    }
}
