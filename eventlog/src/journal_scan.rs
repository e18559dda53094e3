//! What the engine's journals hold of the log, before the engine is opened.

use std::{io, path::Path};

use crate::{
    engine::journal::{self, Journal, JournalEnd},
    keys,
    position::Position,
    store::Head,
    verify::{Damage, DamageKind},
};

/// All journals, and the last commit in them.
pub(crate) struct JournalScan {
    pub(crate) journals: Vec<Journal>,
    /// None if all commits are in tables.
    pub(crate) last_commit: Option<Position>,
}

impl JournalScan {
    pub(crate) fn of(engine_folder: &Path) -> io::Result<Self> {
        let mut last_commit = None;
        let journals = journal::scan(engine_folder, &mut |key| {
            if let Ok(last) = keys::commit::decode(key) {
                last_commit = last_commit.max(Some(last));
            }
        })?;
        Ok(Self { journals, last_commit })
    }

    /// The first journal that has something whole behind something that is not. Only the last
    /// journal can have a torn end: the others were synced when the next one was begun.
    pub(crate) fn damaged(&self) -> Option<&Journal> {
        let last = self.journals.last();
        self.journals.iter().find(|journal| match journal.end {
            JournalEnd::Clean => false,
            JournalEnd::Torn { .. } => last != Some(*journal),
            JournalEnd::Damaged => true,
        })
    }

    /// The last journal, if its end is torn, and how many bytes of it.
    pub(crate) fn torn(&self) -> Option<(&Journal, u64)> {
        let journal = self.journals.last()?;
        match journal.end {
            JournalEnd::Torn { bytes } => Some((journal, bytes)),
            JournalEnd::Clean | JournalEnd::Damaged => None,
        }
    }

    /// What must not be opened, as damage of the log.
    pub(crate) fn damage(&self, noted: Option<Head>) -> Option<Damage> {
        let after = |last: Option<Position>| last.unwrap_or(Position::ZERO).next();
        if let Some(journal) = self.damaged() {
            let name = journal.path.display().to_string();
            let kind = DamageKind::Journal { journal: name, at: journal.valid_bytes };
            return Some(Damage { position: after(self.last_commit), kind });
        }
        let (noted, last) = (noted?, self.last_commit?);
        let is_behind = self.torn().is_some() && noted.position > last;
        let kind = DamageKind::HeadBehind { noted: noted.position };
        is_behind.then(|| Damage { position: after(Some(last)), kind })
    }
}
