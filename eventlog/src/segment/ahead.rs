//! Making the next segment while the present one is written to.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::mpsc::{self, Receiver, SyncSender},
    thread::JoinHandle,
};

use domain::causes::with_causes;

use super::{Extent, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, SegmentError, ZEROS, io_error, name};
use crate::durable;

/// Zeros that are written between two syncs, so that they do not all reach the disk at once, before
/// the commits of others.
const SYNC_BYTES: u64 = 4 * 1024 * 1024;
/// Ends the name of a segment that is being made. What a crash left of one is thrown away.
const UNFINISHED: &str = "unfinished";

/// A thread that makes one segment at a time. It ends when this is dropped.
pub(super) struct Ahead {
    folder: PathBuf,
    /// One is asked for at a time.
    orders: Option<SyncSender<Extent>>,
    thread: Option<JoinHandle<()>>,
    made: Receiver<Result<Extent, SegmentError>>,
    /// The one that was asked for and not taken.
    ordered: Option<Extent>,
}

impl Ahead {
    pub(super) fn start(folder: &Path) -> io::Result<Self> {
        let (orders, ordered) = mpsc::sync_channel::<Extent>(1);
        let (done, made) = mpsc::sync_channel(1);
        let place = folder.to_owned();
        let thread = std::thread::Builder::new().name("remit-log-ahead".to_owned()).spawn(move || {
            while let Ok(extent) = ordered.recv() {
                if done.send(make(&place, extent)).is_err() {
                    return;
                }
            }
        })?;
        let (orders, thread) = (Some(orders), Some(thread));
        Ok(Self { folder: folder.to_owned(), orders, thread, made, ordered: None })
    }

    /// Has the segment that begins at an address made, unless that was asked for before.
    pub(super) fn order(&mut self, first: u64) {
        if self.ordered.is_none() {
            let extent = Extent { first, bytes: size_at(first, 0) };
            // A thread that is gone is noticed when the segment is taken.
            if self.orders.as_ref().is_some_and(|orders| orders.try_send(extent).is_ok()) {
                self.ordered = Some(extent);
            }
        }
    }

    /// The segment that begins at an address and has room for a frame. It waits until it is there.
    pub(super) fn take(&mut self, first: u64, frame_bytes: u64) -> Result<Extent, SegmentError> {
        if self.ordered.take().is_some() {
            match self.made.recv() {
                Ok(Ok(made)) if made.first == first && made.bytes >= frame_bytes => return Ok(made),
                Ok(Ok(_)) => {}
                // What failed then may have room now: one more try decides.
                Ok(Err(error)) => {
                    tracing::warn!(error = %with_causes(&error), "a segment could not be made ahead");
                }
                Err(_) => tracing::warn!("the thread that makes segments is gone"),
            }
        }
        make(&self.folder, Extent { first, bytes: size_at(first, frame_bytes) })
    }
}

/// A segment that is being made is finished first, so that nobody else finds it half made when the
/// folder is no longer held.
impl Drop for Ahead {
    fn drop(&mut self) {
        drop(self.orders.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that makes segments stopped by a defect");
        }
    }
}

/// How large the segment at an address is: as large as the log so far.
fn size_at(first: u64, frame_bytes: u64) -> u64 {
    let size = first.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX).max(frame_bytes);
    size.next_multiple_of(SEGMENT_BYTES_MIN)
}

/// Makes a segment full of zeros that is on disk, blocks and name and all.
fn make(folder: &Path, extent: Extent) -> Result<Extent, SegmentError> {
    let path = folder.join(name(extent.first));
    let unfinished = path.with_extension(UNFINISHED);
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&unfinished)?;
        let mut left = extent.bytes;
        while left > 0 {
            let count = left.min(ZEROS.len() as u64);
            file.write_all(ZEROS.get(..usize::try_from(count).unwrap_or(0)).unwrap_or_default())?;
            left -= count;
            if left.is_multiple_of(SYNC_BYTES) {
                file.sync_data()?;
            }
        }
        file.sync_all()?;
        durable::move_to(&unfinished, &path)
    };
    write().map_err(io_error("make the segment", &path))?;
    Ok(extent)
}

/// Removes what a crash left unfinished.
pub(super) fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == UNFINISHED) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
