//! One piece of long work, and the names that backups may have.

use std::{fmt, path::PathBuf};

use domain::ids::JobId;
use eventlog::{Progress, Report, backup::Manifest, export};
use jiff::Timestamp;

/// A backup's name: long enough for a date and a reason.
const NAME_CHARS_MAX: usize = 100;
/// Ends the name of a folder that is not whole yet.
const UNFINISHED: &str = ".unfinished";

/// One piece of work on the whole log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Which.
    pub job_id: JobId,
    /// What it does, and what came of it.
    pub kind: JobKind,
    /// How it stands.
    pub state: JobState,
    /// How far it is.
    pub progress: Progress,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// What a piece of work does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobKind {
    /// It copies the log.
    Backup {
        /// The name of the backup.
        name: BackupName,
        /// Where it is, once it is done.
        folder: PathBuf,
        /// What is in it, once it is done.
        manifest: Option<Box<Manifest>>,
    },
    /// It writes events down for others to check.
    Export {
        /// The name of the export.
        name: BackupName,
        /// Where it is, once it is done.
        folder: PathBuf,
        /// What is in it, once it is done.
        manifest: Option<Box<export::Manifest>>,
    },
    /// It proves the log.
    Verification {
        /// What it found, once it is done.
        report: Option<Box<Report>>,
    },
}

/// How a piece of work stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// It is at work.
    Running,
    /// It has done what was asked for. A verification may have found damage.
    Done,
    /// It could not do it.
    Failed(Failed),
    /// The server stopped before it was done.
    Stopped,
}

/// Why a piece of work failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// In one line.
    pub reason: String,
    /// Whether what is stored is not what was written.
    pub is_damage: bool,
}

/// The name of a backup's folder: no path, nothing hidden, nothing that looks unfinished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupName(String);

/// Text that cannot name a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it must have 1 to {NAME_CHARS_MAX} of the characters a-z, A-Z, 0-9, -, _ and ., not begin with a dot and not end in \
     {UNFINISHED}"
)]
pub struct InvalidBackupName;

impl BackupName {
    /// Checks the text, and makes a name of it.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidBackupName> {
        let text = text.into();
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        let is_name = (1..=NAME_CHARS_MAX).contains(&text.chars().count())
            && text.chars().all(is_plain)
            && !text.starts_with('.')
            && !text.ends_with(UNFINISHED);
        if is_name { Ok(Self(text)) } else { Err(InvalidBackupName) }
    }

    /// A name that sorts by time.
    pub(super) fn of_time(time: Timestamp) -> Self {
        Self(time.strftime("%Y-%m-%dT%H-%M-%S.%3fZ").to_string())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BackupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_folder() {
        for name in ["monday", "2026-11-30T12-00-00.123Z", "a.b_c-D", "x".repeat(100).as_str()] {
            assert_eq!(BackupName::new(name).unwrap().as_str(), name);
        }
        for name in ["", ".", "..", ".hidden", "a/b", "../a", "/a", "a\\b", "a b", "é", "a\0", "x.unfinished"]
        {
            assert_eq!(BackupName::new(name), Err(InvalidBackupName), "{name:?}");
        }
        assert_eq!(BackupName::new("x".repeat(101)), Err(InvalidBackupName));
        let time = "2026-11-30T12:00:00.1234Z".parse().unwrap();
        assert_eq!(BackupName::of_time(time).as_str(), "2026-11-30T12-00-00.123Z");
        BackupName::new(BackupName::of_time(time).as_str()).unwrap();
    }
}
