//! Makes a storage folder whole or not at all.
//!
//! The engine makes its folder file by file, and one that a crash left half-made can never be opened
//! again. So a new one is made beside its place, and moved there once it is complete.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{durable, engine::EngineError};

/// Ends the name of a folder that is being made. What a crash left of one is thrown away: nothing
/// was ever kept in it.
const UNFINISHED: &str = ".new";

/// Makes the folder by `make`, unless there is something in it already.
pub(super) fn ensure(
    folder: &Path,
    make: impl FnOnce(&Path) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let failed =
        |error: io::Error| EngineError::new(format!("make the storage in {}", folder.display()), error);
    if has_entries(folder).map_err(failed)? {
        return Ok(());
    }
    let unfinished = beside(folder);
    remove(&unfinished).map_err(failed)?;
    make(&unfinished)?;
    // An empty folder in its place is replaced.
    durable::move_to(&unfinished, folder).map_err(failed)
}

fn beside(folder: &Path) -> PathBuf {
    let mut name: OsString = folder.as_os_str().to_owned();
    name.push(UNFINISHED);
    PathBuf::from(name)
}

fn has_entries(folder: &Path) -> io::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
