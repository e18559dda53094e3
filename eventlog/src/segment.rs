//! The record: every commit, one after the other, in files that are filled with zeros before they
//! are written to.
//!
//! ```text
//! {data}/log/segments/{address of the first byte, 16 hex digits}.seg
//! segment   frame · frame · … · zeros
//! ```
//!
//! A commit is one frame (`frame`), one write and one `fdatasync`. An address is a place in the
//! whole record, counted in bytes over all segments; a frame never goes over the end of a segment.
//! The record ends where zeros begin.
//!
//! A segment is written full of zeros and synced before it gets its name (`ahead`), by a thread of
//! its own while the one before is in use. So a commit never allocates blocks, and its sync does not
//! wait for the file system's journal: appending to a growing or sparse file costs 1.5 to 4 times as
//! much. The price is that every byte is written twice. Segments grow with the log, so that a
//! small log is a small folder.
//!
//! This module must not know what is in a record: it keeps bytes, and says where they end.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use self::files::Files;
use crate::position::Position;

mod ahead;
mod appender;
#[cfg(test)]
pub(crate) mod faulty;
mod files;
pub(crate) mod frame;
mod many;
pub(crate) mod survey;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use appender::Appender;
pub(crate) use walk::Walk;

/// The smallest segment: what a new folder costs, twice at most.
const SEGMENT_BYTES_MIN: u64 = 1024 * 1024;
/// The largest, unless one frame needs more. To find the end of the record the last one with frames is
/// read and the one that stands ready, and those since the noted head if that is farther back.
const SEGMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Ends the names of segments.
const EXTENSION: &str = "seg";
/// Zeros to compare with and to write.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Why a part of the record could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SegmentError {
    #[error("could not {action} {}", .path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is damaged at byte {at}: {what}", .path.display())]
    Damaged {
        path: PathBuf,
        /// Within the file.
        at: u64,
        /// Within the record.
        address: u64,
        what: Flaw,
    },
    #[error("a commit of {bytes} bytes is too large")]
    TooLarge { bytes: usize },
}

/// What is wrong with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flaw {
    #[error("there is no frame")]
    NoFrame,
    #[error("the frame has format {0}, which this program does not know")]
    Version(u16),
    #[error("the frame goes beyond the end of the file")]
    Beyond,
    #[error("the checksum of the frame differs")]
    Checksum,
    #[error("the frame's own lengths do not fit together")]
    Shape,
    #[error("the frame begins at position {found}, where {expected} follows")]
    Discontinuous { expected: Position, found: Position },
    #[error("the chain of the log differs")]
    Chain,
    #[error("a part of the record is missing")]
    Gap,
}

/// One segment's part of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) first: u64,
    pub(crate) bytes: u64,
}

impl Extent {
    pub(crate) fn end(self) -> u64 {
        self.first + self.bytes
    }
}

/// The record, to be read by anybody. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Segments(Arc<Medium>);

enum Medium {
    Files(Files),
    Memory(RwLock<Vec<u8>>),
}

impl Segments {
    /// The record in a folder, as it is there. Nothing is written.
    pub(crate) fn open(folder: &Path) -> Result<Self, SegmentError> {
        Ok(Self(Arc::new(Medium::Files(Files::open(folder)?))))
    }

    /// A record that keeps nothing when it is dropped.
    pub(crate) fn in_memory() -> Self {
        Self(Arc::new(Medium::Memory(RwLock::default())))
    }

    /// Reads from an address on into the buffer, within one segment. Gives how much was there.
    pub(crate) fn read_at(&self, address: u64, buffer: &mut [u8]) -> Result<usize, SegmentError> {
        match &*self.0 {
            Medium::Files(files) => files.read_at(address, buffer),
            Medium::Memory(bytes) => {
                let bytes = bytes.read().unwrap_or_else(PoisonError::into_inner);
                let from = bytes.get(usize::try_from(address).unwrap_or(usize::MAX)..).unwrap_or_default();
                let count = from.len().min(buffer.len());
                if let (Some(to), Some(from)) = (buffer.get_mut(..count), from.get(..count)) {
                    to.copy_from_slice(from);
                }
                Ok(count)
            }
        }
    }

    /// The segment that an address is in.
    pub(crate) fn extent_at(&self, address: u64) -> Option<Extent> {
        match &*self.0 {
            Medium::Files(files) => files.extent_at(address),
            Medium::Memory(bytes) => {
                let bytes = bytes.read().unwrap_or_else(PoisonError::into_inner).len() as u64;
                Some(Extent { first: 0, bytes }).filter(|extent| address < extent.bytes)
            }
        }
    }

    /// The first segment that begins at an address or behind it.
    pub(crate) fn extent_from(&self, address: u64) -> Option<Extent> {
        match &*self.0 {
            Medium::Files(files) => files.extent_from(address),
            Medium::Memory(_) => self.extent_at(0).filter(|_| address == 0),
        }
    }

    /// All segments, in order.
    pub(crate) fn extents(&self) -> Vec<Extent> {
        match &*self.0 {
            Medium::Files(files) => files.extents(),
            Medium::Memory(_) => self.extent_at(0).into_iter().collect(),
        }
    }

    /// Changes what is in memory as nobody should.
    #[cfg(test)]
    pub(crate) fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let Medium::Memory(bytes) = &*self.0 else { panic!("only memory can be changed so") };
        change(&mut bytes.write().unwrap());
    }

    /// Tells the system what will be read soon.
    fn will_need(&self, address: u64, bytes: u64) {
        match &*self.0 {
            Medium::Files(files) => files.will_need(address, bytes),
            Medium::Memory(_) => {}
        }
    }

    /// Space on disk, in bytes; 0 in memory.
    pub(crate) fn disk_bytes(&self) -> u64 {
        match &*self.0 {
            Medium::Files(_) => self.extents().iter().map(|extent| extent.bytes).sum(),
            Medium::Memory(_) => 0,
        }
    }

    /// The file that an address is in, and the place within it. For messages and backups.
    pub(crate) fn place_of(&self, address: u64) -> (PathBuf, u64) {
        match &*self.0 {
            Medium::Files(files) => files.place_of(address),
            Medium::Memory(_) => (PathBuf::from("memory"), address),
        }
    }

    pub(crate) fn damaged(&self, address: u64, what: Flaw) -> SegmentError {
        let (path, at) = self.place_of(address);
        SegmentError::Damaged { path, at, address, what }
    }

    /// How far bytes that are not zero go, from an address on. None if there are none.
    fn last_written(&self, from: u64) -> Result<Option<u64>, SegmentError> {
        let (mut last, mut buffer) = (None, vec![0; ZEROS.len()]);
        self.visit(from, &mut buffer, &mut |address, bytes| {
            if let Some(index) = last_nonzero(bytes) {
                last = Some(address + index as u64);
            }
        })?;
        Ok(last)
    }

    /// Shows all bytes from an address on, in pieces.
    pub(crate) fn visit(
        &self,
        from: u64,
        buffer: &mut [u8],
        show: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<(), SegmentError> {
        let mut at = from;
        loop {
            let Some(extent) = self.extent_at(at) else {
                match self.extent_from(at) {
                    Some(next) => at = next.first,
                    None => return Ok(()),
                }
                continue;
            };
            let count = self.read_at(at, buffer)?;
            show(at, buffer.get(..count).unwrap_or_default());
            at = if count == 0 { extent.end() } else { at + count as u64 };
        }
    }
}

/// The name of a segment.
fn name(first: u64) -> String {
    format!("{first:016x}.{EXTENSION}")
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(ZEROS.len()).all(|chunk| ZEROS.get(..chunk.len()) == Some(chunk))
}

/// The last byte that is not zero.
fn last_nonzero(bytes: &[u8]) -> Option<usize> {
    if is_zero(bytes) {
        return None;
    }
    bytes.iter().rposition(|byte| *byte != 0)
}

/// An error of a file, with what was done to it.
fn io_error(action: &'static str, path: &Path) -> impl Fn(io::Error) -> SegmentError {
    let path = path.to_owned();
    move |source| SegmentError::Io { action, path: path.clone(), source }
}
