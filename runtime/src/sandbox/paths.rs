//! From a path in an agent's words to a real path inside the thread's folders, or a refusal.
//!
//! A resolved path is free of symlinks up to what does not exist yet. Between resolving and
//! opening a process of the agent may move things, so an opened file is checked once more.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{ThreadFolders, VIRTUAL_OUTPUTS, VIRTUAL_ROOT, VIRTUAL_UPLOADS, VIRTUAL_WORKSPACE};

/// A path as an agent may give it; the kernel's own limit.
const PATH_BYTES_MAX: usize = 4_096;
/// How much of a refused path is repeated in the refusal.
const SHOWN_CHARS_MAX: usize = 200;

/// A path that may not be used. The text names what the agent gave and what is allowed, and
/// never where anything is on this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "path {} is refused because it {reason}; use a path relative to {VIRTUAL_WORKSPACE}, or one under \
     {VIRTUAL_WORKSPACE}, {VIRTUAL_UPLOADS} or {VIRTUAL_OUTPUTS}",
    shown(.given)
)]
pub struct PathRefused {
    /// The path as it was given.
    pub given: String,
    /// What is wrong with it.
    pub reason: PathRefusal,
}

/// What is wrong with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathRefusal {
    /// There is none.
    Empty,
    /// It, or one name in it, is longer than the system allows.
    TooLong,
    /// It holds a NUL byte.
    HasNul,
    /// It names a place outside the allowed folders.
    Outside,
    /// A symlink on the way leads outside the allowed folders.
    LinkOutside,
    /// It names the server's own files, directly or through a symlink.
    Hidden,
    /// A symlink on the way leads nowhere or in a circle.
    BrokenLink,
    /// It goes on below something that is not a folder.
    BelowFile,
    /// The system did not let it be looked at.
    Unreadable,
}

impl fmt::Display for PathRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "is empty",
            Self::TooLong => "is too long",
            Self::HasNul => "holds a NUL byte",
            Self::Outside => "leads outside the allowed folders",
            Self::LinkOutside => "goes through a link that leads outside the allowed folders",
            Self::Hidden => "leads to where the server keeps its own files",
            Self::BrokenLink => "goes through a link that leads nowhere",
            Self::BelowFile => "goes on below something that is not a folder",
            Self::Unreadable => "cannot be looked at",
        })
    }
}

/// Quotes the path, shortened, so that a hostile one cannot flood the answer.
fn shown(given: &str) -> String {
    let short: String = given.chars().take(SHOWN_CHARS_MAX).collect();
    format!("{short:?}")
}

/// A path inside the thread's folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedPath {
    /// Where it is on this machine; never shown.
    pub(crate) host: PathBuf,
    /// How the agent may name it: relative to the workspace where possible, else virtual.
    pub(crate) shown: String,
}

impl ThreadFolders {
    /// Finds the place that a relative or virtual path names. It need not exist.
    pub(crate) fn resolve(&self, given: &str) -> Result<ResolvedPath, PathRefused> {
        let refused = |reason| PathRefused { given: given.to_owned(), reason };
        let wanted = self.lexical(given).map_err(refused)?;
        // Asked before anything is looked at, so that no error tells what is there.
        if self.hides(&wanted) {
            return Err(refused(PathRefusal::Hidden));
        }
        let host = real_path(&wanted).map_err(refused)?;
        match self.shown(&host) {
            Some(shown) => Ok(ResolvedPath { host, shown }),
            None if self.hides(&host) => Err(refused(PathRefusal::Hidden)),
            None => Err(refused(PathRefusal::LinkOutside)),
        }
    }

    /// Where the place that a relative or virtual path names is on this machine, for parts of the
    /// runtime that look at files themselves, such as acceptance. It need not exist.
    pub fn host_path(&self, given: &str) -> Result<PathBuf, PathRefused> {
        self.resolve(given).map(|path| path.host)
    }

    /// Opens a resolved path to read, without following a link that appeared meanwhile and
    /// without waiting for the other end of a pipe.
    pub(crate) fn open(&self, path: &ResolvedPath) -> io::Result<File> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&path.host)?;
        self.check_opened(&file)?;
        Ok(file)
    }

    /// Opens a resolved path to write at its end.
    pub(crate) fn open_to_append(&self, path: &ResolvedPath) -> io::Result<File> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&path.host)?;
        self.check_opened(&file)?;
        Ok(file)
    }

    /// Refuses a file that turns out to lie elsewhere: a folder on the way was exchanged for a
    /// link after the path had been resolved. Without `/proc` there is nothing to ask.
    fn check_opened(&self, file: &File) -> io::Result<()> {
        match fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())) {
            Ok(real) if self.shown(&real).is_none() => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, "it was moved while it was opened"))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// How the agent may name a real path; nothing for one that is outside or hidden.
    pub(crate) fn shown(&self, real: &Path) -> Option<String> {
        if self.hides(real) {
            return None;
        }
        let (root, below) = self
            .roots()
            .into_iter()
            .filter_map(|(root, host)| Some((root, host, real.strip_prefix(host).ok()?)))
            .max_by_key(|(_, host, _)| host.as_os_str().len())
            .map(|(root, _, below)| (root, below.to_string_lossy().into_owned()))?;
        Some(match (root, below.as_str()) {
            (VIRTUAL_WORKSPACE, "") => ".".to_owned(),
            (VIRTUAL_WORKSPACE, _) => below,
            (_, "") => root.to_owned(),
            (_, _) => format!("{root}/{below}"),
        })
    }

    /// Follows `.` and `..` by their letters, so that they cannot be answered by a link, and puts
    /// the real folder in the place of the virtual one.
    fn lexical(&self, given: &str) -> Result<PathBuf, PathRefusal> {
        if given.is_empty() {
            return Err(PathRefusal::Empty);
        }
        if given.len() > PATH_BYTES_MAX {
            return Err(PathRefusal::TooLong);
        }
        if given.contains('\0') {
            return Err(PathRefusal::HasNul);
        }
        let mut path = String::new();
        if !given.starts_with('/') {
            path.push_str(VIRTUAL_WORKSPACE);
            path.push('/');
        }
        path.push_str(given);
        let mut names: Vec<&str> = Vec::new();
        for name in path.split('/') {
            match name {
                "" | "." => {}
                ".." if names.pop().is_none() => return Err(PathRefusal::Outside),
                ".." => {}
                name => names.push(name),
            }
        }
        let folded = format!("/{}", names.join("/"));
        let below_root = |(root, host): (&str, &Path)| {
            let below = folded.strip_prefix(root)?;
            let below = if below.is_empty() { below } else { below.strip_prefix('/')? };
            Some(if below.is_empty() { host.to_owned() } else { host.join(below) })
        };
        debug_assert!(VIRTUAL_WORKSPACE.starts_with(VIRTUAL_ROOT), "the roots lie together");
        self.roots().into_iter().find_map(below_root).ok_or(PathRefusal::Outside)
    }
}

/// Resolves every link of the part that exists, and leaves the rest as it is.
fn real_path(wanted: &Path) -> Result<PathBuf, PathRefusal> {
    let mut existing = wanted;
    let mut missing = Vec::new();
    loop {
        match fs::canonicalize(existing) {
            Ok(mut real) => {
                if !missing.is_empty() && !real.is_dir() {
                    return Err(PathRefusal::BelowFile);
                }
                real.extend(missing.iter().rev());
                return Ok(real);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(refusal(&error)),
        }
        if fs::symlink_metadata(existing).is_ok() {
            return Err(PathRefusal::BrokenLink);
        }
        let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else {
            return Err(PathRefusal::Unreadable);
        };
        missing.push(name);
        existing = parent;
    }
}

fn refusal(error: &io::Error) -> PathRefusal {
    match error.raw_os_error() {
        Some(libc::ENAMETOOLONG) => PathRefusal::TooLong,
        Some(libc::ENOTDIR) => PathRefusal::BelowFile,
        Some(libc::ELOOP) => PathRefusal::BrokenLink,
        Some(_) | None => PathRefusal::Unreadable,
    }
}

#[cfg(test)]
mod tests;
