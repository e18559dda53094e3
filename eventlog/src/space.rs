//! Room on the disk. Writers are refused while there is still some, so that the engine never meets a
//! full disk in the middle of its work, reads go on, and whoever frees space needs no restart.
//!
//! It must not know what is written. Whatever else fills the disk meanwhile may still make a commit
//! fail, and that poisons the log as every failed write does.

use std::{io, path::PathBuf};

use rustix::fs::StatVfs;

/// What is kept back on a large disk: what the engines of log and views hold in memory and must be
/// able to write as tables, twice over.
const RESERVE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// On a small disk this part of it is kept back.
const RESERVE_PART: u64 = 10;

/// The disk of a folder.
pub(crate) struct Space {
    folder: PathBuf,
    was_short: bool,
}

/// There is less room than is kept back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub(crate) folder: PathBuf,
    pub(crate) free_bytes: u64,
    pub(crate) reserve_bytes: u64,
}

impl Space {
    pub(crate) const fn new(folder: PathBuf) -> Self {
        Self { folder, was_short: false }
    }

    /// Whether there is too little room to write. A disk that cannot be asked has room: if it has
    /// not, the write says so.
    pub(crate) fn shortage(&mut self) -> Option<Shortage> {
        let shortage = self.look();
        match (&shortage, self.was_short) {
            (Some(Shortage { folder, free_bytes, .. }), false) => tracing::error!(
                folder = %folder.display(), free_bytes, "the disk is full: appends are refused until there is room"),
            (None, true) => tracing::warn!("there is room on the disk again: appends are taken"),
            (Some(_), true) | (None, false) => {}
        }
        self.was_short = shortage.is_some();
        shortage
    }

    /// The same for whoever writes beside the log.
    pub(crate) fn look(&self) -> Option<Shortage> {
        match rustix::fs::statvfs(&self.folder) {
            Ok(disk) => {
                let (free_bytes, reserve_bytes) = shortage(&disk)?;
                Some(Shortage { folder: self.folder.clone(), free_bytes, reserve_bytes })
            }
            Err(error) => {
                let error = io::Error::from(error);
                tracing::debug!(folder = %self.folder.display(), %error, "could not ask for free space");
                None
            }
        }
    }
}

/// What is free and what is kept back, if that is more.
fn shortage(disk: &StatVfs) -> Option<(u64, u64)> {
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let reserve = reserve(disk.f_blocks.saturating_mul(disk.f_frsize));
    (free < reserve).then_some((free, reserve))
}

fn reserve(disk_bytes: u64) -> u64 {
    (disk_bytes / RESERVE_PART).min(RESERVE_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_a_small_disk_is_kept_back_and_no_more_than_enough_of_a_large_one() {
        const MIB: u64 = 1024 * 1024;
        for (disk, expected) in [(0, 0), (100, 10), (2_560, 256), (100_000, 256)] {
            assert_eq!(reserve(disk * MIB), expected * MIB, "{disk} MiB");
        }
    }

    #[test]
    fn what_cannot_be_asked_has_room() {
        assert_eq!(Space::new(PathBuf::from("/nowhere/at/all")).shortage(), None);
    }
}
