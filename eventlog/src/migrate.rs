//! Bringing a log of an earlier version to the present one.
//!
//! Versions 1 and 2 had everything in the storage engine, commit by commit. Each commit becomes a
//! frame, with the same records, hashes and chain, in a new folder beside the old one; the whole of
//! it is proven against the head that the old log had; then the folders are swapped. A crash at any
//! point leaves the old log or the new one in place, and the next start finishes or begins anew.
//!
//! ```text
//! {data}/log.migrating/  a copy of the old log that may be opened, and the new log being made
//! {data}/log.migrated    the new log, whole and on disk
//! {data}/log.old         the old log, once the new one is whole; removed when it is in place
//! ```
//!
//! The old log itself is never opened, since its engine cuts what it cannot read off its journal.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    durable,
    format::{self, Found},
    open::{self, LOG_FOLDER, OpenError, WATERMARK_FILE, io_error},
    options::Options,
    position::Position,
    segment::{Appender, Segments},
    store::{Head, StoreError},
    verify::{self, Damage, Progress, VerifyError, VerifyRequest},
    watermark::{Noted, Watermark},
};

mod copying;
mod old_log;
#[cfg(test)]
mod tests;

use old_log::OldLog;

/// Why a log could not be brought to the present version.
#[derive(Debug, thiserror::Error)]
enum MigrationError {
    #[error("could not read or write the log")]
    Store(#[from] StoreError),
    #[error("could not verify the new log")]
    Verify(#[from] VerifyError),
    #[error("the old log is damaged, and stands as it is: restore a backup")]
    Damaged(#[source] Damage),
    #[error("could not use the files of the log")]
    Io(#[from] io::Error),
}

/// The folders that are made and moved.
struct Places {
    log: PathBuf,
    migrating: PathBuf,
    migrated: PathBuf,
    old: PathBuf,
}

impl Places {
    fn of(folder: &Path) -> Self {
        let place = |end: &str| folder.join(format!("{LOG_FOLDER}{end}"));
        Self {
            log: place(""),
            migrating: place(".migrating"),
            migrated: place(".migrated"),
            old: place(".old"),
        }
    }
}

/// Whether a crash left the folders half swapped, so that only opening the log puts it in place.
pub(crate) fn is_half_done(folder: &Path) -> bool {
    let places = Places::of(folder);
    !places.log.exists() && places.migrated.exists()
}

/// Finishes what a crash left, and brings an older log to the present version.
pub(crate) fn bring_up_to_date(folder: &Path, options: &Options) -> Result<(), OpenError> {
    let places = Places::of(folder);
    finish_swap(folder, &places).map_err(io_error("finish swapping the logs in", folder))?;
    // What is wrong with the version is said by whoever looks at the log next.
    let Ok(Found::InEngine) = format::check(&places.log) else { return Ok(()) };
    tracing::info!(folder = %folder.display(), "bringing the log to format {}", format::FORMAT_VERSION);
    let failed =
        |error: MigrationError| OpenError::Migration { folder: folder.to_owned(), source: Box::new(error) };
    let copy = places.migrating.join("old");
    copying::copy_folder(&places.log, &copy).map_err(|error| failed(error.into()))?;
    let old =
        OldLog::open(&copy).map_err(|source| OpenError::Format { folder: folder.to_owned(), source })?;
    check_noted(folder, &old)?;
    // The keys are on disk before a log is in place that may have sealed records.
    drop(open::open_keys(folder, options, format::is_sealed(old.version()))?);
    let new = places.migrating.join("new");
    let head = old.head().map_err(OpenError::Store)?.position;
    let tell = |position| {
        if let Some(on_migrating) = &options.on_migrating {
            on_migrating(Progress { position, head });
        }
    };
    tell(Position::ZERO);
    make(&old, &new, &tell).map_err(failed)?;
    drop(old);
    let swap = || {
        fs::rename(&new, &places.migrated)?;
        durable::sync_folder(folder)?;
        fs::rename(&places.log, &places.old)?;
        finish_swap(folder, &places)
    };
    swap().map_err(io_error("swap the logs in", folder))
}

/// Refuses an old log that is not the one whose head was noted.
fn check_noted(folder: &Path, old: &OldLog) -> Result<(), OpenError> {
    let path = folder.join(WATERMARK_FILE);
    let noted = match Watermark::peek(&path).map_err(io_error("read", &path))? {
        Noted::Head(noted) => noted,
        Noted::Nothing => return Ok(()),
        Noted::Damaged => return Err(OpenError::WatermarkDamaged { path }),
    };
    let folder = folder.to_owned();
    let head = old.head().map_err(OpenError::Store)?;
    if head.position < noted.position {
        return Err(OpenError::HeadBehind { folder, log: head.position, noted: noted.position });
    }
    let chain = old.chain_at(noted.position).map_err(OpenError::Store)?;
    if noted != Head::EMPTY && chain != Some(noted.chain) {
        return Err(OpenError::HeadDiffers { folder, noted: noted.position });
    }
    Ok(())
}

/// Makes the new log, and proves that it is the old one.
fn make(old: &OldLog, new: &Path, tell: &dyn Fn(Position)) -> Result<(), MigrationError> {
    fs::create_dir_all(new)?;
    let folder = open::segments_folder(new);
    let segments = Segments::open(&folder).map_err(StoreError::from)?;
    let mut appender = Appender::new(segments, 0).map_err(StoreError::from)?;
    old.write_to(&mut appender, tell)?;
    appender.sync().map_err(StoreError::from)?;
    drop(appender);
    let head = old.head()?;
    let segments = Segments::open(&folder).map_err(StoreError::from)?;
    let exported = (head.position > Position::ZERO).then(|| head.into());
    let report = verify::verify_record(&segments, head, VerifyRequest { exported, progress: None })?;
    if let Some(damage) = report.damage {
        return Err(MigrationError::Damaged(damage));
    }
    format::write(new)?;
    durable::sync_folder(&folder)?;
    Ok(durable::sync_folder(new)?)
}

/// Goes on with a swap where it was left, or throws away what came to nothing.
fn finish_swap(folder: &Path, places: &Places) -> io::Result<()> {
    let Places { log, migrating, migrated, old } = places;
    if !log.exists() && migrated.exists() {
        fs::rename(migrated, log)?;
        durable::sync_folder(folder)?;
    }
    for rest in [migrating, migrated, old] {
        if rest.exists() && log.exists() {
            fs::remove_dir_all(rest)?;
        }
    }
    Ok(())
}
