//! The head of the log, noted outside the log.
//!
//! Some damage in a storage engine's journal opens without an error, with later synced commits
//! gone. This small file remembers how far the log had come, so that opening it can tell.
//!
//! ```text
//! two slots of 512 bytes, written in turn, so that a torn write leaves the other:
//! 8 bytes "RMTHEAD1" · u64 position · 32 chain of the log · 32 BLAKE3 of the bytes before
//! ```
//!
//! A note goes to the operating system with each commit, after it. A thread brings it to the disk
//! soon after, at most once per [`SYNC_INTERVAL`], so that no append waits for a second sync. So the
//! file may lag behind the log and is never ahead of it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError},
    },
    time::Duration,
};

use crate::{codec::bytes::Reader, durable, position::Position, store::Head};

/// How much of the newest history a power loss may take out of the file's sight. Syncing more often
/// would take the disk from the commits.
pub(crate) const SYNC_INTERVAL: Duration = Duration::from_millis(20);
const MAGIC: &[u8; 8] = b"RMTHEAD1";
const SLOT_BYTES: usize = 512;
const SLOTS: u64 = 2;
/// A file in which nothing was ever noted.
const EMPTY: [u8; SLOT_BYTES * SLOTS as usize] = [0; SLOT_BYTES * SLOTS as usize];

/// The file, open for writing.
pub(crate) struct Watermark {
    file: File,
    next_slot: u64,
    syncer: Syncer,
}

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    /// There was no file, or nothing was ever noted.
    Nothing,
    /// The log had come this far.
    Head(Head),
    /// Neither slot is whole.
    Damaged,
}

impl Watermark {
    /// Opens the file. One that is not there is made beside its place, so that it is never there in part.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Noted)> {
        if !path.try_exists()? {
            durable::write_whole(path, &EMPTY)?;
        }
        // A damaged file stays as it is: it is evidence, and the next look must refuse it, too.
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let (noted, next_slot) = read_slots(&bytes);
        let syncer = Syncer::start(file.try_clone()?)?;
        Ok((Self { file, next_slot, syncer }, noted))
    }

    /// What the file says, without changing anything.
    pub(crate) fn peek(path: &Path) -> io::Result<Noted> {
        match std::fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Noted::Nothing),
            read => Ok(read_slots(&read?).0),
        }
    }

    /// Notes a head that is durable in the log.
    pub(crate) fn note(&mut self, head: Head) -> io::Result<()> {
        self.file.write_all_at(&encode_slot(head), self.next_slot * SLOT_BYTES as u64)?;
        self.next_slot = (self.next_slot + 1) % SLOTS;
        self.syncer.wake()
    }

    /// Brings the last note to the disk now.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// The thread that brings notes to the disk. It ends when this is dropped.
struct Syncer {
    /// One wake-up waits at most: a sync covers every note before it.
    wake: SyncSender<()>,
    /// Nothing is sent; that it is dropped ends the thread's rest.
    _stop: SyncSender<()>,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Syncer {
    fn start(file: File) -> io::Result<Self> {
        let (wake, woken) = mpsc::sync_channel(1);
        let (stop, stopped) = mpsc::sync_channel(1);
        let failure = Arc::new(Mutex::new(None));
        let syncer = Self { wake, _stop: stop, failure: Arc::clone(&failure) };
        std::thread::Builder::new().name("remit-log-head".to_owned()).spawn(move || {
            if let Err(error) = sync_when_woken(&file, &woken, &stopped) {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        })?;
        Ok(syncer)
    }

    /// Asks for a sync, or says why the last one failed.
    fn wake(&self) -> io::Result<()> {
        match self.wake.try_send(()) {
            Ok(()) | Err(TrySendError::Full(())) => Ok(()),
            Err(TrySendError::Disconnected(())) => {
                let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
                Err(failure.unwrap_or_else(|| io::Error::other("the head file is no longer synced")))
            }
        }
    }
}

fn sync_when_woken(file: &File, woken: &Receiver<()>, stopped: &Receiver<()>) -> io::Result<()> {
    while woken.recv().is_ok() {
        file.sync_data()?;
        match stopped.recv_timeout(SYNC_INTERVAL) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(())
}

fn encode_slot(head: Head) -> [u8; SLOT_BYTES] {
    let mut content = MAGIC.to_vec();
    content.extend_from_slice(&head.position.get().to_be_bytes());
    content.extend_from_slice(&head.chain);
    let checksum = blake3::hash(&content);
    content.extend_from_slice(checksum.as_bytes());
    let mut slot = [0; SLOT_BYTES];
    for (to, from) in slot.iter_mut().zip(content) {
        *to = from;
    }
    slot
}

/// The later of the whole slots, and the slot to write next: the other one.
fn read_slots(bytes: &[u8]) -> (Noted, u64) {
    let slots = bytes.chunks(SLOT_BYTES).zip(0..SLOTS);
    let whole = slots.filter_map(|(slot, index)| decode_slot(slot).map(|head| (head, index)));
    match whole.max_by_key(|(head, _)| head.position) {
        Some((head, index)) => (Noted::Head(head), (index + 1) % SLOTS),
        None if bytes == EMPTY => (Noted::Nothing, 0),
        None => (Noted::Damaged, 0),
    }
}

fn decode_slot(slot: &[u8]) -> Option<Head> {
    let mut reader = Reader::new(slot);
    let content = reader.take(48, "slot").ok()?;
    let checksum: [u8; 32] = reader.array("checksum").ok()?;
    if *blake3::hash(content).as_bytes() != checksum {
        return None;
    }
    let mut reader = Reader::new(content.strip_prefix(MAGIC)?);
    Some(Head { position: Position::new(reader.u64("position").ok()?), chain: reader.array("chain").ok()? })
}

#[cfg(test)]
mod tests;
