//! Appending frames: the one writer of the record.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    sync::PoisonError,
};

use super::{
    Extent, Medium, SegmentError, Segments,
    ahead::{self, Ahead},
    io_error, name,
};

/// Writes frames at the end of the record.
pub(crate) struct Appender {
    segments: Segments,
    /// Behind the last frame.
    end: u64,
    /// The segment that is written to, on disk.
    open: Option<Open>,
    ahead: Option<Ahead>,
    /// Whether something in the open segment was not synced yet.
    is_unsynced: bool,
}

struct Open {
    extent: Extent,
    file: File,
}

impl Appender {
    /// Goes on behind a frame, or at the beginning. Everything behind it is zeros, and everything
    /// before it is on disk when this returns.
    pub(crate) fn new(segments: Segments, end: u64) -> Result<Self, SegmentError> {
        let Medium::Files(files) = &*segments.0 else {
            return Ok(Self { segments, end, open: None, ahead: None, is_unsynced: false });
        };
        let folder = files.folder();
        let ready = || {
            fs::create_dir_all(folder)?;
            ahead::remove_unfinished(folder)?;
            Ahead::start(folder)
        };
        let ahead = Some(ready().map_err(io_error("make the segments in", folder))?);
        let mut appender = Self { segments: segments.clone(), end, open: None, ahead, is_unsynced: false };
        // The end of a full segment is in none: the next frame begins another one.
        if let Some(extent) =
            end.checked_sub(1).map_or_else(|| segments.extent_at(0), |last| segments.extent_at(last))
        {
            appender.open = Some(appender.open(extent)?);
            // A process that was killed may have written the last frame without syncing it.
            appender.is_unsynced = true;
            appender.sync()?;
        }
        Ok(appender)
    }

    /// Behind the last frame.
    #[cfg(test)]
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Where a frame of this length will be, in a segment that has room for it.
    pub(crate) fn place(&mut self, frame_bytes: usize) -> Result<u64, SegmentError> {
        let bytes = frame_bytes as u64;
        let Medium::Files(_) = &*self.segments.0 else { return Ok(self.end) };
        loop {
            let next = match &self.open {
                Some(open) if self.end + bytes <= open.extent.end() => return Ok(self.end),
                Some(open) => open.extent.end(),
                None => self.end,
            };
            self.sync()?;
            let extent = self.next_segment(next, bytes)?;
            self.open = Some(self.open(extent)?);
            self.end = extent.first;
        }
    }

    /// Writes a frame to its place, and returns when it is on disk.
    pub(crate) fn append(&mut self, frame: &[u8]) -> Result<(), SegmentError> {
        #[cfg(test)]
        let (frame, segments) = (&mut frame.to_vec(), self.segments.clone());
        #[cfg(test)]
        segments.meet(super::faulty::Moment::Commit(self.end, frame))?;
        self.append_unsynced(frame)?;
        self.sync()?;
        #[cfg(test)]
        segments.meet(super::faulty::Moment::Written)?;
        Ok(())
    }

    /// Writes a frame to its place. It is on disk after the next sync.
    pub(crate) fn append_unsynced(&mut self, frame: &[u8]) -> Result<(), SegmentError> {
        match &*self.segments.0 {
            Medium::Memory(bytes) => {
                bytes.write().unwrap_or_else(PoisonError::into_inner).extend_from_slice(frame);
            }
            Medium::Files(_) => self.write(frame)?,
        }
        self.end += frame.len() as u64;
        self.look_ahead();
        Ok(())
    }

    fn write(&mut self, frame: &[u8]) -> Result<(), SegmentError> {
        self.is_unsynced = true;
        let written = match &self.open {
            Some(open) => open.file.write_all_at(frame, self.end - open.extent.first),
            None => Err(io::Error::other("no segment is open")),
        };
        written.map_err(|error| io_error("write", &self.segments.place_of(self.end).0)(error))
    }

    /// Returns when everything that was written is on disk.
    pub(crate) fn sync(&mut self) -> Result<(), SegmentError> {
        if let Some(open) = self.open.as_ref().filter(|_| self.is_unsynced) {
            open.file
                .sync_data()
                .map_err(|error| io_error("sync", &self.segments.place_of(open.extent.first).0)(error))?;
        }
        self.is_unsynced = false;
        Ok(())
    }

    /// Once half of a segment is full, the next one is made.
    fn look_ahead(&mut self) {
        if let (Some(open), Some(ahead)) = (&self.open, &mut self.ahead)
            && self.end - open.extent.first > open.extent.bytes / 2
            && self.segments.extent_from(open.extent.end()).is_none()
        {
            ahead.order(open.extent.end());
        }
    }

    /// The segment that begins at an address: one that is there, or a new one.
    fn next_segment(&mut self, first: u64, frame_bytes: u64) -> Result<Extent, SegmentError> {
        if let Some(there) = self.segments.extent_from(first) {
            return Ok(there);
        }
        let (Medium::Files(files), Some(ahead)) = (&*self.segments.0, &mut self.ahead) else {
            return Ok(Extent { first, bytes: frame_bytes });
        };
        let extent = ahead.take(first, frame_bytes)?;
        files.push(extent);
        Ok(extent)
    }

    fn open(&self, extent: Extent) -> Result<Open, SegmentError> {
        let (path, _) = self.segments.place_of(extent.first);
        debug_assert!(path.ends_with(name(extent.first)), "a segment has its own file");
        let file = OpenOptions::new().write(true).open(&path).map_err(io_error("open", &path))?;
        Ok(Open { extent, file })
    }
}

impl Segments {
    /// Writes once more what is there between two addresses of one segment. After a sync that failed
    /// the system may hold bytes that it takes for written, and a later sync alone would not bring
    /// them to the disk.
    pub(crate) fn write_again(&self, from: u64, until: u64) -> Result<(), SegmentError> {
        let (Medium::Files(_), true) = (&*self.0, from < until) else { return Ok(()) };
        let mut bytes = vec![0; usize::try_from(until - from).unwrap_or(usize::MAX)];
        let count = self.read_at(from, &mut bytes)?;
        bytes.truncate(count);
        let (path, at) = self.place_of(from);
        let write = || OpenOptions::new().write(true).open(&path)?.write_all_at(&bytes, at);
        write().map_err(io_error("write", &path))
    }

    /// Puts zeros over everything from an address on, which was never acknowledged.
    pub(crate) fn erase_from(&self, end: u64) -> Result<(), SegmentError> {
        let Some(last) = self.last_written(end)? else { return Ok(()) };
        for extent in self.extents().into_iter().filter(|extent| extent.end() > end && extent.first <= last) {
            let (path, _) = self.place_of(extent.first);
            let from = end.max(extent.first);
            let until = (last + 1).min(extent.end());
            let erase = || {
                let file = OpenOptions::new().write(true).open(&path)?;
                let mut at = from;
                while at < until {
                    let count = (until - at).min(super::ZEROS.len() as u64);
                    let zeros = super::ZEROS.get(..usize::try_from(count).unwrap_or(0));
                    file.write_all_at(zeros.unwrap_or_default(), at - extent.first)?;
                    at += count;
                }
                file.sync_all()
            };
            erase().map_err(io_error("cut the end of", &path))?;
        }
        Ok(())
    }
}
