//! How much of the machine one shell line may take.
//!
//! The shell lowers its own limits, for good, before it becomes the one that runs the line; whatever
//! that starts inherits them.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::MetadataExt as _,
};

use rustix::process::geteuid;

use super::system;

/// Memory that one process may fill, in KiB: 4 GiB, enough for compilers and linkers.
const DATA_KIB_MAX: u64 = 4 * 1024 * 1024;
/// Addresses that one process may have, in KiB: 16 GiB. Runtimes such as Node reserve ten and more
/// and fill little; this bounds what is shared between processes, which does not count as data.
const ADDRESS_KIB_MAX: u64 = 16 * 1024 * 1024;
/// A file that is written, in KiB: 4 GiB, so that one line does not fill the disk with one file. Half
/// of that where the shell is not bash, which counts in smaller blocks.
const FILE_KIB_MAX: u64 = 4 * 1024 * 1024;
/// Processes and threads beside those that the server's user has already. A build on many cores
/// needs some hundred. The system does not hold root to it; [`super::watchman`] does.
pub(super) const PROCESSES_MAX: usize = 1_024;
/// Each of the folders that bubblewrap keeps in memory, in bytes: 1 GiB.
pub(super) const TEMPORARY_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// The words after the shell's name that make it run a line within the limits. A limit that is
/// lower already stays.
pub(super) fn arguments(line: &OsStr) -> [OsString; 4] {
    let processes = processes_of_user() + PROCESSES_MAX;
    let prologue = format!(
        "{{ ulimit -c 0; ulimit -d {DATA_KIB_MAX}; ulimit -v {ADDRESS_KIB_MAX}; ulimit -f {FILE_KIB_MAX}; ulimit -u \
         {processes}; }} 2>/dev/null; exec \"$0\" -c \"$1\""
    );
    ["-c".into(), prologue.into(), system::shell().into(), line.to_owned()]
}

/// Processes and threads of the user that the server runs as.
fn processes_of_user() -> usize {
    let user = geteuid().as_raw();
    let threads = |entry: fs::DirEntry| -> Option<usize> {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        let is_ours = entry.metadata().is_ok_and(|found| found.uid() == user);
        is_ours.then(|| fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count))
    };
    fs::read_dir("/proc").map_or(0, |entries| entries.flatten().filter_map(threads).sum())
}
