//! A folder for one shell line's temporary files, gone when the line has ended.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use uuid::Uuid;

/// Owns the folder; dropping it removes the folder.
#[derive(Debug)]
pub(super) struct PrivateTemp {
    path: PathBuf,
}

impl PrivateTemp {
    pub(super) fn create() -> io::Result<Self> {
        let parent = fs::canonicalize(std::env::temp_dir())?;
        let path = parent.join(format!("remit-{}", Uuid::now_v7().simple()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateTemp {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove a temporary folder");
        }
    }
}
