//! Files of lines: written on from where they end, and read line by line.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use domain::limits::EVENT_BODY_BYTES_MAX;

use super::{ExportError, io_error};
use crate::backup::FileEntry;

/// An export has plain text of threads, so nobody else may read it.
pub(super) const OWNER_ONLY: u32 = 0o600;
/// Read and written at once.
const BUFFER_BYTES: usize = 256 * 1024;
/// A longer line is none of ours: the largest event, escaped, twice, with room for its envelope.
const LINE_BYTES_MAX: u64 = EVENT_BODY_BYTES_MAX as u64 * 8;

/// A file that is being written.
pub(super) struct Output {
    name: &'static str,
    path: PathBuf,
    out: BufWriter<File>,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Output {
    /// Goes on behind what was read of the file; what follows there is cut off.
    pub(super) fn after(
        folder: &Path,
        name: &'static str,
        read: Option<&Lines>,
    ) -> Result<Self, ExportError> {
        let path = folder.join(name);
        let bytes = read.map_or(0, |lines| lines.bytes);
        let open = || {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create(true).truncate(false).mode(OWNER_ONLY).open(&path)?;
            file.set_len(bytes)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        let file = open().map_err(io_error("write", &path))?;
        let hasher = read.map(|lines| lines.hasher.clone()).unwrap_or_default();
        Ok(Self { name, path, out: BufWriter::with_capacity(BUFFER_BYTES, file), hasher, bytes })
    }

    pub(super) fn put(&mut self, line: &str) -> Result<(), ExportError> {
        self.hasher.update(line.as_bytes());
        self.bytes += line.len() as u64;
        self.out.write_all(line.as_bytes()).map_err(io_error("write", &self.path))
    }

    /// Returns when everything is on disk.
    pub(super) fn finish(self) -> Result<FileEntry, ExportError> {
        let finish = || self.out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all();
        finish().map_err(io_error("write", &self.path))?;
        let blake3 = *self.hasher.finalize().as_bytes();
        Ok(FileEntry { name: self.name.to_owned(), bytes: self.bytes, blake3 })
    }
}

/// A file that is read line by line. What was accepted is what counts.
pub(super) struct Lines {
    path: PathBuf,
    input: BufReader<File>,
    line: Vec<u8>,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Lines {
    /// A file that is not there has no lines.
    pub(super) fn open(folder: &Path, name: &str) -> Result<Option<Self>, ExportError> {
        let path = folder.join(name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("open", &path)(error)),
        };
        let input = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok(Some(Self { path, input, line: Vec::new(), hasher: blake3::Hasher::new(), bytes: 0 }))
    }

    /// The next line with its end. None at the end of the file; a line that is too long comes cut.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, ExportError> {
        self.line.clear();
        let mut bounded = (&mut self.input).take(LINE_BYTES_MAX);
        bounded.read_until(b'\n', &mut self.line).map_err(io_error("read", &self.path))?;
        Ok((!self.line.is_empty()).then_some(&self.line))
    }

    /// The last line was as it should be.
    pub(super) fn accept(&mut self) {
        self.hasher.update(&self.line);
        self.bytes += self.line.len() as u64;
    }

    /// Whether all that was accepted is what the manifest says of the whole file.
    pub(super) fn is_all_of(&self, entry: &FileEntry) -> bool {
        self.bytes == entry.bytes && *self.hasher.finalize().as_bytes() == entry.blake3
    }
}
