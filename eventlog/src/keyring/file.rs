//! The key file, `keys/threads`: slots that are written where they stand.
//!
//! ```text
//! slot 0   "RMTKEYS1" · u32 slots · 4 zero · 16 check of the master key · zeros · 16 checksum
//! slot n   a key (see `slot`), or zeros
//! ```
//!
//! The file grows by [`GROW_SLOTS`] zeroed slots at a time, and slot 0 says how many there are, so
//! that a file that was cut is noticed. There is no journal and no copy: overwriting a slot and
//! syncing leaves no older version in the folder. (A file system that copies on write, or a disk
//! that remaps blocks, may keep one below the reach of any program: keep the master key elsewhere
//! where that matters.)

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{
    ListedKey, MasterKey, ScopeId, Slot,
    slot::{self, SLOT_BYTES},
};
use crate::{codec::bytes::Reader, open::OpenError, secret::SecretKey};

mod rewrap;

const MASTER_FILE: &str = "master.key";
const SLOTS_FILE: &str = "threads";
const MAGIC: &[u8; 8] = b"RMTKEYS1";
/// Slots that are added at once: 64 KiB, one sync of the file's length for 512 new keys.
const GROW_SLOTS: u32 = 512;

/// What belongs to a copy of the key file.
pub(crate) struct CopiedKeys {
    /// The file of the master key, if it was generated in the folder.
    pub(crate) generated_master: Option<PathBuf>,
}

/// The open key file with the master key.
pub(crate) struct KeyFile {
    path: PathBuf,
    file: File,
    master: SecretKey,
    /// Where the master key was taken from, for messages.
    given: String,
    /// The file of the master key, if it was generated in the folder.
    generated_master: Option<PathBuf>,
    /// Slots in the file, slot 0 included.
    capacity: u32,
    /// The first slot that was never written.
    next: u32,
    is_dirty: bool,
}

impl KeyFile {
    /// Says whether the master key is the one that the keys in a folder are wrapped with, if there
    /// are any. Nothing is made or changed.
    pub(crate) fn check_master(folder: &Path, master: &MasterKey) -> Result<(), OpenError> {
        let path = folder.join(SLOTS_FILE);
        if !path.exists() || is_unfinished(&path)? {
            return master.check_given();
        }
        let master_path = folder.join(MASTER_FILE);
        let given = master.place(&master_path);
        let master = master.load(&master_path, false)?;
        let file = File::open(&path).map_err(|source| io_error("open", &path, source))?;
        let generated_master = None;
        Self { path, file, master, given, generated_master, capacity: 0, next: 1, is_dirty: false }
            .check_header()
    }

    /// Whether a key was ever made in a folder. A file that cannot be read has none to tell of.
    pub(crate) fn has_keys(folder: &Path) -> bool {
        let bytes = fs::read(folder.join(SLOTS_FILE)).unwrap_or_default();
        bytes.iter().skip(SLOT_BYTES).any(|byte| *byte != 0)
    }

    /// Opens the keys in a folder. `must_exist` says that the log has sealed events.
    pub(crate) fn open(folder: &Path, master: &MasterKey, must_exist: bool) -> Result<Self, OpenError> {
        let path = folder.join(SLOTS_FILE);
        let is_new = !path.exists() || is_unfinished(&path)?;
        if is_new && must_exist {
            return Err(OpenError::KeysLost { path });
        }
        std::fs::create_dir_all(folder).map_err(|source| io_error("create the folder", folder, source))?;
        let master_path = folder.join(MASTER_FILE);
        let generated_master = matches!(master, MasterKey::Generated).then(|| master_path.clone());
        let given = master.place(&master_path);
        let master = master.load(&master_path, is_new)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|source| io_error("open", &path, source))?;
        let mut keys =
            Self { path, file, master, given, generated_master, capacity: 0, next: 1, is_dirty: false };
        if is_new {
            keys.create(folder).map_err(|source| io_error("create", &keys.path, source))?;
        } else {
            keys.check_header()?;
            rewrap::clear_leftovers(folder)
                .map_err(|source| io_error("remove old keys from", folder, source))?;
        }
        Ok(keys)
    }

    fn create(&mut self, folder: &Path) -> io::Result<()> {
        self.grow()?;
        File::open(folder)?.sync_all()
    }

    fn check_header(&mut self) -> Result<(), OpenError> {
        let damaged = || OpenError::KeysDamaged { path: self.path.clone() };
        let bytes = self.read_slot(0).map_err(|_| damaged())?;
        let mut reader = Reader::new(&bytes);
        let is_ours = reader.take(MAGIC.len(), "magic").is_ok_and(|found| found == MAGIC);
        let (Ok(capacity), Ok(_), Ok(check)) =
            (reader.u32("slots"), reader.u32("zeros"), reader.array::<16>("check"))
        else {
            return Err(damaged());
        };
        if !is_ours || bytes != header(capacity, &check) {
            return Err(damaged());
        }
        let length = self.file.metadata().map_err(|source| io_error("measure", &self.path, source))?.len();
        if length < u64::from(capacity) * SLOT_BYTES as u64 {
            return Err(damaged());
        }
        if check != master_check(&self.master) {
            return Err(OpenError::MasterKeyWrong { path: self.path.clone(), given: self.given.clone() });
        }
        self.capacity = capacity;
        Ok(())
    }

    /// Every slot that was written. A damaged one is reported; its events cannot be opened.
    pub(super) fn slots(&mut self) -> io::Result<Vec<(u32, Slot)>> {
        let (mut slots, mut next) = (Vec::new(), self.next);
        self.visit(&mut |number, found| {
            match found {
                slot::Read::Empty => return,
                slot::Read::Slot(slot) => slots.push((number, slot)),
                slot::Read::Damaged => {
                    tracing::error!(path = %self.path.display(), slot = number,
                        "a key is damaged: what was sealed with it cannot be opened");
                }
            }
            next = number + 1;
        })?;
        self.next = next;
        Ok(slots)
    }

    /// Whose keys there are, and how they are.
    pub(crate) fn list(&self) -> io::Result<Vec<ListedKey>> {
        let mut listed = Vec::new();
        self.visit(&mut |slot, found| {
            let found = match found {
                slot::Read::Empty => return,
                slot::Read::Slot(slot) => Some(slot),
                slot::Read::Damaged => None,
            };
            listed.push(ListedKey::of(slot, found.as_ref(), &self.master));
        })?;
        Ok(listed)
    }

    /// Shows every slot behind the first, in order.
    fn visit(&self, show: &mut dyn FnMut(u32, slot::Read)) -> io::Result<()> {
        let mut chunk = vec![0; GROW_SLOTS as usize * SLOT_BYTES];
        for start in (0..self.capacity).step_by(GROW_SLOTS as usize) {
            self.file.read_exact_at(&mut chunk, offset(start))?;
            let (all, _) = chunk.as_chunks::<SLOT_BYTES>();
            for (number, bytes) in (start..).zip(all).filter(|(number, _)| *number > 0) {
                show(number, Slot::read(*bytes));
            }
        }
        Ok(())
    }

    /// Copies every slot as it is now, and returns when the copy is on disk.
    pub(super) fn copy_to(&self, to: &mut File) -> io::Result<CopiedKeys> {
        let mut chunk = vec![0; GROW_SLOTS as usize * SLOT_BYTES];
        for start in (0..self.capacity).step_by(GROW_SLOTS as usize) {
            self.file.read_exact_at(&mut chunk, offset(start))?;
            to.write_all(&chunk)?;
        }
        to.sync_all()?;
        Ok(CopiedKeys { generated_master: self.generated_master.clone() })
    }

    /// Unwraps the key in a slot.
    pub(super) fn unwrap_key(&self, number: u32) -> io::Result<SecretKey> {
        let key = match Slot::read(self.read_slot(number)?) {
            slot::Read::Slot(slot) => slot.unwrap(&self.master),
            slot::Read::Empty | slot::Read::Damaged => None,
        };
        key.ok_or_else(|| {
            let what = format!("the key in slot {number} of {} is damaged", self.path.display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }

    /// Writes a key into a new slot. It is on disk after the next sync.
    pub(super) fn put(&mut self, thread: ScopeId, scope: ScopeId, key: &SecretKey) -> io::Result<u32> {
        let slot = Slot::wrap(&self.master, thread, scope, key)?;
        self.add(&slot)
    }

    /// Writes into a new slot that a key was destroyed.
    pub(super) fn put_destroyed(&mut self, thread: ScopeId, scope: ScopeId) -> io::Result<u32> {
        self.add(&Slot::destroyed(thread, scope))
    }

    fn add(&mut self, slot: &Slot) -> io::Result<u32> {
        if self.next >= self.capacity {
            self.grow()?;
        }
        let number = self.next;
        self.write_slot(number, slot.bytes())?;
        self.next += 1;
        Ok(number)
    }

    /// Overwrites a key. It is gone from the disk after the next sync.
    pub(super) fn destroy(&mut self, number: u32, thread: ScopeId, scope: ScopeId) -> io::Result<()> {
        self.write_slot(number, Slot::destroyed(thread, scope).bytes())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.is_dirty {
            self.file.sync_data()?;
            self.is_dirty = false;
        }
        Ok(())
    }

    /// Adds zeroed slots, then says so in slot 0.
    fn grow(&mut self) -> io::Result<()> {
        let capacity = self.capacity + GROW_SLOTS;
        let zeros = vec![0; GROW_SLOTS as usize * SLOT_BYTES];
        self.file.write_all_at(&zeros, offset(self.capacity))?;
        self.file.sync_all()?;
        self.capacity = capacity;
        self.write_slot(0, &header(capacity, &master_check(&self.master)))?;
        self.sync()
    }

    fn read_slot(&self, number: u32) -> io::Result<[u8; SLOT_BYTES]> {
        let mut bytes = [0; SLOT_BYTES];
        self.file.read_exact_at(&mut bytes, offset(number))?;
        Ok(bytes)
    }

    fn write_slot(&mut self, number: u32, bytes: &[u8; SLOT_BYTES]) -> io::Result<()> {
        self.is_dirty = true;
        self.file.write_all_at(bytes, offset(number))
    }
}

/// A file that lost power while it was made has zeros or nothing where its first slot belongs.
fn is_unfinished(path: &Path) -> Result<bool, OpenError> {
    let read = || -> io::Result<Vec<u8>> {
        let mut start = Vec::new();
        File::open(path)?.take(SLOT_BYTES as u64).read_to_end(&mut start)?;
        Ok(start)
    };
    let start = read().map_err(|source| io_error("read", path, source))?;
    Ok(start.iter().all(|byte| *byte == 0))
}

/// What tells one master key from another and says nothing about it.
fn master_check(master: &SecretKey) -> [u8; 16] {
    let mut check = [0; 16];
    let mut hasher = blake3::Hasher::new_keyed(master.bytes());
    hasher.update(b"remit: is this the master key").finalize_xof().fill(&mut check);
    check
}

fn offset(number: u32) -> u64 {
    u64::from(number) * SLOT_BYTES as u64
}

fn header(capacity: u32, check: &[u8; 16]) -> [u8; SLOT_BYTES] {
    let mut bytes = [0; SLOT_BYTES];
    let zeros = [0; 4];
    let capacity = capacity.to_be_bytes();
    let content = MAGIC.iter().chain(&capacity).chain(&zeros).chain(check);
    for (to, from) in bytes.iter_mut().zip(content) {
        *to = *from;
    }
    let mut checksum = [0; 16];
    blake3::Hasher::new().update(bytes.split_at(SLOT_BYTES - 16).0).finalize_xof().fill(&mut checksum);
    for (to, from) in bytes.iter_mut().skip(SLOT_BYTES - 16).zip(checksum) {
        *to = from;
    }
    bytes
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { action, path: path.to_owned(), source }
}
