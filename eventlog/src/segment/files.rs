//! The files of the record, open for reading.

use std::{
    collections::VecDeque,
    ffi::OsStr,
    fs::{self, File},
    io,
    num::NonZeroU64,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use rustix::fs::Advice;

use super::{EXTENSION, Extent, SegmentError, io_error, name};

/// Files that are kept open. A log of any size has few that are read at a time; the system allows
/// about a thousand for the whole process.
const OPEN_MAX: usize = 64;

/// All segments of a folder.
pub(super) struct Files {
    folder: PathBuf,
    /// In order.
    extents: RwLock<Vec<Extent>>,
    /// The last used first.
    open: Mutex<VecDeque<(u64, Arc<File>)>>,
    #[cfg(test)]
    pub(super) faults: RwLock<Option<Arc<super::faulty::Faults>>>,
}

impl Files {
    /// Lists what is there. A folder that is not there has nothing.
    pub(super) fn open(folder: &Path) -> Result<Self, SegmentError> {
        let extents = list(folder).map_err(io_error("list the segments in", folder))?;
        Ok(Self {
            folder: folder.to_owned(),
            extents: RwLock::new(extents),
            open: Mutex::default(),
            #[cfg(test)]
            faults: RwLock::default(),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn extents(&self) -> Vec<Extent> {
        self.extents.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn extent_at(&self, address: u64) -> Option<Extent> {
        let extents = self.extents.read().unwrap_or_else(PoisonError::into_inner);
        let index = extents.partition_point(|extent| extent.first <= address).checked_sub(1)?;
        extents.get(index).copied().filter(|extent| address < extent.end())
    }

    pub(super) fn extent_from(&self, address: u64) -> Option<Extent> {
        let extents = self.extents.read().unwrap_or_else(PoisonError::into_inner);
        extents.get(extents.partition_point(|extent| extent.first < address)).copied()
    }

    /// Takes a new segment in, behind all others.
    pub(super) fn push(&self, extent: Extent) {
        self.extents.write().unwrap_or_else(PoisonError::into_inner).push(extent);
    }

    pub(super) fn read_at(&self, address: u64, buffer: &mut [u8]) -> Result<usize, SegmentError> {
        let Some(extent) = self.extent_at(address) else { return Ok(0) };
        let room = usize::try_from(extent.end() - address).unwrap_or(usize::MAX).min(buffer.len());
        let Some(buffer) = buffer.get_mut(..room) else { return Ok(0) };
        let path = self.folder.join(name(extent.first));
        let file = self.file(extent.first).map_err(io_error("open", &path))?;
        fill(&file, address - extent.first, buffer).map_err(io_error("read", &path))
    }

    pub(super) fn will_need(&self, address: u64, bytes: u64) {
        let Some(extent) = self.extent_at(address) else { return };
        if let Ok(file) = self.file(extent.first) {
            let bytes = NonZeroU64::new(bytes);
            // Only a hint: reading without it is slower and no less right.
            let _ = rustix::fs::fadvise(&*file, address - extent.first, bytes, Advice::WillNeed);
        }
    }

    pub(super) fn place_of(&self, address: u64) -> (PathBuf, u64) {
        let extents = self.extents.read().unwrap_or_else(PoisonError::into_inner);
        let before = extents.iter().rev().find(|extent| extent.first <= address);
        let first = before.map_or(0, |extent| extent.first);
        (self.folder.join(name(first)), address.saturating_sub(first))
    }

    fn file(&self, first: u64) -> io::Result<Arc<File>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = open.iter().position(|(known, _)| *known == first) {
            if index > 0
                && let Some(used) = open.remove(index)
            {
                open.push_front(used);
            }
            return open
                .front()
                .map(|(_, file)| Arc::clone(file))
                .ok_or_else(|| io::ErrorKind::NotFound.into());
        }
        let file = Arc::new(File::open(self.folder.join(name(first)))?);
        open.truncate(OPEN_MAX - 1);
        open.push_front((first, Arc::clone(&file)));
        Ok(file)
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &File, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while let Some(rest) = buffer.get_mut(count..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + count as u64) {
            Ok(0) => break,
            Ok(read) => count += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

fn list(folder: &Path) -> io::Result<Vec<Extent>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut extents = Vec::new();
    for entry in entries {
        let entry = entry?;
        // Others may be on their way to another name.
        let Some(first) = first_of(&entry.path()) else { continue };
        let bytes = entry.metadata()?.len();
        // A file that was cut to nothing is as good as missing.
        if bytes > 0 {
            extents.push(Extent { first, bytes });
        }
    }
    extents.sort_by_key(|extent| extent.first);
    Ok(extents)
}

/// The address in the name of a segment.
fn first_of(path: &Path) -> Option<u64> {
    let stem = path.file_stem()?.to_str().filter(|stem| stem.len() == 16)?;
    let is_segment = path.extension().and_then(OsStr::to_str) == Some(EXTENSION);
    u64::from_str_radix(stem, 16).ok().filter(|_| is_segment)
}
