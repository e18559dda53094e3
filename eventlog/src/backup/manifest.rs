//! What a backup says of itself.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{BackupError, FILES, MASTER_FILE, ThreadFiles, io_error};
use crate::{
    chain::Hash,
    format::{self, FormatError},
    position::Position,
    store::Head,
};

/// The format of backups that this program writes, and the last that it reads.
pub(super) const FORMAT: u32 = 2;
const MANIFEST_FILE: &str = "manifest.json";

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The format of the backup.
    pub format: u32,
    /// The format of the log.
    pub log_format: u32,
    /// The last position.
    pub position: Position,
    /// The chain of the log after it. 64 hexadecimal digits in JSON.
    #[serde(with = "crate::recorded::hex_hash")]
    pub chain: Hash,
    /// How many events there are.
    pub events: u64,
    /// How many commits there are.
    pub commits: u64,
    /// When the backup was made.
    pub taken_at: Timestamp,
    /// Where the master key is.
    pub master_key: MasterKeyPlace,
    /// The files of the log.
    pub files: Vec<FileEntry>,
    /// The files of threads; absent when they were left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<ThreadFiles>,
}

/// Where the master key of a backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MasterKeyPlace {
    /// In the backup: whoever has the backup can read it.
    Included,
    /// Where it was given from. Restoring needs it.
    Elsewhere,
}

/// One file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its path within the backup.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// The hash of its bytes. 64 hexadecimal digits in JSON.
    #[serde(with = "crate::recorded::hex_hash")]
    pub blake3: Hash,
}

impl Manifest {
    /// Reads the manifest of a backup that this program understands.
    pub fn read(folder: &Path) -> Result<Self, BackupError> {
        let path = folder.join(MANIFEST_FILE);
        if !path.exists() {
            return Err(BackupError::NoBackup { folder: folder.to_owned() });
        }
        let text = fs::read(&path).map_err(io_error("read", &path))?;
        let unreadable = |source| BackupError::Manifest { path: path.clone(), source };
        // The format says whether the rest can be understood.
        let Format { format } = serde_json::from_slice(&text).map_err(unreadable)?;
        if format > FORMAT {
            return Err(BackupError::Newer { found: format });
        }
        let manifest: Self = serde_json::from_slice(&text).map_err(unreadable)?;
        manifest.check(&path)?;
        Ok(manifest)
    }

    fn check(&self, path: &Path) -> Result<(), BackupError> {
        if self.log_format > format::FORMAT_VERSION {
            return Err(BackupError::Format(FormatError::Newer { found: self.log_format }));
        }
        let master = match self.master_key {
            MasterKeyPlace::Included => Some(MASTER_FILE),
            MasterKeyPlace::Elsewhere => None,
        };
        let expected = FILES.into_iter().chain(master);
        if !expected.eq(self.files.iter().map(|file| file.name.as_str())) {
            return Err(differs(path, "it lists other files"));
        }
        if self.events != self.position.get() {
            return Err(differs(path, "it has another number of events than the position says"));
        }
        Ok(())
    }

    /// Says that the files hold something else.
    pub(super) fn differs(folder: &Path, what: &str) -> BackupError {
        differs(&folder.join(MANIFEST_FILE), what)
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), BackupError> {
        let path = folder.join(MANIFEST_FILE);
        let write = || {
            let mut text = serde_json::to_vec_pretty(self)?;
            text.push(b'\n');
            let mut file = File::create_new(&path)?;
            file.write_all(&text)?;
            file.sync_all()
        };
        write().map_err(io_error("write", &path))
    }

    /// Where the log ended.
    pub(super) fn head(&self) -> Head {
        Head { position: self.position, chain: self.chain }
    }

    /// One of its files.
    pub(super) fn file(&self, folder: &Path, name: &str) -> Result<&FileEntry, BackupError> {
        let missing = || Self::differs(folder, "it lists other files");
        self.files.iter().find(|file| file.name == name).ok_or_else(missing)
    }
}

#[derive(Deserialize)]
struct Format {
    format: u32,
}

fn differs(path: &Path, what: &str) -> BackupError {
    BackupError::ManifestDiffers { path: path.to_owned(), what: what.to_owned() }
}
