//! Copying blobs into a backup or an export, and out of one. They stay sealed as they are.
//!
//! A blob that a copied event names was durable before that event, so it is there when the events
//! have been copied; unless its thread was erased meanwhile, and then its keys are not copied either.

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

use super::place::{self, BLOBS_FOLDER, STAGED_FOLDER};

/// Copies the blobs of one folder (a data folder or a backup) into another, durably.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (from.join(BLOBS_FOLDER), to.join(BLOBS_FOLDER));
    if !from.exists() {
        // It was made by a version without blobs, or of a log in memory.
        return Ok(());
    }
    remove_folder(&to)?;
    let mut copied = HashMap::new();
    // What is staged moves to its place and never back, so it is copied first.
    copy_folder(&from.join(STAGED_FOLDER), &to.join(STAGED_FOLDER), &mut copied)?;
    for thread in place::names_in(&from)?.into_iter().filter(|name| name != STAGED_FOLDER) {
        for scope in place::names_in(&from.join(&thread))? {
            let within = Path::new(&thread).join(scope);
            copy_folder(&from.join(&within), &to.join(&within), &mut copied)?;
        }
    }
    if to.exists() {
        // One sync for all of it.
        rustix::fs::syncfs(File::open(&to)?)?;
    }
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

/// Copies a folder's files; what is gone when its turn comes is left out. A file that has several
/// names is copied once.
fn copy_folder(from: &Path, to: &Path, copied: &mut HashMap<(u64, u64), PathBuf>) -> io::Result<()> {
    let names = place::names_in(from)?;
    if !names.is_empty() {
        place::create_folder(to)?;
    }
    for name in names {
        let target = to.join(&name);
        match copy_file(&from.join(name), &target, copied) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => place::remove_file(&target)?,
            done => done?,
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path, copied: &mut HashMap<(u64, u64), PathBuf>) -> io::Result<()> {
    let found = fs::metadata(from)?;
    let known = copied.get(&(found.dev(), found.ino())).filter(|_| found.nlink() > 1);
    if known.is_some_and(|known| fs::hard_link(known, to).is_ok()) {
        return Ok(());
    }
    fs::copy(from, to)?;
    copied.insert((found.dev(), found.ino()), to.to_owned());
    Ok(())
}
