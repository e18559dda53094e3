//! Bringing the index up to the record: what a stop kept from its tables is added again, and an
//! index that cannot be used is made anew. Neither is a loss: everything in it follows from the
//! record.

use std::{fs, io, path::Path};

use super::{OpenError, index_folder, io_error};
use crate::{
    engine::{Engine, EngineError},
    index::{Checkpoint, Index},
    keys::INDEX_KEYSPACES,
    position::Position,
    segment::{
        Segments, Walk,
        frame::{HEADER_BYTES, Header},
    },
    store::{Head, StoreError, segment_store},
};

/// Events between two messages on a long way.
const MESSAGE_EVENTS: u64 = 250_000;

/// Opens the index of a log, with every commit of its record up to the head.
pub(crate) fn open_index(log_folder: &Path, segments: &Segments, head: Head) -> Result<Index, OpenError> {
    let folder = index_folder(log_folder);
    let is_there = folder.exists();
    match open_fitting(&folder, segments, head) {
        Ok(Some(index)) => {
            if !is_there && head.position > Position::ZERO {
                tracing::warn!(folder = %folder.display(), "the index is missing; it is made from the record");
            }
            return add_rest(index, segments, head).map_err(OpenError::Store);
        }
        Ok(None) => tracing::warn!(folder = %folder.display(),
            "the index does not fit the record; it is made anew"),
        Err(error) => tracing::warn!(folder = %folder.display(), error = &error as &dyn std::error::Error,
            "the index cannot be used; it is made anew"),
    }
    rebuild(log_folder, segments, head)
}

/// How far the tables of the index go, as far as they can be read. Only what is durable in the record
/// comes into them, so that a record that ends before them has lost its end.
pub(super) fn indexed(log_folder: &Path) -> Option<Head> {
    let folder = index_folder(log_folder);
    if !folder.exists() {
        return None;
    }
    let index = open_engine(&folder).ok().and_then(|engine| Index::open(engine).ok())?;
    Some(index.checkpoint().head)
}

/// Throws the index away and makes it anew.
pub(crate) fn rebuild(log_folder: &Path, segments: &Segments, head: Head) -> Result<Index, OpenError> {
    let folder = index_folder(log_folder);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        removed => removed.map_err(io_error("remove the index in", &folder))?,
    }
    let engine =
        open_engine(&folder).map_err(|source| OpenError::Engine { folder: folder.clone(), source })?;
    let index = Index::open(engine).map_err(OpenError::Store)?;
    add_rest(index, segments, head).map_err(OpenError::Store)
}

pub(crate) fn open_engine(folder: &Path) -> Result<Engine, EngineError> {
    let make_room = || folder.parent().map_or(Ok(()), fs::create_dir_all);
    make_room().map_err(|error| EngineError::new(format!("create {}", folder.display()), error))?;
    Engine::open(folder, &INDEX_KEYSPACES)
}

/// The index, if its tables are those of this record.
fn open_fitting(folder: &Path, segments: &Segments, head: Head) -> Result<Option<Index>, StoreError> {
    let index = Index::open(open_engine(folder)?)?;
    Ok(fits(&index, segments, head)?.then_some(index))
}

/// Whether the last commit in the tables is in the record, at the same place.
pub(crate) fn fits(index: &Index, segments: &Segments, head: Head) -> Result<bool, StoreError> {
    let Checkpoint { head: done, end } = index.checkpoint();
    if index.checkpoint() == Checkpoint::EMPTY {
        return Ok(true);
    }
    let Some(located) = index.locate(done.position)? else { return Ok(false) };
    let mut bytes = [0; HEADER_BYTES];
    segments.read_at(located.address, &mut bytes)?;
    let Ok(header) = Header::decode(&bytes, located.address) else { return Ok(false) };
    Ok(done.position <= head.position
        && header.commit() == located.commit
        && located.commit.last == done.position
        && located.commit.chain == done.chain
        && located.address + header.frame_bytes() == end)
}

/// Adds what is in the record behind the tables.
pub(crate) fn add_rest(index: Index, segments: &Segments, head: Head) -> Result<Index, StoreError> {
    let done = index.checkpoint();
    let mut walk = Walk::new(segments.clone(), done.end, Some(done.head.position.next()));
    let (mut position, mut told) = (done.head.position, done.head.position.get());
    while position < head.position {
        let missing = StoreError::MissingEvent { position: position.next() };
        let frame = walk.next()?.ok_or(missing)?;
        position = frame.header.commit().last;
        index.add(segment_store::commit_of(&frame)?)?;
        if position.get() - told >= MESSAGE_EVENTS {
            told = position.get();
            tracing::info!(position = told, head = head.position.get(), "indexing the record");
        }
    }
    Ok(index)
}
