//! Makes a storage folder whole or not at all.
//!
//! The engine makes its folder file by file, and one that a crash left half-made can never be opened
//! again. So a new one is made beside its place, and moved there once it is complete.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use crate::engine::EngineError;

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
    fs::rename(&unfinished, folder).map_err(failed)?;
    folder.parent().map_or(Ok(()), sync).map_err(failed)
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

/// A name is durable once its folder is synced. A relative path of one part is in the working folder.
fn sync(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}
