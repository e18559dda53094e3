//! What a backup says of itself.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{BackupError, KEYS_FILE, KEYS_FOLDER, MASTER_FILE, SEGMENTS_FOLDER, ThreadFiles, io_error};
use crate::{
    blob,
    chain::Hash,
    format::{self, FormatError},
    position::Position,
    store::Head,
};

/// The format of backups that this program writes, and the only one that it reads. Formats 1
/// and 2 had every record and index entry by itself.
pub(super) const FORMAT: u32 = 3;
const MANIFEST_FILE: &str = "manifest.json";
/// The number of a new backup; each that is added has the next.
pub(super) const FIRST: u64 = 1;
/// Where the files of threads are once a backup was added to.
pub(super) const FILES_FOLDER: &str = "files";
/// What a manifest is called until it is whole.
const UNFINISHED_FILE: &str = "manifest.json.new";

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
    /// The files of blobs, sealed as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<FileEntry>,
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
        if format < FORMAT {
            return Err(BackupError::Older { found: format });
        }
        let manifest: Self = serde_json::from_slice(&text).map_err(unreadable)?;
        manifest.check(&path)?;
        Ok(manifest)
    }

    fn check(&self, path: &Path) -> Result<(), BackupError> {
        if self.log_format > format::FORMAT_VERSION {
            return Err(BackupError::Format(FormatError::Newer { found: self.log_format }));
        }
        let number = self.keys_number().ok_or_else(|| differs(path, "it lists other files"))?;
        let keys = [Some(keys_name(number, KEYS_FILE)), self.master_name(number)].into_iter().flatten();
        if !self.others().eq(keys) || !self.segments_follow() {
            return Err(differs(path, "it lists other files"));
        }
        let root = files_root(Path::new(""), number);
        if !self.blobs.iter().all(|file| blob::copy::is_in(&file.name, &root)) {
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

    /// Puts it in the place of the one before, if there is one.
    pub(super) fn write(&self, folder: &Path) -> Result<(), BackupError> {
        let path = folder.join(MANIFEST_FILE);
        let new = folder.join(UNFINISHED_FILE);
        let write = || {
            let mut text = serde_json::to_vec_pretty(self)?;
            text.push(b'\n');
            let mut file = File::create(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(folder)?.sync_all()
        };
        write().map_err(io_error("write", &path))
    }

    /// Whether a folder has one.
    pub(super) fn is_in(folder: &Path) -> bool {
        folder.join(MANIFEST_FILE).exists()
    }

    /// The files of the record, in order.
    pub(super) fn segments(&self) -> impl Iterator<Item = &FileEntry> {
        self.files.iter().filter(|file| Path::new(&file.name).starts_with(SEGMENTS_FOLDER))
    }

    /// The names of all other files.
    fn others(&self) -> impl Iterator<Item = String> {
        let others = self.files.iter().filter(|file| !Path::new(&file.name).starts_with(SEGMENTS_FOLDER));
        others.map(|file| file.name.clone())
    }

    /// Whether the segments are the record from its beginning on, without a gap.
    fn segments_follow(&self) -> bool {
        let mut address = 0;
        self.segments().all(|file| {
            let is_next = file.name == format!("{SEGMENTS_FOLDER}/{address:016x}.seg");
            address += file.bytes;
            is_next
        })
    }

    /// The number of the folder with the keys.
    pub(super) fn keys_number(&self) -> Option<u64> {
        let name = self.others().next()?;
        name.strip_prefix(KEYS_FOLDER)?.strip_prefix('/')?.split('/').next()?.parse().ok()
    }

    /// Which backup into this folder it is.
    pub(super) fn number(&self) -> u64 {
        self.keys_number().unwrap_or(FIRST)
    }

    /// The keys.
    pub(super) fn keys(&self, folder: &Path) -> Result<&FileEntry, BackupError> {
        let number = self.keys_number().unwrap_or_default();
        self.file(folder, &keys_name(number, KEYS_FILE))
    }

    /// The master key, if it is included.
    pub(super) fn master(&self, folder: &Path) -> Result<Option<&FileEntry>, BackupError> {
        let name = self.master_name(self.keys_number().unwrap_or_default());
        name.map(|name| self.file(folder, &name)).transpose()
    }

    fn master_name(&self, number: u64) -> Option<String> {
        match self.master_key {
            MasterKeyPlace::Included => Some(keys_name(number, MASTER_FILE)),
            MasterKeyPlace::Elsewhere => None,
        }
    }

    /// Where the log ended.
    pub(super) fn head(&self) -> Head {
        Head { position: self.position, chain: self.chain }
    }

    /// One of its files.
    fn file(&self, folder: &Path, name: &str) -> Result<&FileEntry, BackupError> {
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

/// The name of a file of keys.
pub(super) fn keys_name(number: u64, file: &str) -> String {
    format!("{KEYS_FOLDER}/{number}/{file}")
}

/// Where the files of threads are in a backup: beside the manifest, or, where one was added to, in a
/// folder with a number.
pub(super) fn files_root(folder: &Path, number: u64) -> PathBuf {
    if number == FIRST { folder.to_owned() } else { folder.join(FILES_FOLDER).join(number.to_string()) }
}
