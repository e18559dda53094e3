//! Files that are there whole or not at all, and names that survive power loss.
//!
//! It must not know what is in the files.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// Nobody but the owner reads or writes.
const OWNER_ONLY: u32 = 0o600;
/// Ends the name of a file that is being written. What a crash left of one is written over.
const UNFINISHED: &str = "new";

/// Writes a file, in the place of one that may be there, and returns when it is on disk, its name too.
/// A crash leaves the file as it was, or as it is now.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension(UNFINISHED);
    let mut file = create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    move_to(&unfinished, path)
}

/// Makes an empty file that only its owner reads and writes. It is not on disk yet.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(OWNER_ONLY).open(path)
}

/// Gives a file or folder another name, and returns when the name is on disk.
pub(crate) fn move_to(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    to.parent().map_or(Ok(()), sync_folder)
}

/// Brings the names in a folder to the disk. A relative path of one part is in the working folder.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_a_leftover_hinders_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.key");
        fs::write(folder.path().join("keys.new"), "half of something longer").unwrap();
        for bytes in ["first", "2"] {
            write_whole(&path, bytes.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), bytes);
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, OWNER_ONLY);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
