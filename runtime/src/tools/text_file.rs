//! Reading and writing whole files for the tools that change them.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Write},
};

use uuid::Uuid;

use super::{ToolContext, file_call::ToolFailure};
use crate::sandbox::ResolvedPath;

/// A file that is edited as a whole, in memory.
pub(super) const EDITED_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Opens a regular file to read, and tells its length in bytes.
pub(super) fn open(context: &ToolContext, path: &ResolvedPath) -> Result<(File, u64), ToolFailure> {
    if path.host.is_dir() {
        return Err(ToolFailure::said(format!("{} is a folder; use ls", path.shown)));
    }
    let file = context.folders.open(path).map_err(|error| ToolFailure::io("read", path, error))?;
    let found = file.metadata().map_err(|error| ToolFailure::io("read", path, error))?;
    if !found.is_file() {
        return Err(ToolFailure::said(format!("{} is not a regular file and cannot be read", path.shown)));
    }
    Ok((file, found.len()))
}

/// Reads a whole text file of bounded size.
pub(super) fn read(context: &ToolContext, path: &ResolvedPath) -> Result<String, ToolFailure> {
    let (file, length) = open(context, path)?;
    if length > EDITED_BYTES_MAX {
        let path = &path.shown;
        return Err(ToolFailure::said(format!(
            "{path} is too large to edit ({length} bytes, at most {EDITED_BYTES_MAX}); use bash"
        )));
    }
    let mut bytes = Vec::new();
    file.take(EDITED_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(|error| ToolFailure::io("read", path, error))?;
    String::from_utf8(bytes).map_err(|error| not_text(path, error.as_bytes().len()))
}

/// The refusal of a file that is not UTF-8.
pub(super) fn not_text(path: &ResolvedPath, length: impl std::fmt::Display) -> ToolFailure {
    ToolFailure::said(format!(
        "{} is not text ({length} bytes); use bash to look at it, for example with file or xxd",
        path.shown
    ))
}

/// Replaces or makes a file in one step: a reader sees the old content or the new, never a part.
/// An existing file keeps its mode.
pub(super) fn replace(context: &ToolContext, path: &ResolvedPath, content: &str) -> Result<(), ToolFailure> {
    let failed = |error| ToolFailure::io("write", path, error);
    let folder = prepare_folder(context, path)?;
    let temporary = folder.join(format!(".remit-{}.tmp", Uuid::now_v7().simple()));
    let written = OpenOptions::new().write(true).create_new(true).open(&temporary).and_then(|mut file| {
        file.write_all(content.as_bytes())?;
        if let Ok(old) = fs::symlink_metadata(&path.host) {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&temporary, &path.host)
    });
    if written.is_err() {
        // The error of the write says more than one of the removal.
        drop(fs::remove_file(&temporary));
    }
    written.map_err(failed)
}

/// Adds to the end of a file, which is made if it is missing.
pub(super) fn append(context: &ToolContext, path: &ResolvedPath, content: &str) -> Result<(), ToolFailure> {
    let failed = |error| ToolFailure::io("write", path, error);
    prepare_folder(context, path)?;
    let mut file = context.folders.open_to_append(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(ToolFailure::said(format!("{} is not a regular file", path.shown)));
    }
    file.write_all(content.as_bytes()).map_err(failed)
}

/// Makes the folders above a file, and looks once more that they lie inside.
fn prepare_folder(context: &ToolContext, path: &ResolvedPath) -> Result<std::path::PathBuf, ToolFailure> {
    let failed = |error| ToolFailure::io("write", path, error);
    if path.host.is_dir() {
        return Err(ToolFailure::said(format!("{} is a folder; name a file in it", path.shown)));
    }
    let folder = path.host.parent().unwrap_or(&path.host);
    fs::create_dir_all(folder).map_err(failed)?;
    let real = fs::canonicalize(folder).map_err(failed)?;
    if real != folder || context.folders.shown(&real).is_none() {
        return Err(ToolFailure::said(format!("{} was moved meanwhile; try again", path.shown)));
    }
    Ok(real)
}
