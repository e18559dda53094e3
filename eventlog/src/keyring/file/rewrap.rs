//! Wrapping the keys of a folder with another master key.
//!
//! Slots are never wrapped anew where they stand: a crash in the middle would leave a file that needs
//! two master keys. So a whole file is written beside the old one, and takes its place in one step:
//!
//! ```text
//! 1  keys/threads.new  is written and synced
//! 2  keys/threads.old  becomes a second name of keys/threads
//! 3  keys/threads.new  is renamed to keys/threads
//! 4  what is left beside keys/threads is overwritten with zeros and removed
//! ```
//!
//! A crash before step 3 leaves the old file, one after it the new one. The next opening does step 4
//! again, before any key is made or destroyed, so that no destroyed key ever has a copy in the folder.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::Path,
};

use zeroize::Zeroizing;

use super::{GROW_SLOTS, KeyFile, MASTER_FILE, SLOTS_FILE, header, io_error, master_check, offset};
use crate::{
    durable,
    keyring::{
        MasterKey, Rewrapped,
        slot::{self, SLOT_BYTES, Slot},
    },
    open::OpenError,
    secret::SecretKey,
};

/// The file that is written beside the old one.
const NEW_FILE: &str = "threads.new";
/// The old one, until it is overwritten.
const OLD_FILE: &str = "threads.old";

impl KeyFile {
    /// Wraps every key with another master key. Gives what was done.
    pub(crate) fn rewrap(self, folder: &Path, to: &MasterKey) -> Result<Rewrapped, OpenError> {
        let to = &to.load(&folder.join(MASTER_FILE), false)?;
        let new = folder.join(NEW_FILE);
        let rewrapped = self.write_rewrapped(&new, to).map_err(|source| io_error("write", &new, source))?;
        let swap = || -> io::Result<()> {
            fs::hard_link(&self.path, folder.join(OLD_FILE))?;
            durable::move_to(&new, &self.path)
        };
        swap().map_err(|source| io_error("replace", &self.path, source))?;
        clear_leftovers(folder).map_err(|source| io_error("remove old keys from", folder, source))?;
        Ok(rewrapped)
    }

    /// Removes the generated master key of the folder, unless it is the one that wraps these keys.
    pub(crate) fn remove_replaced_master(&self, folder: &Path) -> Result<(), OpenError> {
        let path = folder.join(MASTER_FILE);
        let found = fs::read(&path).map(Zeroizing::new);
        if found.is_ok_and(|text| SecretKey::parse(&text).as_ref() == Ok(&self.master)) {
            return Ok(());
        }
        let removed = clear(&path, &self.path).and_then(|_| durable::sync_folder(folder));
        removed.map_err(|source| io_error("remove", &path, source))
    }

    /// Writes the same slots with every live key wrapped by the other master key. Slots that are
    /// damaged or have no key stay as they are.
    fn write_rewrapped(&self, path: &Path, to: &SecretKey) -> io::Result<Rewrapped> {
        let (file, mut done) = (durable::create(path)?, Rewrapped::default());
        let mut chunk = vec![0; GROW_SLOTS as usize * SLOT_BYTES];
        for start in (0..self.capacity).step_by(GROW_SLOTS as usize) {
            self.file.read_exact_at(&mut chunk, offset(start))?;
            let (all, _) = chunk.as_chunks_mut::<SLOT_BYTES>();
            for (number, bytes) in (start..).zip(all) {
                *bytes = match number {
                    0 => header(self.capacity, &master_check(to)),
                    _ => self.rewrapped(*bytes, number, to, &mut done)?,
                };
            }
            file.write_all_at(&chunk, offset(start))?;
        }
        file.sync_all()?;
        Ok(done)
    }

    fn rewrapped(
        &self,
        bytes: [u8; SLOT_BYTES],
        number: u32,
        to: &SecretKey,
        done: &mut Rewrapped,
    ) -> io::Result<[u8; SLOT_BYTES]> {
        let slot = match Slot::read(bytes) {
            slot::Read::Empty => return Ok(bytes),
            slot::Read::Damaged => {
                done.damaged += 1;
                return Ok(bytes);
            }
            slot::Read::Slot(slot) if slot.is_destroyed() => {
                done.destroyed += 1;
                return Ok(bytes);
            }
            slot::Read::Slot(slot) => slot,
        };
        let key = slot.unwrap(&self.master).ok_or_else(|| {
            let what = format!("the key in slot {number} of {} does not open", self.path.display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        })?;
        done.live += 1;
        Ok(*Slot::wrap(to, slot.thread(), slot.scope(), &key)?.bytes())
    }
}

/// Overwrites and removes what a change of the master key leaves beside the key file.
pub(super) fn clear_leftovers(folder: &Path) -> io::Result<()> {
    let mut is_changed = false;
    for name in [NEW_FILE, OLD_FILE] {
        is_changed |= clear(&folder.join(name), &folder.join(SLOTS_FILE))?;
    }
    if is_changed { durable::sync_folder(folder) } else { Ok(()) }
}

/// Overwrites a file with zeros, unless it is only a second name of one that is in use, and removes it.
/// Says whether there was one.
fn clear(path: &Path, in_use: &Path) -> io::Result<bool> {
    let file = match File::options().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let (found, kept) = (file.metadata()?, fs::metadata(in_use).ok());
    if kept.is_none_or(|kept| (kept.dev(), kept.ino()) != (found.dev(), found.ino())) {
        zero(&file, found.len())?;
    }
    fs::remove_file(path)?;
    Ok(true)
}

fn zero(file: &File, length: u64) -> io::Result<()> {
    let zeros = vec![0; GROW_SLOTS as usize * SLOT_BYTES];
    let mut at = 0;
    while at < length {
        let piece = (length - at).min(zeros.len() as u64);
        file.write_all_at(zeros.get(..usize::try_from(piece).unwrap_or(zeros.len())).unwrap_or(&zeros), at)?;
        at += piece;
    }
    file.sync_data()
}
