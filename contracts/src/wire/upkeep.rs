//! Long work on the whole log of a running server: backups, exports and verifications. One runs at a time, and
//! the last few are remembered until the server ends.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::problem::ProblemCode;

/// Asks for a backup.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateBackup {
    /// The name of its folder, within the server's folder for backups; the time when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the files of threads belong to it; they do when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<bool>,
}

/// Asks for an export.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateExport {
    /// The name of its folder, within the server's folder for backups; the time when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which events: `{thread_id?, run_id?, owner?, from?, to?, event_types?}`; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Value>,
    /// Whether the blobs that its events name are written beside them, in plain.
    #[serde(default)]
    pub with_blobs: bool,
}

/// Asks for a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateVerification {
    /// A head that was written down earlier: `{position, chain}`. The log must still go that far, with
    /// the same events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Value>,
}

/// How a piece of work stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It is at work.
    Running,
    /// It has done what was asked for.
    Done,
    /// It could not do it; `error` says why.
    Failed,
    /// The server stopped before it was done, and nothing is left of it.
    Stopped,
}

/// Why a piece of work failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobError {
    /// The kind of problem.
    pub code: ProblemCode,
    /// What is wrong.
    pub detail: String,
}

/// How far a piece of work is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobProgress {
    /// The last position that was looked at.
    pub position: u64,
    /// The last that will be.
    pub head: u64,
}

/// A backup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Backup {
    /// The backup.
    pub backup_id: String,
    /// The name of its folder.
    pub name: String,
    /// Where it is on the server's machine, once it is done.
    pub path: String,
    /// How it stands.
    pub state: JobState,
    /// How far it is with the events.
    pub progress: JobProgress,
    /// When it began.
    pub started_at: String,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// What its `manifest.json` says, once it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<JobError>,
}

/// An export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Export {
    /// The export.
    pub export_id: String,
    /// The name of its folder.
    pub name: String,
    /// Where it is on the server's machine, once it is done.
    pub path: String,
    /// How it stands.
    pub state: JobState,
    /// How far it is with the events.
    pub progress: JobProgress,
    /// When it began.
    pub started_at: String,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// What its `manifest.json` says, once it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<JobError>,
}

/// A verification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// The verification.
    pub verification_id: String,
    /// How it stands.
    pub state: JobState,
    /// How far it is.
    pub progress: JobProgress,
    /// When it began.
    pub started_at: String,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// What was found, once it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<VerificationReport>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<JobError>,
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerificationReport {
    /// Whether nothing is wrong.
    pub whole: bool,
    /// Where the log ends.
    pub position: u64,
    /// The chain of the log there: 64 hexadecimal digits.
    pub chain: String,
    /// Events that were found whole.
    pub events: u64,
    /// Streams.
    pub streams: u64,
    /// Commits.
    pub commits: u64,
    /// Bytes of all records.
    pub record_bytes: u64,
    /// Blobs that events name, found whole.
    pub blobs: u64,
    /// How long it took.
    pub seconds: f64,
    /// How fast it went.
    pub events_per_second: f64,
    /// The first that is wrong; null when nothing is.
    pub damage: Option<DamageFound>,
}

/// The first bad place of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamageFound {
    /// Where.
    pub position: u64,
    /// What is wrong there.
    pub problem: String,
}
