//! How a command fails: the exit code that scripts rely on, and what a person is told.

use std::{fmt, io};

use contracts::wire::problem::ProblemCode;
use eventlog::{
    BlobError, OpenError, VerifyError, backup::BackupError, export::ExportError, repair::RepairError,
};

/// The exit codes of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything that was asked for is done.
    Done = 0,
    /// It was tried, and it failed.
    Failed = 1,
    /// It was asked for in a way that makes no sense.
    Usage = 2,
    /// What it is about does not exist.
    NotFound = 3,
    /// Something or somebody is in the way.
    Refused = 4,
    /// What is stored is not what was written.
    Integrity = 5,
}

/// A failure that knows its exit code, and often what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure with this exit code, in words that say what was being done.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    /// There is no such thing.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Exit::NotFound, message)
    }

    /// The options do not go together, or one of them has a value that it cannot have.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The answer could not be printed. A reader that has what it wanted (`| head`) is no failure.
    pub(crate) fn unprinted(error: &io::Error) -> Self {
        let is_done = error.kind() == io::ErrorKind::BrokenPipe;
        Self::new(if is_done { Exit::Done } else { Exit::Failed }, "could not print the answer")
    }

    /// Adds what to do about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// What a person reads about an error: what was being done, then each cause, then what to do.
pub(crate) fn explain(error: &anyhow::Error) -> String {
    let mut lines: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if lines.last().is_none_or(|above| !above.ends_with(&text)) {
            lines.push(text);
        }
    }
    let mut text = format!("error: {}", lines.join("\n  because: "));
    if let Some(hint) = error.downcast_ref::<Failure>().and_then(|failure| failure.hint.as_ref()) {
        text.push_str(&format!("\nhint: {hint}"));
    }
    text
}

/// The exit code of an error. A failure that says no more than that it failed has the code of its
/// cause, if that is damage.
pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    let said = match error.downcast_ref::<Failure>() {
        Some(failure) => failure.exit,
        None => error.chain().find_map(exit_of_cause).unwrap_or(Exit::Failed),
    };
    if said == Exit::Failed && eventlog::is_damage(error.as_ref()) { Exit::Integrity } else { said }
}

fn exit_of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    if let Some(failure) = cause.downcast_ref::<Failure>() {
        return Some(failure.exit);
    }
    if let Some(OpenError::Held { .. } | OpenError::HeldByUnknown { .. }) = cause.downcast_ref() {
        return Some(Exit::Refused);
    }
    if let Some(exit) = cause.downcast_ref::<BackupError>().and_then(exit_of_backup) {
        return Some(exit);
    }
    if let Some(exit) = cause.downcast_ref::<ExportError>().and_then(exit_of_export) {
        return Some(exit);
    }
    if let Some(VerifyError::NoLog { .. }) = cause.downcast_ref() {
        return Some(Exit::NotFound);
    }
    if let Some(BlobError::NotFound { .. }) = cause.downcast_ref() {
        return Some(Exit::NotFound);
    }
    cause.downcast_ref::<RepairError>().and_then(exit_of_repair)
}

/// The exit code of an opening that was refused.
pub(crate) fn exit_of_open(error: &OpenError) -> Exit {
    if matches!(error, OpenError::Held { .. } | OpenError::HeldByUnknown { .. }) {
        Exit::Refused
    } else if error.is_damage() {
        Exit::Integrity
    } else {
        Exit::Failed
    }
}

fn exit_of_backup(error: &BackupError) -> Option<Exit> {
    if matches!(error, BackupError::NotEmpty { .. } | BackupError::OtherLog { .. }) {
        return Some(Exit::Refused);
    }
    matches!(error, BackupError::NoBackup { .. }).then_some(Exit::NotFound)
}

fn exit_of_export(error: &ExportError) -> Option<Exit> {
    match error {
        ExportError::NotEmpty { .. }
        | ExportError::Busy { .. }
        | ExportError::OtherUnfinished { .. }
        | ExportError::OtherLog { .. }
        | ExportError::ErasedMeanwhile { .. }
        | ExportError::NotImportable { .. } => Some(Exit::Refused),
        ExportError::NoExport { .. } => Some(Exit::NotFound),
        ExportError::Io { .. }
        | ExportError::Read(_)
        | ExportError::LogDamaged(_)
        | ExportError::Output { .. }
        | ExportError::BlobDamaged(_)
        | ExportError::Stopped
        | ExportError::Unwritable { .. }
        | ExportError::Unreadable { .. }
        | ExportError::Newer { .. }
        | ExportError::Format(_)
        | ExportError::SigningKey { .. }
        | ExportError::Damaged(_)
        | ExportError::Keys(_)
        | ExportError::Store(_)
        | ExportError::Verify(_)
        | ExportError::ImportDamaged(_) => None,
    }
}

fn exit_of_repair(error: &RepairError) -> Option<Exit> {
    match error {
        RepairError::Changed { .. } => Some(Exit::Refused),
        RepairError::RecordDamaged { .. } => Some(Exit::Integrity),
        RepairError::Open(_) | RepairError::Io { .. } => None,
    }
}

/// The exit code that says the same as a server's answer.
pub(crate) const fn exit_of_problem(code: ProblemCode) -> Exit {
    match code {
        ProblemCode::NotFound | ProblemCode::Gone => Exit::NotFound,
        ProblemCode::Conflict
        | ProblemCode::Stale
        | ProblemCode::Forbidden
        | ProblemCode::Unauthenticated
        | ProblemCode::RateLimited => Exit::Refused,
        ProblemCode::BadRequest
        | ProblemCode::Invalid
        | ProblemCode::MethodNotAllowed
        | ProblemCode::PayloadTooLarge
        | ProblemCode::RangeNotSatisfiable
        | ProblemCode::UnsupportedMediaType => Exit::Usage,
        ProblemCode::Integrity => Exit::Integrity,
        ProblemCode::Internal | ProblemCode::Unavailable | ProblemCode::Unsupported => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use anyhow::Context as _;
    use eventlog::{ReadError, store::StoreError};
    use jiff::Timestamp;

    use super::*;

    #[track_caller]
    fn check(error: impl Into<anyhow::Error>, exit: Exit, text: &str) {
        let error = error.into();
        assert_eq!((exit_of(&error), explain(&error).as_str()), (exit, text));
    }

    fn held(address: &str) -> OpenError {
        OpenError::Held {
            folder: PathBuf::from("d"),
            pid: 7,
            command: "remit serve".into(),
            since: Timestamp::UNIX_EPOCH,
            address: Some(address.to_owned()),
        }
    }

    #[test]
    fn a_failure_says_what_to_do() {
        check(
            Failure::not_found("no run r").hint("run `remit runs`"),
            Exit::NotFound,
            "error: no run r\nhint: run `remit runs`",
        );
        check(anyhow::anyhow!("plain"), Exit::Failed, "error: plain");
    }

    #[test]
    fn causes_follow_without_repeating_themselves() {
        let error =
            Err::<(), _>(anyhow::anyhow!("the disk is full")).context("could not write x").unwrap_err();
        check(error, Exit::Failed, "error: could not write x\n  because: the disk is full");
        let error = Err::<(), _>(anyhow::anyhow!("same")).context("x: same").unwrap_err();
        check(error, Exit::Failed, "error: x: same");
    }

    #[test]
    fn a_held_folder_is_refused_with_the_way_round_it() {
        let error = anyhow::Error::new(held("http://127.0.0.1:8700")).context("could not open d");
        assert_eq!(exit_of(&error), Exit::Refused);
        let text = explain(&error);
        assert!(text.contains("process 7 (`remit serve`, since 1970-01-01T00:00:00Z)"), "{text}");
        assert!(text.contains("--server http://127.0.0.1:8700"), "{text}");
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let exit = |kind| exit_of(&Failure::unprinted(&io::Error::from(kind)).into());
        assert_eq!(exit(io::ErrorKind::BrokenPipe), Exit::Done);
        assert_eq!(exit(io::ErrorKind::StorageFull), Exit::Failed);
        // A pipe that broke elsewhere is a failure like any other.
        assert_eq!(exit_of(&io::Error::from(io::ErrorKind::BrokenPipe).into()), Exit::Failed);
    }

    #[test]
    fn integrity_is_told_apart() {
        let damaged = || OpenError::WatermarkDamaged { path: PathBuf::from("head") };
        assert_eq!(exit_of(&damaged().into()), Exit::Integrity);
        // A word about what was being done does not hide it, and a refusal stays one.
        let below = |exit| anyhow::Error::new(damaged()).context(Failure::new(exit, "could not do it"));
        assert_eq!(exit_of(&below(Exit::Failed)), Exit::Integrity);
        assert_eq!(exit_of(&below(Exit::Refused)), Exit::Refused);
        let missing = StoreError::MissingEvent { position: eventlog::Position::new(7) };
        assert_eq!(exit_of(&ReadError::Store(missing).into()), Exit::Integrity);
        assert_eq!(exit_of(&ReadError::Closed.into()), Exit::Failed);
        assert_eq!(exit_of_problem(ProblemCode::Integrity), Exit::Integrity);
    }
}
