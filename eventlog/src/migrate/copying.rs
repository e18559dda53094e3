//! Copying the folder of an engine.

use std::{fs, io, path::Path};

/// Files in folders of this name are written once and never changed.
const TABLES_FOLDER: &str = "tables";

/// Copies a folder. Tables are shared with the copy where the file system can do that: both only
/// ever read and remove them.
pub(super) fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    let are_tables = from.file_name().is_some_and(|name| name == TABLES_FOLDER);
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else if !are_tables || fs::hard_link(entry.path(), &target).is_err() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
