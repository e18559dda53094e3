//! A folder that is made beside its place, and moved there when it is whole.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use super::{BackupError, io_error};

/// Ends the name of a folder that is being made. What a crash left of one is thrown away by the
/// next attempt.
const SUFFIX: &str = ".unfinished";
const OWNER_ONLY: u32 = 0o700;

/// Removed when it is dropped.
pub(super) struct Unfinished {
    pub(super) folder: PathBuf,
    target: PathBuf,
    is_finished: bool,
}

impl Unfinished {
    /// Begins a folder. Its place must be free, or an empty folder.
    pub(super) fn begin(target: &Path) -> Result<Self, BackupError> {
        // Without a trailing separator, behind which a suffix would name something inside.
        let target: PathBuf = target.components().collect();
        let target = target.as_path();
        if !is_free(target).map_err(io_error("look into", target))? {
            return Err(BackupError::NotEmpty { folder: target.to_owned() });
        }
        let mut name = target.as_os_str().to_owned();
        name.push(SUFFIX);
        let folder = PathBuf::from(name);
        remove(&folder).map_err(io_error("remove", &folder))?;
        let make = || DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(&folder);
        make().map_err(io_error("create", &folder))?;
        Ok(Self { folder, target: target.to_owned(), is_finished: false })
    }

    /// Moves it to its place, where it survives a power loss.
    pub(super) fn finish(mut self) -> Result<(), BackupError> {
        let finish = || {
            File::open(&self.folder)?.sync_all()?;
            // An empty folder in its place is replaced.
            fs::rename(&self.folder, &self.target)?;
            let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
        };
        finish().map_err(io_error("finish", &self.target))?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_finished {
            // What remains is removed by the next attempt.
            drop(remove(&self.folder));
        }
    }
}

fn is_free(folder: &Path) -> io::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
