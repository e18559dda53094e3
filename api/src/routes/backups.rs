//! Back up the log of this server, and prove it, while it is in use. Both take long: they are begun,
//! and asked after.

use axum::{Json, Router, extract::State, http::StatusCode, routing::get};
use contracts::wire::{
    page::Page,
    problem::ProblemCode,
    upkeep::{Backup, CreateBackup, CreateVerification, Verification},
};
use domain::ids::JobId;
use eventlog::ExportedHead;
use runtime::upkeep::{BackupName, BackupOrder, Job};

use crate::{
    convert::upkeep::{backup_to_wire, verification_to_wire},
    error::{Answer, ApiError},
    extract::{BackupPath, OptionalJsonBody, Path, Query, VerificationPath},
    paths,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route(paths::BACKUPS, get(backups).post(back_up))
        .route(paths::BACKUP, get(backup))
        .route(paths::VERIFY, get(verifications).post(verify))
        .route(paths::VERIFICATION, get(verification))
}

/// Answers 202 with the backup that has begun. Nothing is written outside of the folder for backups.
async fn back_up(
    State(server): State<Server>,
    _: Query<()>,
    OptionalJsonBody(body): OptionalJsonBody<CreateBackup>,
) -> Answer<(StatusCode, Json<Backup>)> {
    let order = order(body)?;
    // Looking at the disk blocks, and so may making the folder.
    let job = server.read(move |server| Ok(server.runtime.upkeep().start_backup(order)?)).await?;
    begun(backup_to_wire(&job))
}

fn order(body: CreateBackup) -> Answer<BackupOrder> {
    let invalid = |error: runtime::upkeep::InvalidBackupName| {
        ApiError::new(ProblemCode::Invalid, format!("invalid name: {error}"))
    };
    let name = body.name.map(BackupName::new).transpose().map_err(invalid)?;
    Ok(BackupOrder { name, with_threads: body.threads.unwrap_or(true) })
}

/// Answers 202 with the verification that has begun.
async fn verify(
    State(server): State<Server>,
    _: Query<()>,
    OptionalJsonBody(body): OptionalJsonBody<CreateVerification>,
) -> Answer<(StatusCode, Json<Verification>)> {
    let against = body.against.map(serde_json::from_value::<ExportedHead>).transpose();
    let against = against.map_err(|_| ApiError::invalid("against", "a head: {position, chain}"))?;
    let job = server.runtime.upkeep().start_verification(against)?;
    begun(verification_to_wire(&job))
}

/// The last backups that this process was asked for, the oldest first.
async fn backups(State(server): State<Server>, _: Query<()>) -> Json<Page<Backup>> {
    page(&server, backup_to_wire)
}

async fn backup(
    State(server): State<Server>,
    Path(BackupPath { backup_id }): Path<BackupPath>,
    _: Query<()>,
) -> Answer<Json<Backup>> {
    one(&server, backup_id, "backup", backup_to_wire)
}

/// The last verifications that this process was asked for, the oldest first.
async fn verifications(State(server): State<Server>, _: Query<()>) -> Json<Page<Verification>> {
    page(&server, verification_to_wire)
}

async fn verification(
    State(server): State<Server>,
    Path(VerificationPath { verification_id }): Path<VerificationPath>,
    _: Query<()>,
) -> Answer<Json<Verification>> {
    one(&server, verification_id, "verification", verification_to_wire)
}

fn begun<T>(job: Option<T>) -> Answer<(StatusCode, Json<T>)> {
    let other = || ApiError::new(ProblemCode::Internal, "another piece of work was begun");
    Ok((StatusCode::ACCEPTED, Json(job.ok_or_else(other)?)))
}

fn page<T>(server: &Server, to_wire: fn(&Job) -> Option<T>) -> Json<Page<T>> {
    let data = server.runtime.upkeep().jobs().iter().filter_map(to_wire).collect();
    Json(Page { data, has_more: false, next_before_seq: None })
}

fn one<T>(server: &Server, job_id: JobId, what: &str, to_wire: fn(&Job) -> Option<T>) -> Answer<Json<T>> {
    let found = server.runtime.upkeep().job(job_id).as_ref().and_then(to_wire);
    let missing = || {
        let detail =
            format!("there is no {what} {job_id}; the last few are remembered until the server ends");
        ApiError::new(ProblemCode::NotFound, detail)
    };
    found.map(Json).ok_or_else(missing)
}
