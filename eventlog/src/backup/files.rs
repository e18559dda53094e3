//! Whole files, or the first bytes of files, with their hashes.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use super::{BackupError, FileEntry, io_error};

/// A backup can have keys in it, so nobody else may read it.
const OWNER_ONLY: u32 = 0o600;

/// Creates a file that only its owner can read.
pub(super) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(path)
}

/// Opens or creates a file that only its owner can read.
pub(super) fn open_to_add(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(OWNER_ONLY).open(path)
}

/// Describes a file that is there.
pub(super) fn describe(folder: &Path, name: &str) -> Result<FileEntry, BackupError> {
    describe_front(folder, name, u64::MAX)
}

fn describe_front(folder: &Path, name: &str, bytes: u64) -> Result<FileEntry, BackupError> {
    let path = folder.join(name);
    let mut hasher = blake3::Hasher::new();
    let file = File::open(&path).map_err(io_error("open", &path))?;
    hasher.update_reader(file.take(bytes)).map_err(io_error("read", &path))?;
    Ok(FileEntry { name: name.to_owned(), bytes: hasher.count(), blake3: *hasher.finalize().as_bytes() })
}

/// Says whether a file is what was written. Something may follow: what a backup that was cut off
/// had added.
pub(super) fn check(folder: &Path, entry: &FileEntry) -> Result<(), BackupError> {
    let path = folder.join(&entry.name);
    check_length(&path, entry)?;
    if describe_front(folder, &entry.name, entry.bytes)? == *entry {
        return Ok(());
    }
    Err(differs(&path, "its hash is not the manifest's"))
}

/// Says whether a file is there and long enough.
pub(super) fn check_length(path: &Path, entry: &FileEntry) -> Result<(), BackupError> {
    if !path.exists() {
        return Err(differs(path, "it is missing"));
    }
    let found = fs::metadata(path).map_err(io_error("measure", path))?.len();
    if found < entry.bytes {
        return Err(differs(path, &format!("it has {found} bytes, and had {}", entry.bytes)));
    }
    Ok(())
}

/// Copies what an entry describes into a new file, and checks it on the way.
pub(super) fn copy(folder: &Path, entry: &FileEntry, to: &Path) -> Result<(), BackupError> {
    let from = folder.join(&entry.name);
    check_length(&from, entry)?;
    let mut hasher = blake3::Hasher::new();
    let mut copy = || {
        let mut source = File::open(&from)?.take(entry.bytes);
        let mut file = create(to)?;
        let mut buffer = vec![0; 1024 * 1024];
        loop {
            let count = source.read(&mut buffer)?;
            let bytes = buffer.get(..count).unwrap_or_default();
            if bytes.is_empty() {
                return file.sync_all();
            }
            hasher.update(bytes);
            io::Write::write_all(&mut file, bytes)?;
        }
    };
    copy().map_err(io_error("copy a file of the backup to", to))?;
    if *hasher.finalize().as_bytes() == entry.blake3 {
        return Ok(());
    }
    Err(differs(&from, "its hash is not the manifest's"))
}

pub(super) fn differs(path: &Path, what: &str) -> BackupError {
    BackupError::FileDiffers { path: path.to_owned(), what: what.to_owned() }
}
