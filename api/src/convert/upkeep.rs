//! Backups and verifications.

use contracts::wire::{problem::ProblemCode, upkeep as wire};
use eventlog::{Progress, Report};
use runtime::upkeep::{Failed, Job, JobKind, JobState, UpkeepError};

use crate::error::ApiError;

/// The job as a backup; none if it is something else.
pub(crate) fn backup_to_wire(job: &Job) -> Option<wire::Backup> {
    let JobKind::Backup { name, folder, manifest } = &job.kind else { return None };
    let (state, error) = state_to_wire(&job.state);
    Some(wire::Backup {
        backup_id: job.job_id.to_string(),
        name: name.to_string(),
        path: folder.display().to_string(),
        state,
        progress: progress_to_wire(job.progress),
        started_at: job.started_at.to_string(),
        ended_at: job.ended_at.map(|at| at.to_string()),
        manifest: manifest.as_ref().and_then(|manifest| serde_json::to_value(manifest).ok()),
        error,
    })
}

/// The job as an export; none if it is something else.
pub(crate) fn export_to_wire(job: &Job) -> Option<wire::Export> {
    let JobKind::Export { name, folder, manifest } = &job.kind else { return None };
    let (state, error) = state_to_wire(&job.state);
    Some(wire::Export {
        export_id: job.job_id.to_string(),
        name: name.to_string(),
        path: folder.display().to_string(),
        state,
        progress: progress_to_wire(job.progress),
        started_at: job.started_at.to_string(),
        ended_at: job.ended_at.map(|at| at.to_string()),
        manifest: manifest.as_ref().and_then(|manifest| serde_json::to_value(manifest).ok()),
        error,
    })
}

/// The job as a verification; none if it is something else.
pub(crate) fn verification_to_wire(job: &Job) -> Option<wire::Verification> {
    let JobKind::Verification { report } = &job.kind else { return None };
    let (state, error) = state_to_wire(&job.state);
    let seconds = job.ended_at.map_or(0.0, |ended_at| ended_at.duration_since(job.started_at).as_secs_f64());
    Some(wire::Verification {
        verification_id: job.job_id.to_string(),
        state,
        progress: progress_to_wire(job.progress),
        started_at: job.started_at.to_string(),
        ended_at: job.ended_at.map(|at| at.to_string()),
        report: report
            .as_ref()
            .filter(|_| job.ended_at.is_some())
            .map(|report| report_to_wire(report, seconds)),
        error,
    })
}

fn report_to_wire(report: &Report, seconds: f64) -> wire::VerificationReport {
    wire::VerificationReport {
        whole: report.is_whole(),
        position: report.head.position.get(),
        chain: report.head.chain.iter().map(|byte| format!("{byte:02x}")).collect(),
        events: report.events,
        streams: report.streams,
        commits: report.commits,
        record_bytes: report.record_bytes,
        blobs: report.blobs,
        seconds,
        events_per_second: report.events as f64 / seconds.max(1e-3),
        damage: report.damage.as_ref().map(|damage| wire::DamageFound {
            position: damage.position.get(),
            problem: damage.kind.to_string(),
        }),
    }
}

fn progress_to_wire(progress: Progress) -> wire::JobProgress {
    wire::JobProgress { position: progress.position.get(), head: progress.head.get() }
}

fn state_to_wire(state: &JobState) -> (wire::JobState, Option<wire::JobError>) {
    match state {
        JobState::Running => (wire::JobState::Running, None),
        JobState::Done => (wire::JobState::Done, None),
        JobState::Stopped => (wire::JobState::Stopped, None),
        JobState::Failed(Failed { reason, is_damage }) => {
            let code = if *is_damage { ProblemCode::Integrity } else { ProblemCode::Internal };
            (wire::JobState::Failed, Some(wire::JobError { code, detail: reason.clone() }))
        }
    }
}

impl From<UpkeepError> for ApiError {
    fn from(error: UpkeepError) -> Self {
        let refused = |code| Self::new(code, error.to_string());
        match &error {
            UpkeepError::Busy { .. } | UpkeepError::Taken { .. } => refused(ProblemCode::Conflict),
            UpkeepError::NoSpace { .. } => refused(ProblemCode::Unavailable),
            UpkeepError::Folder { .. } => Self::failed(ProblemCode::Internal, "beginning a backup", &error),
            UpkeepError::Read(_) => Self::failed(ProblemCode::Unavailable, "beginning a backup", &error),
            UpkeepError::ShuttingDown => Self::shutting_down(),
        }
    }
}
