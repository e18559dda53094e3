//! Looking at a folder without changing it: all that opening would refuse, found before anybody
//! opens it.

use std::{io, path::Path, sync::Arc};

use super::{
    ENGINE_FOLDER, OpenError, WATERMARK_FILE, acquire_lock, compare, io_error, open_engine, open_keys,
};
use crate::{
    blob::{self, BlobInspection},
    format,
    journal_scan::JournalScan,
    keyring::Keyring,
    options::Options,
    position::{Position, Seq},
    recorded::RecordedEvent,
    sealer::Sealer,
    store::{EngineStore, LogStore as _},
    stream_id::StreamId,
    verify,
    watermark::{Noted, Watermark},
};

/// Events of the registry that are read at once.
const REGISTRY_PAGE: usize = 256;

/// What a folder holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The version of the stored format; none in a log that has just been made.
    pub format_version: Option<u32>,
    /// The last position. None if the journal has a torn end, which must be looked at first.
    pub head: Option<Position>,
    /// The last position that was noted outside the engine; none if the head file is gone.
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
    let engine_folder = folder.join(ENGINE_FOLDER);
    let scanned =
        JournalScan::of(&engine_folder).map_err(io_error("read the journals in", &engine_folder))?;
    if let Some(journal) = scanned.damaged() {
        return Err(OpenError::JournalDamaged { path: journal.path.clone(), at: journal.valid_bytes });
    }
    let path = folder.join(WATERMARK_FILE);
    let noted = match Watermark::peek(&path).map_err(io_error("read", &path))? {
        Noted::Head(head) => Some(head),
        Noted::Nothing => None,
        Noted::Damaged => return Err(OpenError::WatermarkDamaged { path }),
    };
    let noted_position = noted.map(|head| head.position);
    if scanned.torn().is_some() {
        // The engine cuts a torn end when it is opened, so it is not.
        if let (Some(noted), Some(log)) = (noted_position, scanned.last_commit)
            && noted > log
        {
            return Err(OpenError::HeadBehind { folder: folder.to_owned(), log, noted });
        }
        let (noted, blobs) = (noted_position, BlobInspection::default());
        return Ok(Inspection { format_version: None, head: None, noted, disk_bytes: 0, blobs });
    }
    let (engine, version) = open_engine(folder)?;
    let keyring = Arc::new(keys_of(folder, options, version)?);
    let head = EngineStore::head_of(&engine).map_err(OpenError::Store)?;
    if let Some(noted) = noted {
        compare(folder, &EngineStore::new(engine.clone(), Arc::clone(&keyring)), head, noted)?;
    }
    if let Some(damage) = verify::check_recent(&engine, head).map_err(OpenError::Store)? {
        return Err(OpenError::Damaged { folder: folder.to_owned(), damage });
    }
    let disk_bytes = engine.disk_bytes().map_err(|source| OpenError::Store(source.into()))?;
    let blobs = blob::inspect::inspect(folder, &keyring).map_err(io_error("look at the blobs in", folder))?;
    let (head, noted) = (Some(head.position), noted_position);
    Ok(Inspection { format_version: version, head, noted, disk_bytes, blobs })
}

/// The events beside the threads in a folder that [`inspect`] found whole, and what tells whose keys are
/// destroyed. Nothing is changed.
pub fn peek_registry(folder: &Path, options: &Options) -> Result<(Vec<RecordedEvent>, Sealer), OpenError> {
    let _lock = acquire_lock(folder, (options.clock)())?;
    let (engine, version) = open_engine(folder)?;
    let keyring = Arc::new(keys_of(folder, options, version)?);
    let store = EngineStore::new(engine, Arc::clone(&keyring));
    let (mut events, mut after) = (Vec::new(), Seq::ZERO);
    loop {
        let page = store.read_stream(&StreamId::Registry, after, REGISTRY_PAGE).map_err(OpenError::Store)?;
        let Some(last) = page.last() else { return Ok((events, Sealer::new(keyring))) };
        after = last.seq;
        events.extend(page);
    }
}

fn keys_of(folder: &Path, options: &Options, version: Option<u32>) -> Result<Keyring, OpenError> {
    if format::is_sealed(version) {
        open_keys(folder, options, version)
    } else {
        Keyring::in_memory().map_err(io_error("make keys for", folder))
    }
}

/// Space that is free on the disk of a folder, in bytes.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let space = rustix::fs::statvfs(folder)?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

#[cfg(test)]
mod tests;
