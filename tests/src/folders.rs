//! Folders of files to work on.

use std::{collections::BTreeMap, fs, path::Path};

/// Writes these files below a folder.
pub fn write_files(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        write_bytes(folder, name, text.as_bytes());
    }
}

/// Writes a file of bytes below a folder.
pub fn write_bytes(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Everything below a folder, by its path: the bytes of files, nothing for folders. What cannot be
/// read is listed and has the length of its refusal.
pub fn contents(folder: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder_left) = left.pop() {
        let Ok(entries) = fs::read_dir(&folder_left) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !path.is_symlink() {
                found.insert(name, None);
                left.push(path);
            } else {
                found.insert(name, Some(fs::read(&path).unwrap_or_default()));
            }
        }
    }
    found
}
