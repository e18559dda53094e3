//! Copying blobs into a backup or an export, and out of one. They stay sealed as they are.
//!
//! A blob that a copied event names was durable before that event, so it is there when the events
//! have been copied; unless its thread was erased meanwhile, and then its keys are not copied either.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read as _},
    ops::ControlFlow,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

use super::place::{self, BLOBS_FOLDER, STAGED_FOLDER};

/// Bytes that are copied before whoever wants the copy is asked whether it is to go on.
const PIECE_BYTES: u64 = 16 * 1024 * 1024;

/// Says whether a copy is to go on.
pub(crate) type MayGoOn<'a> = dyn FnMut() -> ControlFlow<()> + 'a;

/// Copies the blobs of one folder (a data folder or a backup) into another, durably, unless it is told
/// to stop. A file that is the same in an earlier copy is shared with that.
pub(crate) fn copy(
    from: &Path,
    to: &Path,
    earlier: Option<&Path>,
    may_go_on: &mut MayGoOn<'_>,
) -> io::Result<ControlFlow<()>> {
    let (from, to) = (from.join(BLOBS_FOLDER), to.join(BLOBS_FOLDER));
    let earlier = earlier.map(|earlier| earlier.join(BLOBS_FOLDER));
    if !from.exists() {
        // It was made by a version without blobs, or of a log in memory.
        return Ok(ControlFlow::Continue(()));
    }
    remove_folder(&to)?;
    let mut copying = Copying { copied: HashMap::new(), root: to.clone(), earlier, may_go_on };
    // What is staged moves to its place and never back, so it is copied first.
    let mut folders = vec![PathBuf::from(STAGED_FOLDER)];
    for thread in place::names_in(&from)?.into_iter().filter(|name| name != STAGED_FOLDER) {
        let scopes = place::names_in(&from.join(&thread))?;
        folders.extend(scopes.into_iter().map(|scope| Path::new(&thread).join(scope)));
    }
    for within in folders {
        if copying.folder(&from.join(&within), &to.join(&within))?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    if to.exists() {
        // One sync for all of it.
        rustix::fs::syncfs(File::open(&to)?)?;
    }
    Ok(ControlFlow::Continue(()))
}

/// The same to the end.
pub(crate) fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    let _ = copy(from, to, None, &mut || ControlFlow::Continue(()))?;
    Ok(())
}

/// Removes the blobs of a backup.
pub(crate) fn remove(from: &Path) -> io::Result<()> {
    remove_folder(&from.join(BLOBS_FOLDER))
}

/// Whether a name, as a manifest lists it, leads to where the blobs of a copy are.
pub(crate) fn is_in(name: &str, root: &Path) -> bool {
    let name = Path::new(name);
    let is_plain = name.components().all(|part| matches!(part, Component::Normal(_)));
    is_plain && name.starts_with(root.join(BLOBS_FOLDER))
}

/// The files of all blobs in a folder, by their paths within it.
pub(crate) fn files(of: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::from(BLOBS_FOLDER)]);
    while let Some(folder) = folders.pop() {
        for name in place::names_in(&of.join(&folder))? {
            let path = folder.join(name);
            if of.join(&path).is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// What an earlier attempt left.
fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// A copy under way.
struct Copying<'a> {
    /// Where files that have several names were copied to.
    copied: HashMap<(u64, u64), PathBuf>,
    root: PathBuf,
    /// An earlier copy.
    earlier: Option<PathBuf>,
    may_go_on: &'a mut MayGoOn<'a>,
}

impl Copying<'_> {
    /// Copies a folder's files; what is gone when its turn comes is left out.
    fn folder(&mut self, from: &Path, to: &Path) -> io::Result<ControlFlow<()>> {
        let names = place::names_in(from)?;
        if !names.is_empty() {
            place::create_folder(to)?;
        }
        for name in names {
            let target = to.join(&name);
            match self.file(&from.join(name), &target) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => place::remove_file(&target)?,
                Ok(ControlFlow::Break(())) => return Ok(ControlFlow::Break(())),
                done => drop(done?),
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Copies a file. One that has several names is copied once.
    fn file(&mut self, from: &Path, to: &Path) -> io::Result<ControlFlow<()>> {
        let found = fs::metadata(from)?;
        let inode = (found.dev(), found.ino());
        if self.copied.get(&inode).is_some_and(|known| fs::hard_link(known, to).is_ok()) {
            return Ok(ControlFlow::Continue(()));
        }
        if self.is_shared(from, to)? {
            return Ok((self.may_go_on)());
        }
        let (source, mut file) = (File::open(from)?, File::create(to)?);
        file.set_permissions(found.permissions())?;
        while io::copy(&mut (&source).take(PIECE_BYTES), &mut file)? > 0 {
            if (self.may_go_on)().is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if found.nlink() > 1 {
            self.copied.insert(inode, to.to_owned());
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Whether the earlier copy has the same file, which is then a name of both. Both are read and
    /// compared, so that nothing is shared that the earlier copy has lost.
    fn is_shared(&self, from: &Path, to: &Path) -> io::Result<bool> {
        let Some(earlier) = &self.earlier else { return Ok(false) };
        let Ok(within) = to.strip_prefix(&self.root) else { return Ok(false) };
        let known = earlier.join(within);
        let is_as_long = fs::metadata(&known)
            .is_ok_and(|known| fs::metadata(from).is_ok_and(|from| from.len() == known.len()));
        Ok(is_as_long && hash_of(&known)? == hash_of(from)? && fs::hard_link(known, to).is_ok())
    }
}

fn hash_of(path: &Path) -> io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(*hasher.finalize().as_bytes())
}
