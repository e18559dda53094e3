//! Files of pairs, and whole files, with their hashes.
//!
//! ```text
//! pair   u32 length of the key · key · u32 length of the value · value
//! ```

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, BufWriter, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use super::{BackupError, FileEntry, io_error};
use crate::engine::Pair;

/// A backup can have keys in it, so nobody else may read it.
const OWNER_ONLY: u32 = 0o600;
/// Read and written at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// Creates a file that only its owner can read.
pub(super) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(path)
}

/// Writes pairs.
pub(super) struct EntryWriter {
    name: &'static str,
    path: PathBuf,
    out: BufWriter<File>,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl EntryWriter {
    pub(super) fn create(folder: &Path, name: &'static str) -> Result<Self, BackupError> {
        let path = folder.join(name);
        let file = create(&path).map_err(io_error("create", &path))?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Self { name, path, out, hasher: blake3::Hasher::new(), bytes: 0 })
    }

    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), BackupError> {
        for part in [key, value] {
            let too_long = |_| io::Error::other("an entry is longer than 4 GiB");
            let length =
                u32::try_from(part.len()).map_err(too_long).map_err(io_error("write", &self.path))?;
            self.write(&length.to_be_bytes())?;
            self.write(part)?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes).map_err(io_error("write", &self.path))
    }

    /// Returns when everything is on disk.
    pub(super) fn finish(self) -> Result<FileEntry, BackupError> {
        let finish = || self.out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all();
        finish().map_err(io_error("write", &self.path))?;
        Ok(FileEntry {
            name: self.name.to_owned(),
            bytes: self.bytes,
            blake3: *self.hasher.finalize().as_bytes(),
        })
    }
}

/// Reads pairs, and says at the end whether they are what was written.
pub(super) struct EntryReader {
    path: PathBuf,
    input: BufReader<File>,
    hasher: blake3::Hasher,
    left: u64,
    expected: [u8; 32],
}

impl EntryReader {
    pub(super) fn open(folder: &Path, entry: &FileEntry) -> Result<Self, BackupError> {
        let path = folder.join(&entry.name);
        let file = open_whole(&path, entry)?;
        let input = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok(Self { path, input, hasher: blake3::Hasher::new(), left: entry.bytes, expected: entry.blake3 })
    }

    /// The next pair. None after the last, when the hash was right.
    pub(super) fn next(&mut self) -> Result<Option<Pair>, BackupError> {
        if self.left > 0 {
            return Ok(Some((self.part()?, self.part()?)));
        }
        if *self.hasher.finalize().as_bytes() != self.expected {
            return Err(differs(&self.path, "its hash is not the manifest's"));
        }
        Ok(None)
    }

    fn part(&mut self) -> Result<Vec<u8>, BackupError> {
        let length = self.take(4)?;
        let length = length.first_chunk().map_or(0, |bytes| u64::from(u32::from_be_bytes(*bytes)));
        self.take(length)
    }

    /// A length beyond the file's end is never read, and never allocated.
    fn take(&mut self, count: u64) -> Result<Vec<u8>, BackupError> {
        if count > self.left {
            return Err(differs(&self.path, "an entry goes beyond its end"));
        }
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(usize::MAX)];
        self.input.read_exact(&mut bytes).map_err(io_error("read", &self.path))?;
        self.hasher.update(&bytes);
        self.left -= count;
        Ok(bytes)
    }
}

/// Describes a file that is there.
pub(super) fn describe(folder: &Path, name: &str) -> Result<FileEntry, BackupError> {
    let path = folder.join(name);
    let mut hasher = blake3::Hasher::new();
    let file = File::open(&path).map_err(io_error("open", &path))?;
    hasher.update_reader(file).map_err(io_error("read", &path))?;
    Ok(FileEntry { name: name.to_owned(), bytes: hasher.count(), blake3: *hasher.finalize().as_bytes() })
}

/// Says whether a whole file is what was written.
pub(super) fn check(folder: &Path, entry: &FileEntry) -> Result<(), BackupError> {
    let path = folder.join(&entry.name);
    open_whole(&path, entry)?;
    if describe(folder, &entry.name)? == *entry {
        return Ok(());
    }
    Err(differs(&path, "its hash is not the manifest's"))
}

fn open_whole(path: &Path, entry: &FileEntry) -> Result<File, BackupError> {
    if !path.exists() {
        return Err(differs(path, "it is missing"));
    }
    let found = fs::metadata(path).map_err(io_error("measure", path))?.len();
    if found != entry.bytes {
        return Err(differs(path, &format!("it has {found} bytes, and had {}", entry.bytes)));
    }
    File::open(path).map_err(io_error("open", path))
}

pub(super) fn differs(path: &Path, what: &str) -> BackupError {
    BackupError::FileDiffers { path: path.to_owned(), what: what.to_owned() }
}
