//! Cutting a torn end off the engine's journal, when the engine does not do so itself.
//!
//! A power loss may leave holes in the last batch, which was never acknowledged; the engine then
//! refuses to open. [`plan_repair`] says what would be cut and touches nothing; [`apply`] cuts it,
//! keeps a copy, and puts everything back when the log turns out to have durably reached further.
//! Damage in the middle of a journal is never cut: a backup is the answer to that.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use crate::{
    engine::{
        Engine, EngineError,
        journal::{self, Journal},
    },
    journal_scan::JournalScan,
    keys,
    open::{self, ENGINE_FOLDER, OpenError, WATERMARK_FILE},
    options::Options,
    position::Position,
    store::{EngineStore, Head, StoreError},
    watermark::{Noted, Watermark},
};

/// What would be done to a folder, if anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepairPlan {
    /// Nothing is torn.
    Nothing,
    /// The end of the journal was never acknowledged and can go.
    Cut(Cut),
    /// What is wrong cannot be cut without losing durable events.
    Refused {
        /// Why.
        reason: String,
    },
}

/// A torn end of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The data folder.
    pub folder: PathBuf,
    /// The file.
    pub journal: PathBuf,
    /// Bytes that stay: whole batches.
    pub keep_bytes: u64,
    /// Bytes that go.
    pub cut_bytes: u64,
    /// The last position that stays, if it is in a journal.
    pub last_position: Option<Position>,
    /// Where the log is known to have been.
    pub noted: Option<Position>,
}

/// Why nothing was repaired.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The folder is in use, or a file could not be used.
    #[error("could not look at the folder to repair it")]
    Open(#[from] OpenError),
    /// A file could not be used.
    #[error("could not repair the journal {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The folder is not as it was when the plan was made.
    #[error("the journal {} has changed since the repair was planned: plan it again", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The engine does not open without the end either. The end is back in its place.
    #[error("the log does not open without its torn end either, which was put back: restore a backup")]
    Engine(#[source] EngineError),
    /// The repaired log could not be read. The end is back in its place.
    #[error("the log cannot be read without its torn end either, which was put back: restore a backup")]
    Store(#[source] StoreError),
    /// The log would end before where it durably was. The end is back in its place.
    #[error(
        "without its torn end the log would stop at position {log}, but had durably reached position \
         {noted}; the end was put back: restore a backup"
    )]
    Acknowledged {
        /// Where it would end.
        log: Position,
        /// Where it was.
        noted: Position,
    },
}

/// Looks for a torn end of the journal in a data folder that nobody has open.
pub fn plan_repair(folder: &Path, options: &Options) -> Result<RepairPlan, RepairError> {
    let _lock = open::acquire_lock(folder, (options.clock)())?;
    let engine_folder = folder.join(ENGINE_FOLDER);
    let io_error = |path: &Path| {
        let path = path.to_owned();
        move |source| RepairError::Io { path, source }
    };
    let scanned = JournalScan::of(&engine_folder).map_err(io_error(&engine_folder))?;
    let watermark = folder.join(WATERMARK_FILE);
    let noted = match Watermark::peek(&watermark).map_err(io_error(&watermark))? {
        Noted::Head(head) => Some(head),
        Noted::Nothing => None,
        Noted::Damaged => {
            let reason = format!("the head file {} is damaged", watermark.display());
            return Ok(RepairPlan::Refused { reason });
        }
    };
    if let Some(damage) = scanned.damage(noted) {
        return Ok(RepairPlan::Refused { reason: damage.to_string() });
    }
    Ok(scanned.torn().map_or(RepairPlan::Nothing, |(journal, bytes)| {
        RepairPlan::Cut(Cut {
            folder: folder.to_owned(),
            journal: journal.path.clone(),
            keep_bytes: journal.valid_bytes,
            cut_bytes: bytes,
            last_position: scanned.last_commit,
            noted: noted.map(|head| head.position),
        })
    }))
}

/// Cuts the end off, and looks whether the log is then what it is known to have been. Gives the
/// file that keeps what was cut.
pub fn apply(cut: &Cut, options: &Options) -> Result<PathBuf, RepairError> {
    if plan_repair(&cut.folder, options)? != RepairPlan::Cut(cut.clone()) {
        return Err(RepairError::Changed { path: cut.journal.clone() });
    }
    let _lock = open::acquire_lock(&cut.folder, (options.clock)())?;
    let io_error = |source| RepairError::Io { path: cut.journal.clone(), source };
    let end = read_end(&cut.journal, cut.keep_bytes).map_err(io_error)?;
    let kept = write_kept(&cut.folder, &cut.journal, cut.keep_bytes, &end).map_err(io_error)?;
    truncate(&cut.journal, cut.keep_bytes).map_err(io_error)?;
    if let Err(error) = check_repaired(cut) {
        put_back(&cut.journal, cut.keep_bytes, &end).map_err(io_error)?;
        return Err(error);
    }
    Ok(kept)
}

/// Whether the log opens and ends where it was, or later.
fn check_repaired(cut: &Cut) -> Result<(), RepairError> {
    let engine =
        Engine::open(&cut.folder.join(ENGINE_FOLDER), &keys::KEYSPACES).map_err(RepairError::Engine)?;
    let Head { position: log, .. } = EngineStore::head_of(&engine).map_err(RepairError::Store)?;
    match cut.noted {
        Some(noted) if noted > log => Err(RepairError::Acknowledged { log, noted }),
        _ => Ok(()),
    }
}

/// Copies the torn end of a journal, before the engine cuts it.
pub(crate) fn keep_end(folder: &Path, journal: &Journal) -> io::Result<()> {
    let end = read_end(&journal.path, journal.valid_bytes)?;
    let kept = write_kept(folder, &journal.path, journal.valid_bytes, &end)?;
    tracing::warn!(journal = %journal.path.display(), kept = %kept.display(),
        "the journal has a torn end, which is dropped; a copy is kept");
    Ok(())
}

fn read_end(journal: &Path, from: u64) -> io::Result<Vec<u8>> {
    journal::rest(File::open(journal)?, from)
}

/// The copy is in the data folder, named after the journal and the place of the cut.
fn write_kept(folder: &Path, journal: &Path, at: u64, end: &[u8]) -> io::Result<PathBuf> {
    let name = journal.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let path = folder.join(format!("torn-{name}-{at}"));
    fs::write(&path, end)?;
    File::open(&path)?.sync_all()?;
    Ok(path)
}

fn truncate(journal: &Path, length: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(journal)?;
    file.set_len(length)?;
    file.sync_all()
}

fn put_back(journal: &Path, at: u64, end: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(journal)?;
    file.set_len(at)?;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(end)?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
