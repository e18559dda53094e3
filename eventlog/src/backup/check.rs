//! Proving that a backup is what was recorded, without a log.

use std::{ops::ControlFlow, path::Path};

use super::{BackupError, Manifest, SEGMENTS_FOLDER, files, manifest::files_root, thread_files};
use crate::{
    position::Position,
    segment::{SegmentError, Segments, Walk},
    store::{Head, StoreError},
    verify::{self, Damage, DamageKind, Progress, Report, VerifyRequest},
};

/// Proves that a backup is what was recorded: every hash, chain, commit and file.
pub fn verify_backup(folder: &Path, request: VerifyRequest<'_>) -> Result<Report, BackupError> {
    let manifest = Manifest::read(folder)?;
    for file in &manifest.files {
        files::check_length(&folder.join(&file.name), file)?;
    }
    let report = verify_record(folder, &manifest, request)?;
    if report.is_whole() {
        manifest.files.iter().chain(&manifest.blobs).try_for_each(|file| files::check(folder, file))?;
        thread_files::check(&files_root(folder, manifest.number()), &manifest)?;
    }
    Ok(report)
}

/// Follows the record of a backup, and compares its end with what the manifest says.
pub(super) fn verify_record(
    folder: &Path,
    manifest: &Manifest,
    request: VerifyRequest<'_>,
) -> Result<Report, BackupError> {
    let segments = Segments::open(&folder.join(SEGMENTS_FOLDER)).map_err(StoreError::from)?;
    let report = verify::verify_record(&segments, manifest.head(), request)?;
    let is_exported_behind =
        matches!(report.damage, Some(Damage { kind: DamageKind::TailRemoved { .. }, .. }));
    if report.is_whole() && report.commits != manifest.commits {
        return Err(Manifest::differs(folder, "it has another number of commits"));
    }
    if report.is_whole() || is_exported_behind {
        let end = prove(&segments, Proven::BEGINNING, manifest.position, &mut |_| ControlFlow::Continue(()))?;
        if end.head != manifest.head() {
            return Err(Manifest::differs(folder, "the events end elsewhere, or with another chain"));
        }
    }
    Ok(report)
}

/// How far a record was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Proven {
    pub(super) head: Head,
    /// The address behind it.
    pub(super) end: u64,
    pub(super) commits: u64,
}

impl Proven {
    pub(super) const BEGINNING: Self = Self { head: Head::EMPTY, end: 0, commits: 0 };
}

/// Follows the chain of the log through the frames up to a position. It takes the hashes of events as
/// they are.
pub(super) fn prove(
    segments: &Segments,
    from: Proven,
    until: Position,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Proven, BackupError> {
    let mut walk = Walk::new(segments.clone(), from.end, Some(from.head.position.next()));
    let mut proven = from;
    while proven.head.position < until {
        let position = proven.head.position.next();
        let bad = |position, kind| BackupError::LogDamaged(Damage { position, kind });
        let frame = match walk.next() {
            Ok(Some(frame)) => frame,
            Ok(None) => return Err(bad(position, DamageKind::Missing)),
            Err(SegmentError::Damaged { path, at, what, .. }) => {
                let (segment, what) = (path.display().to_string(), what.to_string());
                return Err(bad(position, DamageKind::Segment { segment, at, what }));
            }
            Err(error) => return Err(StoreError::from(error).into()),
        };
        let commit = frame.header.commit();
        if frame.fold_chain(proven.head.chain) != Some(commit.chain) {
            return Err(bad(commit.last, DamageKind::ChainDiffers));
        }
        let head = Head { position: commit.last, chain: commit.chain };
        let end = frame.header.address + frame.header.frame_bytes();
        proven = Proven { head, end, commits: proven.commits + 1 };
        if progress(Progress { position: head.position, head: until }).is_break() {
            return Err(BackupError::Stopped);
        }
    }
    Ok(proven)
}
