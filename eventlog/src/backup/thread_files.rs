//! The files of threads: what agents and people put into `{data}/threads`, in a backup.
//!
//! ```text
//! {backup}/threads/…        the files as they were, each at some moment during the backup
//! {backup}/threads.jsonl    each folder, file and link with its mode, length and BLAKE3 (`list`)
//! ```
//!
//! They are plain: the log's keys do not seal them. Those of a thread that is erased while the backup
//! is made are taken out again. Whoever writes in these folders may be an agent, so nothing is
//! reached through a link, neither while copying nor while restoring (`walk`).

use std::{
    collections::HashSet,
    ffi::OsString,
    fs::{self, File, Permissions},
    io::{self, BufRead as _, BufReader, BufWriter, Write as _},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Component, Path, PathBuf},
};

use domain::ids::ThreadId;
use serde::{Deserialize, Serialize};

use self::{
    list::{Entry, Listed},
    walk::{GoOn, Walk},
};
use super::{BackupError, FileEntry, Manifest, entries, io_error};
use crate::{chain::Hash, keyring::Keyring, sealer};

mod list;
#[cfg(test)]
mod tests;
mod walk;

/// The folder of the files, in the data folder and in a backup.
pub const THREADS_FOLDER: &str = "threads";
const LIST_FILE: &str = "threads.jsonl";
/// A line of the list: a path, which Linux keeps below 4 KiB, a link's target, and what else is said.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// What a backup says of the files of threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadFiles {
    /// The list of them.
    pub list: FileEntry,
    /// How many files there are.
    pub files: u64,
    /// Their bytes together.
    pub bytes: u64,
    /// What could not be copied: sockets, devices, what may not be read, folders that are nested too
    /// deep.
    pub left_out: u64,
}

/// The files as far as they are copied.
pub(super) struct Copied {
    list: Vec<Listed>,
    left_out: u64,
}

/// Copies the files into a backup that is being made.
pub(super) fn copy(from: &Path, backup: &Path, may_go_on: &mut GoOn<'_>) -> Result<Copied, BackupError> {
    let to = backup.join(THREADS_FOLDER);
    fs::create_dir(&to).map_err(io_error("create", &to))?;
    if is_inside(&to, from).map_err(io_error("look at", from))? {
        return Err(BackupError::InsideItself { folder: from.to_owned() });
    }
    let mut walk = Walk::new(&to, may_go_on);
    match File::open(from) {
        Ok(folder) => walk.copy_all(&folder)?,
        // No thread has had a file yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(io_error("open", from)(error)),
    }
    Ok(Copied { list: walk.list, left_out: walk.left_out })
}

fn is_inside(inner: &Path, outer: &Path) -> io::Result<bool> {
    match fs::canonicalize(outer) {
        Ok(outer) => Ok(fs::canonicalize(inner)?.starts_with(outer)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Copied {
    /// Takes out what belongs to threads that were erased meanwhile, and writes the list. Called when
    /// the keys are copied.
    pub(super) fn finish(mut self, backup: &Path, keyring: &Keyring) -> Result<ThreadFiles, BackupError> {
        let to = backup.join(THREADS_FOLDER);
        for name in self.erased(keyring) {
            let folder = to.join(&name);
            fs::remove_dir_all(&folder).map_err(io_error("remove", &folder))?;
            self.list.retain(|listed| !listed.path.starts_with(&name));
        }
        write_list(backup, &self.list)?;
        sync_all(backup).map_err(io_error("sync", backup))?;
        let (mut files, mut bytes) = (0, 0);
        for listed in &self.list {
            if let Entry::File { bytes: length, .. } = &listed.entry {
                files += 1;
                bytes += length;
            }
        }
        let list = entries::describe(backup, LIST_FILE)?;
        Ok(ThreadFiles { list, files, bytes, left_out: self.left_out })
    }

    /// The folders of erased threads.
    fn erased(&self, keyring: &Keyring) -> HashSet<OsString> {
        let first = |listed: &Listed| listed.path.iter().next().map(ToOwned::to_owned);
        let is_erased = |name: &OsString| {
            let thread_id = name.to_str().and_then(|name| ThreadId::new(name).ok());
            thread_id.is_some_and(|thread_id| keyring.is_destroyed(sealer::thread_scope(&thread_id)))
        };
        self.list.iter().filter_map(first).filter(is_erased).collect()
    }
}

fn write_list(backup: &Path, list: &[Listed]) -> Result<(), BackupError> {
    let path = backup.join(LIST_FILE);
    let write = || {
        let mut out = BufWriter::new(entries::create(&path)?);
        for listed in list {
            serde_json::to_writer(&mut out, listed)?;
            out.write_all(b"\n")?;
        }
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    };
    write().map_err(io_error("write", &path))
}

/// Syncs everything that was written on the file system: one sync instead of one for each file.
fn sync_all(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(folder)?)?)
}

/// Says whether the files of a backup are what was copied.
pub(super) fn check(backup: &Path, manifest: &Manifest) -> Result<(), BackupError> {
    let from = backup.join(THREADS_FOLDER);
    each(backup, manifest, &mut |listed| match listed.entry {
        Entry::File { bytes, blake3, .. } => check_file(&from.join(&listed.path), bytes, &blake3),
        Entry::Folder { .. } | Entry::Link { .. } => Ok(()),
    })
}

/// Puts the files of a backup into a data folder that is being made.
pub(super) fn restore(backup: &Path, manifest: &Manifest, data: &Path) -> Result<(), BackupError> {
    let to = data.join(THREADS_FOLDER);
    let (mut links, mut folders) = (Vec::new(), Vec::new());
    if manifest.threads.is_some() {
        fs::create_dir(&to).map_err(io_error("create", &to))?;
    }
    each(backup, manifest, &mut |listed| {
        let place = to.join(&listed.path);
        match listed.entry {
            Entry::Folder { mode } => {
                fs::create_dir(&place).map_err(io_error("create", &place))?;
                folders.push((place, mode));
                Ok(())
            }
            Entry::File { bytes, blake3, mode } => {
                let from = backup.join(THREADS_FOLDER).join(&listed.path);
                check_file(&from, bytes, &blake3)?;
                restore_file(&from, &place, mode)
            }
            Entry::Link { target } => {
                links.push((place, target));
                Ok(())
            }
        }
    })?;
    // Links come last, so that nothing is written through one, and modes after what is inside.
    for (place, target) in links {
        symlink(target, &place).map_err(io_error("make the link", &place))?;
    }
    for (place, mode) in folders.into_iter().rev() {
        let set = fs::set_permissions(&place, Permissions::from_mode(mode));
        set.map_err(io_error("set the mode of", &place))?;
    }
    sync_all(data).map_err(io_error("sync", data))
}

fn restore_file(from: &Path, place: &Path, mode: u32) -> Result<(), BackupError> {
    let copy = || {
        let mut out = entries::create(place)?;
        io::copy(&mut File::open(from)?, &mut out)?;
        out.set_permissions(Permissions::from_mode(mode))
    };
    copy().map_err(io_error("restore", place))
}

/// Says whether a file is what was copied. A link is nothing that making a backup puts there.
fn check_file(path: &Path, bytes: u64, blake3: &Hash) -> Result<(), BackupError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => found.len(),
        Ok(_) => return Err(entries::differs(path, "it is no plain file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(entries::differs(path, "it is missing"));
        }
        Err(error) => return Err(io_error("measure", path)(error)),
    };
    if found != bytes {
        return Err(entries::differs(path, &format!("it has {found} bytes, and had {bytes}")));
    }
    let mut hasher = blake3::Hasher::new();
    let file = File::open(path).map_err(io_error("open", path))?;
    hasher.update_reader(file).map_err(io_error("read", path))?;
    if hasher.finalize() == *blake3 {
        return Ok(());
    }
    Err(entries::differs(path, "its hash is not that of the list"))
}

/// Shows each entry of the list, of which every path is within the folder.
fn each(
    backup: &Path,
    manifest: &Manifest,
    visit: &mut dyn FnMut(Listed) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let Some(threads) = &manifest.threads else { return Ok(()) };
    let path = backup.join(LIST_FILE);
    entries::check(backup, &threads.list)?;
    let mut input = BufReader::new(File::open(&path).map_err(io_error("open", &path))?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = io::Read::take(&mut input, LINE_BYTES_MAX as u64);
        if limited.read_until(b'\n', &mut line).map_err(io_error("read", &path))? == 0 {
            return Ok(());
        }
        let damaged = |what: String| entries::differs(&path, &what);
        let listed: Listed = serde_json::from_slice(&line).map_err(|error| damaged(error.to_string()))?;
        if !is_within(&listed.path) {
            return Err(damaged(format!("it names {}, which is outside", listed.path.display())));
        }
        visit(listed)?;
    }
}

fn is_within(path: &Path) -> bool {
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    is_plain && path != PathBuf::new()
}
