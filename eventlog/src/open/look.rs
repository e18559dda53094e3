//! The one look at a folder that opening, verifying, inspecting and repairing begin with.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{KEYS_FOLDER, LOG_FOLDER, OpenError, WATERMARK_FILE, io_error, recover, segments_folder};
use crate::{
    durable,
    format::{self, Found},
    keyring::KeyFile,
    migrate,
    position::Position,
    segment::{
        SegmentError, Segments,
        survey::{self, Ending, Fit, Survey},
    },
    store::Head,
    verify::{Damage, DamageKind},
    watermark::{Noted, Watermark},
};

/// Bytes of a torn end that are read at once.
const COPIED_AT_ONCE: usize = 64 * 1024;

/// What is in a folder, by its record and the head that was noted outside of it.
pub(crate) struct Look {
    pub(crate) segments: Segments,
    pub(crate) survey: Survey,
    pub(crate) noted: Noted,
    /// None if the log is new.
    pub(crate) version: Option<u32>,
}

/// Looks at a folder, and changes nothing in it.
pub(crate) fn look(folder: &Path) -> Result<Look, OpenError> {
    let log_folder = folder.join(LOG_FOLDER);
    let version = match format::check(&log_folder) {
        Ok(Found::Nothing) if migrate::is_half_done(folder) => {
            return Err(OpenError::OldFormat { folder: folder.to_owned() });
        }
        Ok(Found::Nothing) => None,
        Ok(Found::Version(version)) => Some(version),
        Ok(Found::InEngine) => return Err(OpenError::OldFormat { folder: folder.to_owned() }),
        Err(source) => return Err(OpenError::Format { folder: folder.to_owned(), source }),
    };
    let path = folder.join(WATERMARK_FILE);
    let noted = Watermark::peek(&path).map_err(io_error("read", &path))?;
    let failed = |error: SegmentError| OpenError::Store(error.into());
    let segments = Segments::open(&segments_folder(&log_folder)).map_err(failed)?;
    let survey = survey::survey(&segments, head_of(noted)).map_err(failed)?;
    Ok(Look { segments, survey, noted, version })
}

fn head_of(noted: Noted) -> Option<Head> {
    match noted {
        Noted::Head(head) => Some(head),
        Noted::Nothing | Noted::Damaged => None,
    }
}

impl Look {
    /// The head that was noted, if one can be read.
    pub(crate) fn noted_head(&self) -> Option<Head> {
        head_of(self.noted)
    }

    /// Whether a log without its keys has lost them.
    pub(crate) fn must_have_keys(&self) -> bool {
        self.version.is_some() || self.survey.head.position > Position::ZERO
    }

    /// Why the folder must not be opened, if so.
    pub(super) fn refusal(&self, folder: &Path) -> Option<OpenError> {
        self.refusal_by_record(folder)
            .or_else(|| self.refusal_by_index(folder))
            .or_else(|| self.refusal_by_keys(folder))
    }

    fn refusal_by_record(&self, folder: &Path) -> Option<OpenError> {
        let folder = folder.to_owned();
        if let Ending::Damaged { address, flaw } = self.survey.ending {
            let (path, at) = self.segments.place_of(address);
            let (position, what) = (self.survey.head.position.next(), flaw.to_string());
            return Some(OpenError::SegmentDamaged { path, at, position, what });
        }
        if self.noted == Noted::Damaged {
            return Some(OpenError::WatermarkDamaged { path: folder.join(WATERMARK_FILE) });
        }
        let noted = self.noted_head()?.position;
        match self.survey.noted {
            Fit::Unknown | Fit::Passed => None,
            Fit::Behind => Some(OpenError::HeadBehind { folder, log: self.survey.head.position, noted }),
            Fit::Differs => Some(OpenError::HeadDiffers { folder, noted }),
        }
    }

    /// Why a folder without a head file must not be opened, if so: its index knows of events that its
    /// record does not have. Where that is not so, nothing says whether the record is whole.
    fn refusal_by_index(&self, folder: &Path) -> Option<OpenError> {
        if self.noted != Noted::Nothing {
            return None;
        }
        let (log, noted) = (self.survey.head.position, recover::indexed(&folder.join(LOG_FOLDER))?.position);
        (noted > log).then(|| OpenError::HeadBehind { folder: folder.to_owned(), log, noted })
    }

    /// Why a folder without a log must not be opened, if so: it has keys, and the folder of the log is
    /// there before the first key.
    pub(crate) fn refusal_by_keys(&self, folder: &Path) -> Option<OpenError> {
        let is_lost = !folder.join(LOG_FOLDER).exists() && KeyFile::has_keys(&folder.join(KEYS_FOLDER));
        is_lost.then(|| OpenError::RecordLost { folder: folder.to_owned() })
    }

    /// What is wrong with the record, as damage of the log.
    pub(crate) fn damage(&self) -> Option<Damage> {
        let position = self.survey.head.position.next();
        if let Ending::Damaged { address, flaw } = self.survey.ending {
            return Some(self.segment_damage(position, address, flaw.to_string()));
        }
        let noted = self.noted_head()?.position;
        match self.survey.noted {
            Fit::Unknown | Fit::Passed => None,
            Fit::Behind => Some(Damage { position, kind: DamageKind::HeadBehind { noted } }),
            Fit::Differs => Some(Damage { position: noted, kind: DamageKind::HeadDiffers }),
        }
    }

    fn segment_damage(&self, position: Position, address: u64, what: String) -> Damage {
        let (path, at) = self.segments.place_of(address);
        Damage { position, kind: DamageKind::Segment { segment: path.display().to_string(), at, what } }
    }

    /// The file with the torn end, where the end begins in it, and its length.
    pub(crate) fn torn_end(&self) -> Option<(PathBuf, u64, u64)> {
        match self.survey.ending {
            Ending::Torn { bytes, .. } => {
                let (path, at) = self.segments.place_of(self.survey.end);
                Some((path, at, bytes))
            }
            Ending::Clean | Ending::Damaged { .. } => None,
        }
    }

    /// Puts zeros over a torn end, which was never acknowledged, and keeps a copy of it. Gives the
    /// copy.
    pub(crate) fn cut_torn_end(&self, folder: &Path) -> Result<Option<PathBuf>, OpenError> {
        let Some((path, at, bytes)) = self.torn_end() else { return Ok(None) };
        let kept = folder.join(format!("torn-{}-{at}", file_name(&path)));
        self.copy_end(bytes, &kept).map_err(io_error("copy a torn end to", &kept))?;
        tracing::warn!(segment = %path.display(), at, bytes, kept = %kept.display(),
            head = %self.survey.head.position,
            "the record has a torn end, which was never acknowledged and is dropped; a copy is kept");
        self.segments.erase_from(self.survey.end).map_err(|error| OpenError::Store(error.into()))?;
        Ok(Some(kept))
    }

    /// What is behind the head may go on in the next segment.
    fn copy_end(&self, bytes: u64, to: &Path) -> io::Result<()> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let (mut end, mut buffer) = (Vec::new(), vec![0; COPIED_AT_ONCE]);
        let mut keep = |_: u64, piece: &[u8]| {
            end.extend(piece.iter().take(bytes.saturating_sub(end.len())));
        };
        self.segments.visit(self.survey.end, &mut buffer, &mut keep).map_err(io::Error::other)?;
        durable::write_whole(to, &end)
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
