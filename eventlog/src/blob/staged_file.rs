//! A file that is being written, and is gone when nobody finishes it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{
    header::HEADER_BYTES,
    place::{self, Place},
};
use crate::{durable, secret};

/// Removed when it is dropped, unless it was kept.
#[derive(Debug)]
pub(super) struct StagedFile {
    file: File,
    path: PathBuf,
    is_kept: bool,
}

impl StagedFile {
    /// A new file with room for its header.
    pub(super) fn create(place: &Place) -> io::Result<Self> {
        let path = place.staged(&random_stem()?);
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(&[0; HEADER_BYTES])?;
        Ok(Self { file, path, is_kept: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn write(&mut self, stored: &[u8]) -> io::Result<()> {
        self.file.write_all(stored)
    }

    /// Writes the header, brings all of it to the disk and keeps it. Gives its stem.
    pub(super) fn keep(mut self, header: &[u8]) -> io::Result<String> {
        self.file.write_all_at(header, 0)?;
        self.file.sync_all()?;
        if let Some(folder) = self.path.parent() {
            durable::sync_folder(folder)?;
        }
        self.is_kept = true;
        Ok(place::name_of(&self.path).to_owned())
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        // What remains is removed when the log is opened next.
        if !self.is_kept
            && let Err(error) = place::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "an unfinished blob could not be removed");
        }
    }
}

/// A name that nobody has.
pub(super) fn random_stem() -> io::Result<String> {
    let mut bytes = [0; 16];
    secret::fill_random(&mut bytes)?;
    Ok(hex::encode(bytes))
}
