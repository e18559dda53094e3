//! Opening the folder of blobs: what a crash or a refusal left in `staged` is put in its place or
//! removed. Nothing else is looked at, however many blobs there are.

use std::{collections::BTreeSet, fs::File, io, path::Path, sync::Arc};

use super::{
    Blobs,
    header::{self, Header},
    named,
    place::{self, KEY_SUFFIX, Name, Place},
    reader,
    store::{self, Staged, StagedBlob},
};
use crate::{
    durable,
    keyring::{Found, Keyring},
    open::OpenError,
    position::Seq,
    recorded::RecordedEvent,
    store::{LogStore, StoreError},
    stream_id::StreamId,
};

/// Events that are read at once.
const PAGE: usize = 1_000;

impl Blobs {
    /// Opens the blobs of a data folder whose log is open and takes no events yet.
    pub(crate) fn open_folder(folder: &Path, store: &dyn LogStore) -> Result<Self, OpenError> {
        let place = Place::in_data(folder);
        let failed =
            |source| OpenError::Io { action: "open the blobs in", path: place.root().to_owned(), source };
        place::create_folder(&place.staged_folder()).map_err(failed)?;
        durable::sync_folder(folder).map_err(failed)?;
        let keyring = Arc::clone(store.keyring());
        let mut staged = Staged::new();
        for (blob, header) in staged_in(&place, &keyring, AndRemove::Unfinished).map_err(failed)? {
            let Some(name) = name_of(&header, &keyring).map_err(failed)? else { continue };
            let thread = header.owner.thread();
            match is_named(store, &header) {
                Ok(true) => {
                    store::move_to_place(&place, thread, name, &blob, &keyring).map_err(failed)?;
                }
                Ok(false) => {
                    let path = place.staged(&blob.stem);
                    tracing::info!(sha256 = %header.blob.sha256, bytes = header.blob.bytes,
                        "a blob that no event names is removed");
                    place::remove_file(&path).map_err(failed)?;
                    place::remove_file(&place::key_beside(&path)).map_err(failed)?;
                }
                // Whoever cannot read the events does not know.
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "whether a blob is named cannot be read; it stays"
                    );
                    staged.entry((thread, name)).or_default().push(blob);
                }
            }
        }
        Ok(Self::new(place, keyring, staged))
    }
}

/// What is done with what was not finished, or cannot be opened for ever.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AndRemove {
    Unfinished,
    Nothing,
}

/// The whole blobs in the folder of staged ones.
pub(super) fn staged_in(
    place: &Place,
    keyring: &Keyring,
    and_remove: AndRemove,
) -> io::Result<Vec<(StagedBlob, Header)>> {
    let mut found = Vec::new();
    let names = place::names_in(&place.staged_folder())?;
    let stems: BTreeSet<_> = names.iter().map(|name| name.trim_end_matches(KEY_SUFFIX)).collect();
    for stem in stems {
        let path = place.staged(stem);
        let key = place::key_beside(&path);
        let file = match File::open(&key) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => File::open(&path),
            file => file,
        };
        let file = match file {
            // It was moved to its place meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        match Header::read(&reader::read_header(&file)?, keyring)? {
            header::Read::Whole(header) => {
                let scope = header.owner.sealing();
                found.push((StagedBlob { scope, stem: stem.to_owned() }, *header));
            }
            header::Read::Unfinished | header::Read::Erased => {
                if and_remove == AndRemove::Unfinished {
                    place::remove_file(&path)?;
                    place::remove_file(&key)?;
                }
            }
            header::Read::Damaged => {
                tracing::error!(path = %path.display(), "a staged blob is damaged; it stays as it is");
            }
        }
    }
    Ok(found)
}

/// The name of a blob's file; none if the thread's key is gone.
pub(super) fn name_of(header: &Header, keyring: &Keyring) -> io::Result<Option<Name>> {
    Ok(match keyring.find(header.owner.thread())? {
        Found::Live(thread_key) => Some(Name::of(&thread_key, &header.blob.sha256)),
        Found::Destroyed | Found::Missing => None,
    })
}

/// Whether an event after the blob names it. An event that only mentions it counts too: then the
/// blob stays.
fn is_named(store: &dyn LogStore, header: &Header) -> Result<bool, StoreError> {
    let stream = StreamId::Thread(header.owner.thread_id.clone());
    let digest = header.blob.sha256.to_string();
    let mut after: Seq = header.after;
    loop {
        let page = store.read_stream(&stream, after, PAGE)?;
        let Some(last) = page.last() else { return Ok(false) };
        after = last.seq;
        let is_of_scope = |event: &RecordedEvent| event.scope.run_id == header.owner.run_id;
        if page.iter().any(|event| is_of_scope(event) && named::mentions(event, &digest)) {
            return Ok(true);
        }
    }
}
