//! Looking at a folder without changing it: all that opening would refuse, found before anybody
//! opens it.

use std::{io, path::Path, sync::Arc};

use super::{OpenError, acquire_lock, index_folder, io_error, look, open_keys};
use crate::{
    blob::{self, BlobInspection, inspect::NAMED_MAX},
    codec::record,
    keyring::Keyring,
    options::Options,
    position::Position,
    recorded::RecordedEvent,
    sealer::Sealer,
    segment::{SegmentError, Walk},
    store::StoreError,
    stream_id::StreamId,
};

/// What a folder holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The version of the stored format; none in a log that has just been made.
    pub format_version: Option<u32>,
    /// The last position. None if the record has a torn end, which must be looked at first.
    pub head: Option<Position>,
    /// The last position that was noted outside the record; none if the head file is gone.
    pub noted: Option<Position>,
    /// Space on disk.
    pub disk_bytes: u64,
    /// The blobs beside the log.
    pub blobs: BlobInspection,
}

/// Looks at a folder that nobody has open. What it finds wrong is the error that opening the folder
/// would give. It reads the end of the log, not all of it: that is what verifying is for.
pub fn inspect(folder: &Path, options: &Options) -> Result<Inspection, OpenError> {
    let _lock = acquire_lock(folder, (options.clock)())?;
    let looked = look(folder)?;
    if let Some(refusal) = looked.refusal(folder) {
        return Err(refusal);
    }
    let keyring = if looked.must_have_keys() { Some(open_keys(folder, options, true)?) } else { None };
    let is_torn = looked.torn_end().is_some();
    let blobs = match keyring.filter(|_| !is_torn) {
        Some(keyring) => {
            let files = blob::inspect::inspect(folder, &keyring);
            let files = files.map_err(io_error("look at the blobs in", folder))?;
            let (head, segments) = (looked.survey.head.position, &looked.segments);
            let named = blob::check::look_at_named(segments, head, &keyring, folder, NAMED_MAX);
            BlobInspection { named: named.map_err(OpenError::Store)?, ..files }
        }
        None => BlobInspection::default(),
    };
    let head = (!is_torn).then_some(looked.survey.head.position);
    Ok(Inspection {
        format_version: looked.version,
        head,
        noted: looked.noted_head().map(|head| head.position),
        disk_bytes: looked.segments.disk_bytes()
            + folder_bytes(&index_folder(&folder.join(super::LOG_FOLDER))),
        blobs,
    })
}

/// The events beside the threads in a folder that [`inspect`] found whole, and what tells whose keys are
/// destroyed. Nothing is changed.
pub fn peek_registry(folder: &Path, options: &Options) -> Result<(Vec<RecordedEvent>, Sealer), OpenError> {
    let _lock = acquire_lock(folder, (options.clock)())?;
    let looked = look(folder)?;
    let keyring = if looked.must_have_keys() {
        open_keys(folder, options, true)?
    } else {
        Keyring::in_memory().map_err(io_error("make keys for", folder))?
    };
    let store_error = |error: SegmentError| OpenError::Store(error.into());
    let unreadable = |source| {
        OpenError::Store(StoreError::Damaged { what: "an event of the registry".to_owned(), source })
    };
    let (mut events, mut walk) = (Vec::new(), Walk::new(looked.segments.clone(), 0, None));
    let mut position = Position::ZERO;
    while position < looked.survey.head.position {
        let missing = StoreError::MissingEvent { position: position.next() };
        let frame = walk.next().map_err(store_error)?.ok_or(OpenError::Store(missing))?;
        position = frame.header.commit().last;
        // The registry is in plain, so that most of what is not its own is told without a key.
        for (_, bytes) in frame.records().filter(|(_, bytes)| !record::is_sealed(bytes)) {
            let event = record::decode(bytes, &keyring).map_err(unreadable)?;
            if event.stream == StreamId::Registry {
                events.push(event);
            }
        }
    }
    Ok((events, Sealer::new(Arc::new(keyring))))
}

/// The length of all files in a folder. What cannot be read counts nothing.
fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => folder_bytes(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

/// Space that is free on the disk of a folder, in bytes.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let space = rustix::fs::statvfs(folder)?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

#[cfg(test)]
mod tests;
