//! Reading an export step by step, each step after it was found to be right.

use std::path::Path;

use super::{
    EVENTS_FILE, ExportError, HASHES_FILE, io_error,
    line::{ENTRY_BYTES, Entry},
    manifest::Manifest,
    output::Lines,
    walk::Walk,
};
use crate::{
    recorded::RecordedEvent,
    verify::{Damage, DamageKind},
};

/// Reads the files of an export, or of an unfinished one.
pub(super) struct Follower {
    pub(super) events: Option<Lines>,
    /// Only of a filtered export.
    pub(super) hashes: Option<Lines>,
    is_whole: bool,
    pub(super) walk: Walk,
}

/// What stands at the next position.
pub(super) enum Step {
    /// An event.
    Event(Box<RecordedEvent>),
    /// An event that is not in the export.
    Withheld,
    /// Nothing: the files end.
    End,
}

impl Follower {
    /// Begins before the first position.
    pub(super) fn open(folder: &Path, is_whole: bool) -> Result<Self, ExportError> {
        let hashes = if is_whole { None } else { Lines::open(folder, HASHES_FILE)? };
        let events = Lines::open(folder, EVENTS_FILE)?;
        Ok(Self { events, hashes, is_whole, walk: Walk::new(is_whole) })
    }

    /// The next step, or what is wrong with it. After that nothing is read on.
    pub(super) fn step(&mut self) -> Result<Result<Step, Damage>, ExportError> {
        let position = self.walk.next_position();
        let stepped = if self.is_whole { self.next_event(None)? } else { self.next_entry()? };
        Ok(stepped.map_err(|kind| Damage { position, kind }))
    }

    fn next_entry(&mut self) -> Result<Result<Step, DamageKind>, ExportError> {
        let line = match &mut self.hashes {
            Some(hashes) => hashes.next()?,
            None => None,
        };
        let Some(line) = line else {
            // Events behind the last position are none of the log.
            let more = match &mut self.events {
                Some(events) => events.next()?.is_some(),
                None => false,
            };
            return Ok(if more { Err(unreadable("its line in `hashes` is missing")) } else { Ok(Step::End) });
        };
        let Some(entry) = Entry::parse(line).filter(|_| line.len() == ENTRY_BYTES) else {
            return Ok(Err(unreadable("its line in `hashes` is not as it was written")));
        };
        if entry.is_here {
            let stepped = self.next_event(Some(entry))?;
            return Ok(match stepped {
                Ok(Step::End) => Err(DamageKind::Missing),
                other => other,
            });
        }
        self.walk.pass(&entry.hash);
        self.hashes.iter_mut().for_each(Lines::accept);
        Ok(Ok(Step::Withheld))
    }

    fn next_event(&mut self, entry: Option<Entry>) -> Result<Result<Step, DamageKind>, ExportError> {
        let line = match &mut self.events {
            Some(events) => events.next()?,
            None => None,
        };
        let Some(line) = line else { return Ok(Ok(Step::End)) };
        let event = match self.walk.check(line) {
            Ok(line) => line.event,
            Err(kind) => return Ok(Err(kind)),
        };
        if entry.is_some_and(|entry| entry.hash != event.hash) {
            return Ok(Err(DamageKind::HashDiffers));
        }
        self.walk.take(&event);
        self.events.iter_mut().for_each(Lines::accept);
        if entry.is_some() {
            self.hashes.iter_mut().for_each(Lines::accept);
        }
        Ok(Ok(Step::Event(Box::new(event))))
    }

    /// The first of its files that has more or other bytes than the manifest says.
    pub(super) fn other_file(&self, manifest: &Manifest) -> Option<&'static str> {
        [(EVENTS_FILE, &self.events), (HASHES_FILE, &self.hashes)].into_iter().find_map(|(name, lines)| {
            let entry = manifest.file(name)?;
            (!lines.as_ref().is_some_and(|lines| lines.is_all_of(entry))).then_some(name)
        })
    }
}

fn unreadable(reason: &str) -> DamageKind {
    DamageKind::Unreadable { reason: reason.to_owned() }
}

/// The hash of a whole file, or none if it is not there.
pub(super) fn hash_of(path: &Path) -> Result<Option<(u64, [u8; 32])>, ExportError> {
    let mut hasher = blake3::Hasher::new();
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("open", path)(error)),
    };
    hasher.update_reader(file).map_err(io_error("read", path))?;
    Ok(Some((hasher.count(), *hasher.finalize().as_bytes())))
}
