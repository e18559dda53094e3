//! The version of everything that is on disk.
//!
//! It is raised when an older program could no longer read what a newer one writes, or would harm
//! it by writing to it: a new key kind, a record version, another meaning of old bytes. Adding an
//! event type does not raise it. A program reads its own version and all before it.
//!
//! 1: everything in plain. 2: records of threads are sealed, and the keys are in `keys/`.

use crate::{
    engine::{Batch, Durability, Engine},
    keys::{self, INDEX},
    store::StoreError,
};

/// The version that this program writes.
pub(crate) const FORMAT_VERSION: u32 = 2;
/// The first version with sealed records.
const SEALED_SINCE: u32 = 2;

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

/// Reads the version of a log: none if it is new. Refuses a later one than ours.
pub(crate) fn check(engine: &Engine) -> Result<Option<u32>, FormatError> {
    match read(engine).map_err(FormatError::Store)? {
        Some(found) if found > FORMAT_VERSION => Err(FormatError::Newer { found }),
        known => Ok(known),
    }
}

/// Whether a log of this version may have sealed records.
pub(crate) fn is_sealed(version: Option<u32>) -> bool {
    version.is_some_and(|version| version >= SEALED_SINCE)
}

/// Gives a new log, or one of an earlier version, the current version.
pub(crate) fn raise(engine: &Engine, version: Option<u32>) -> Result<(), FormatError> {
    if version == Some(FORMAT_VERSION) {
        return Ok(());
    }
    write(engine, FORMAT_VERSION).map_err(FormatError::Store)
}

fn read(engine: &Engine) -> Result<Option<u32>, StoreError> {
    let value = engine.get(INDEX, &keys::meta::format_version())?;
    let decode = |value: Vec<u8>| {
        keys::meta::decode_value(&value)
            .map_err(|source| StoreError::Damaged { what: "the format version".to_owned(), source })
    };
    value.map(decode).transpose()
}

/// Writes a version.
pub(crate) fn write(engine: &Engine, version: u32) -> Result<(), StoreError> {
    let mut batch = Batch::new();
    batch.put(INDEX, keys::meta::format_version(), keys::meta::encode_value(version));
    Ok(engine.commit(batch, Durability::Synced)?)
}
