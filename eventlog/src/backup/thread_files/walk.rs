//! Walking through folders that others write in at the same time: whatever is at a name is opened
//! below the folder that it was found in, and never through a link.

use std::{
    ffi::{CString, OsStr},
    fs::{self, File},
    io::{self, Read as _, Write as _},
    ops::ControlFlow,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::list::{Entry, Listed};
use crate::backup::{BackupError, entries, io_error};

/// Folders in folders that are followed: each holds a file descriptor while what is in it is copied.
const DEPTH_MAX: usize = 64;
/// Read and written at once.
const CHUNK_BYTES: usize = 256 * 1024;
/// The permissions that are kept; never those that lend the owner's rights.
const MODE_BITS: u32 = 0o777;

/// Says before each piece of work whether to go on.
pub(in crate::backup) type GoOn<'a> = dyn FnMut() -> ControlFlow<()> + 'a;

/// A walk, and what it has copied.
pub(super) struct Walk<'a> {
    to: &'a Path,
    may_go_on: &'a mut GoOn<'a>,
    chunk: Vec<u8>,
    pub(super) list: Vec<Listed>,
    pub(super) left_out: u64,
}

impl<'a> Walk<'a> {
    pub(super) fn new(to: &'a Path, may_go_on: &'a mut GoOn<'a>) -> Self {
        Self { to, may_go_on, chunk: vec![0; CHUNK_BYTES], list: Vec::new(), left_out: 0 }
    }

    /// Copies what is in a folder.
    pub(super) fn copy_all(&mut self, from: &File) -> Result<(), BackupError> {
        self.folder(from.as_fd(), Path::new(""), 0)
    }

    fn folder(&mut self, from: BorrowedFd<'_>, path: &Path, depth: usize) -> Result<(), BackupError> {
        let names = match names(from) {
            Ok(names) => names,
            Err(error) => {
                self.leave_out(path, &error);
                return Ok(());
            }
        };
        for name in names {
            if (self.may_go_on)().is_break() {
                return Err(BackupError::Stopped);
            }
            let path = path.join(OsStr::from_bytes(name.as_bytes()));
            match self.entry(from, &name, &path, depth)? {
                Ok(()) => {}
                // It was removed while it was looked at.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.leave_out(&path, &error),
            }
        }
        Ok(())
    }

    /// Copies what is at a name. The inner error is about what was to be read, the outer one about
    /// the backup.
    fn entry(
        &mut self,
        from: BorrowedFd<'_>,
        name: &CString,
        path: &Path,
        depth: usize,
    ) -> Result<io::Result<()>, BackupError> {
        let found = match rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error.into())),
        };
        let mode = found.st_mode & MODE_BITS;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory if depth >= DEPTH_MAX => Ok(Err(io::Error::other("it is nested too deep"))),
            FileType::Directory => match open(from, name, OFlags::DIRECTORY) {
                Ok(folder) => {
                    let to = self.to.join(path);
                    fs::create_dir(&to).map_err(io_error("create", &to))?;
                    self.list.push(Listed { path: path.to_owned(), entry: Entry::Folder { mode } });
                    self.folder(folder.as_fd(), path, depth + 1).map(Ok)
                }
                Err(error) => Ok(Err(error)),
            },
            FileType::RegularFile => match open(from, name, OFlags::empty()) {
                Ok(file) => self.file(file, path, mode),
                Err(error) => Ok(Err(error)),
            },
            FileType::Symlink => Ok(self.link(from, name, path)),
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Ok(Err(io::Error::other("it is neither a file nor a folder nor a link"))),
        }
    }

    fn link(&mut self, from: BorrowedFd<'_>, name: &CString, path: &Path) -> io::Result<()> {
        let target = rustix::fs::readlinkat(from, name, Vec::new())?;
        let target = PathBuf::from(std::ffi::OsString::from_vec(target.into_bytes()));
        self.list.push(Listed { path: path.to_owned(), entry: Entry::Link { target } });
        Ok(())
    }

    fn file(&mut self, mut file: File, path: &Path, mode: u32) -> Result<io::Result<()>, BackupError> {
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            return Ok(Err(io::Error::other("it became something else while it was opened")));
        }
        let to = self.to.join(path);
        let mut out = entries::create(&to).map_err(io_error("create", &to))?;
        let mut hasher = blake3::Hasher::new();
        loop {
            if (self.may_go_on)().is_break() {
                return Err(BackupError::Stopped);
            }
            let read = match file.read(&mut self.chunk) {
                Ok(0) => break,
                Ok(count) => self.chunk.get(..count).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    fs::remove_file(&to).map_err(io_error("remove", &to))?;
                    return Ok(Err(error));
                }
            };
            hasher.update(read);
            out.write_all(read).map_err(io_error("write", &to))?;
        }
        let (bytes, blake3) = (hasher.count(), *hasher.finalize().as_bytes());
        self.list.push(Listed { path: path.to_owned(), entry: Entry::File { mode, bytes, blake3 } });
        Ok(Ok(()))
    }

    fn leave_out(&mut self, path: &Path, error: &io::Error) {
        tracing::warn!(path = %path.display(), %error, "a file of a thread is not in the backup");
        self.left_out += 1;
    }
}

fn names(folder: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.as_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Opens without following a link, and without waiting for whoever writes into a pipe.
fn open(from: BorrowedFd<'_>, name: &CString, more: OFlags) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | more;
    Ok(File::from(rustix::fs::openat(from, name, flags, Mode::empty())?))
}
