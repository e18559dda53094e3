//! Verifying: every blob that an event names is there, whole, and has the digest that it is named by.

use std::{
    collections::{HashMap, HashSet},
    fmt, io,
    ops::ControlFlow,
    path::Path,
};

use domain::causes::with_causes;

use super::{
    BlobDigest, BlobError, BlobReader, BlobRef,
    named::{self, NAMING_TYPES},
    place::{Name, Place},
    reader::{self, Probe},
    settle::{self, AndRemove},
    store::Staged,
};
use crate::{
    codec::record::{self, Outline, Type},
    keyring::{Found, Keyring, ScopeId},
    keys,
    position::Position,
    seal::{self, TypeTag},
    segment::{Segments, Walk},
    store::StoreError,
    verify::{Damage, DamageKind, Report, VerifyError},
};

/// What is wrong with a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobFault {
    /// It is not there.
    Missing,
    /// It is not what was written.
    Damaged(&'static str),
    /// It is larger or smaller than it is said to be.
    OtherLength {
        /// Its length.
        found: u64,
        /// What the event says.
        named: u64,
    },
    /// The disk does not give it.
    Unreadable(String),
}

impl fmt::Display for BlobFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is missing"),
            Self::Damaged(what) => write!(f, "is damaged: {what}"),
            Self::OtherLength { found, named } => {
                write!(f, "has {found} bytes, and the event names one of {named}")
            }
            Self::Unreadable(why) => write!(f, "cannot be read: {why}"),
        }
    }
}

/// Adds to a report on a log that is whole what is to be said of the blobs of its data folder.
pub(crate) fn complete(
    report: Report,
    segments: &Segments,
    keyring: &Keyring,
    data: &Path,
) -> Result<Report, VerifyError> {
    if report.damage.is_some() {
        return Ok(report);
    }
    let mut check = Check::new(keyring, data);
    let damage = check.log(segments, report.head.position)?;
    Ok(Report { blobs: check.checked.len() as u64, damage, ..report })
}

/// The first event up to a position that names a blob which is not whole in the folder.
pub(crate) fn first_damage(
    segments: &Segments,
    head: Position,
    keyring: &Keyring,
    folder: &Path,
) -> Result<Option<Damage>, VerifyError> {
    Ok(Check::new(keyring, folder).log(segments, head)?)
}

/// What is wrong with the blobs that events name, of at most so many of them: missing ones, and those
/// that do not open. Their bytes are not read, but for the last.
pub(crate) fn look_at_named(
    segments: &Segments,
    head: Position,
    keyring: &Keyring,
    folder: &Path,
    max: usize,
) -> Result<Vec<Damage>, StoreError> {
    let mut check = Check { is_whole_read: false, ..Check::new(keyring, folder) };
    let mut found = Vec::new();
    check.each(segments, head, &mut |damage| {
        found.push(damage);
        if found.len() < max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}

/// A verification under way.
struct Check<'a> {
    place: Place,
    keyring: &'a Keyring,
    /// The tags of the naming types, of each scope whose key is there.
    tags: HashMap<ScopeId, [TypeTag; NAMING_TYPES.len()]>,
    /// Blobs that were looked at, by the scope of the event that names them.
    checked: HashSet<(ScopeId, BlobDigest)>,
    /// Whether all bytes are read and compared with the digest.
    is_whole_read: bool,
}

/// Is told of damage, and says whether to go on.
type Told<'a> = dyn FnMut(Damage) -> ControlFlow<()> + 'a;

impl<'a> Check<'a> {
    fn new(keyring: &'a Keyring, folder: &Path) -> Self {
        let (place, tags, checked) = (Place::in_data(folder), HashMap::new(), HashSet::new());
        Self { place, keyring, tags, checked, is_whole_read: true }
    }

    /// Looks for the first event that names a blob which is not whole.
    fn log(&mut self, segments: &Segments, head: Position) -> Result<Option<Damage>, StoreError> {
        let mut first = None;
        self.each(segments, head, &mut |damage| {
            first = Some(damage);
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    /// Tells of every event that is the first to name a blob which is not whole.
    fn each(&mut self, segments: &Segments, head: Position, tell: &mut Told<'_>) -> Result<(), StoreError> {
        let (mut walk, mut position) = (Walk::new(segments.clone(), 0, None), Position::ZERO);
        while position < head {
            // The record is whole, so that none is missing.
            let Some(frame) = walk.next()? else { break };
            for (_, record) in frame.records() {
                position = position.next();
                if self.record(position, record, tell)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn record(
        &mut self,
        position: Position,
        bytes: &[u8],
        tell: &mut Told<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let Ok(outline) = record::outline(bytes) else { return Ok(ControlFlow::Continue(())) };
        if !record::is_sealed(bytes) || !self.can_name(&outline)? {
            return Ok(ControlFlow::Continue(()));
        }
        // Of an erased one nothing is named.
        let Ok(event) = record::decode(bytes, self.keyring) else { return Ok(ControlFlow::Continue(())) };
        let scope = scope_of(&outline);
        for blob in named::named(&event) {
            if !self.checked.insert((scope, blob.sha256)) {
                continue;
            }
            if let Some(fault) = self.blob(&outline, blob)? {
                let kind = DamageKind::Blob { sha256: blob.sha256, fault };
                if tell(Damage { position, kind }).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Whether the event is of a type that names blobs, and its key is there.
    fn can_name(&mut self, outline: &Outline) -> Result<bool, StoreError> {
        let Type::Tag(tag) = &outline.event_type else { return Ok(false) };
        let scope = scope_of(outline);
        if let Some(tags) = self.tags.get(&scope) {
            return Ok(tags.contains(tag));
        }
        let Found::Live(key) = self.keyring.find(scope).map_err(StoreError::Keys)? else { return Ok(false) };
        let tags = NAMING_TYPES.map(|name| seal::type_tag(&key, name));
        self.tags.insert(scope, tags);
        Ok(tags.contains(tag))
    }

    fn blob(&self, outline: &Outline, blob: BlobRef) -> Result<Option<BlobFault>, StoreError> {
        let (thread, scope) = (ScopeId(keys::stream_entry::hash(&outline.stream)), scope_of(outline));
        let Found::Live(thread_key) = self.keyring.find(thread).map_err(StoreError::Keys)? else {
            return Ok(None);
        };
        let name = Name::of(&thread_key, &blob.sha256);
        let fault = self
            .look(thread, scope, name, blob)
            .unwrap_or_else(|error| Some(BlobFault::Unreadable(with_causes(&error))));
        // It may have been erased meanwhile.
        Ok(fault.filter(|_| !self.keyring.is_destroyed(scope) && !self.keyring.is_destroyed(thread)))
    }

    fn look(
        &self,
        thread: ScopeId,
        scope: ScopeId,
        name: Name,
        blob: BlobRef,
    ) -> io::Result<Option<BlobFault>> {
        let settled = self.place.blob(thread, scope, name);
        let mut probe = reader::probe(&settled, scope, self.keyring)?;
        if let Probe::Missing = probe {
            probe = self.staged(thread, scope, name)?;
        }
        if let Probe::Missing = probe {
            // It may have been moved to its place between the two looks.
            probe = reader::probe(&settled, scope, self.keyring)?;
        }
        let found = match probe {
            Probe::Missing | Probe::Erased => return Ok(Some(BlobFault::Missing)),
            Probe::Damaged(what) => return Ok(Some(BlobFault::Damaged(what))),
            Probe::Whole(found) => found,
        };
        if found.header.blob.sha256 != blob.sha256 {
            return Ok(Some(BlobFault::Damaged("another blob is in its place")));
        }
        if found.header.blob.bytes != blob.bytes {
            let (found, named) = (found.header.blob.bytes, blob.bytes);
            return Ok(Some(BlobFault::OtherLength { found, named }));
        }
        Ok(if self.is_whole_read { read(*found) } else { BlobReader::new(*found).err().map(fault_of) })
    }

    fn staged(&self, thread: ScopeId, scope: ScopeId, name: Name) -> io::Result<Probe> {
        let staged = by_name(&self.place, self.keyring)?;
        let mut blobs = staged.get(&(thread, name)).into_iter().flatten();
        match blobs.find(|blob| blob.scope == scope) {
            Some(blob) => reader::probe(&self.place.staged(&blob.stem), scope, self.keyring),
            None => Ok(Probe::Missing),
        }
    }
}

/// Reads all of it; the reader compares it with its digest.
fn read(found: reader::Found) -> Option<BlobFault> {
    let mut reader = match BlobReader::new(found) {
        Ok(reader) => reader,
        Err(error) => return Some(fault_of(error)),
    };
    loop {
        match reader.next_piece() {
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(error) => return Some(fault_of(error)),
        }
    }
}

fn fault_of(error: BlobError) -> BlobFault {
    if let BlobError::Damaged { what, .. } = error {
        return BlobFault::Damaged(what);
    }
    BlobFault::Unreadable(with_causes(&error))
}

fn by_name(place: &Place, keyring: &Keyring) -> io::Result<Staged> {
    let mut staged = Staged::new();
    for (blob, header) in settle::staged_in(place, keyring, AndRemove::Nothing)? {
        if let Some(name) = settle::name_of(&header, keyring)? {
            staged.entry((header.owner.thread(), name)).or_default().push(blob);
        }
    }
    Ok(staged)
}

fn scope_of(outline: &Outline) -> ScopeId {
    outline.run.unwrap_or_else(|| ScopeId(keys::stream_entry::hash(&outline.stream)))
}
