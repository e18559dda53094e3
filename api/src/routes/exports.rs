//! Export the log of this server while it is in use: begun, asked after, and fetched file by file.

use std::{io, path::PathBuf};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use contracts::wire::{
    page::Page,
    problem::ProblemCode,
    upkeep::{CreateExport, Export},
};
use domain::ids::JobId;
use eventlog::export::{self, Filter};
use runtime::upkeep::{BackupName, ExportOrder, InvalidBackupName, JobKind, JobState};
use tokio::{fs::File, io::AsyncReadExt as _};

use crate::{
    convert::upkeep::export_to_wire,
    error::{Answer, ApiError},
    extract::{ExportFilePath, ExportPath, OptionalJsonBody, Path, Query},
    paths,
    state::Server,
};

/// Bytes of a file that are sent at once.
const PIECE_BYTES: usize = 64 * 1024;
const FILTER_RULE: &str =
    "an object of thread_id, run_id, owner, from, to and event_types, each of which may be left out";

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route(paths::EXPORTS, get(exports).post(begin))
        .route(paths::EXPORT, get(one))
        .route(paths::EXPORT_FILE, get(file))
}

/// Answers 202 with the export that has begun. Nothing is written outside of the folder for backups.
async fn begin(
    State(server): State<Server>,
    _: Query<()>,
    OptionalJsonBody(body): OptionalJsonBody<CreateExport>,
) -> Answer<(StatusCode, Json<Export>)> {
    let order = order(body)?;
    // Looking at the disk blocks, and so may making the folder.
    let job = server.read(move |server| Ok(server.runtime.upkeep().start_export(order)?)).await?;
    let other = || ApiError::new(ProblemCode::Internal, "another piece of work was begun");
    Ok((StatusCode::ACCEPTED, Json(export_to_wire(&job).ok_or_else(other)?)))
}

fn order(body: CreateExport) -> Answer<ExportOrder> {
    let invalid =
        |error: InvalidBackupName| ApiError::new(ProblemCode::Invalid, format!("invalid name: {error}"));
    let name = body.name.map(BackupName::new).transpose().map_err(invalid)?;
    let filter = body.filter.map(serde_json::from_value::<Filter>).transpose();
    let filter = filter.map_err(|_| ApiError::invalid("filter", FILTER_RULE))?;
    Ok(ExportOrder { name, filter: filter.unwrap_or_default(), with_blobs: body.with_blobs })
}

/// The last exports that this process was asked for, the oldest first.
async fn exports(State(server): State<Server>, _: Query<()>) -> Json<Page<Export>> {
    let data = server.runtime.upkeep().jobs().iter().filter_map(export_to_wire).collect();
    Json(Page { data, has_more: false, next_before_seq: None })
}

async fn one(
    State(server): State<Server>,
    Path(ExportPath { export_id }): Path<ExportPath>,
    _: Query<()>,
) -> Answer<Json<Export>> {
    let job = server.runtime.upkeep().job(export_id);
    job.as_ref().and_then(export_to_wire).map(Json).ok_or_else(|| missing(export_id))
}

fn missing(export_id: JobId) -> ApiError {
    let detail = format!("there is no export {export_id}; the last few are remembered until the server ends");
    ApiError::new(ProblemCode::NotFound, detail)
}

/// One of the files that an export is made of, and nothing else.
async fn file(
    State(server): State<Server>,
    Path(ExportFilePath { export_id, name }): Path<ExportFilePath>,
    _: Query<()>,
) -> Answer<Response> {
    let path = server.export_file(export_id, &name)?;
    let opened = async {
        let file = File::open(&path).await?;
        let bytes = file.metadata().await?.len();
        Ok::<_, io::Error>((file, bytes))
    };
    let (file, bytes) = opened.await.map_err(|error| {
        let missing = error.kind() == io::ErrorKind::NotFound;
        let code = if missing { ProblemCode::Gone } else { ProblemCode::Internal };
        ApiError::failed(code, "opening a file of the export", &error)
    })?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_LENGTH, HeaderValue::from(bytes)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, content(file)).into_response())
}

fn content(mut file: File) -> Body {
    Body::from_stream(async_stream::stream! {
        loop {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            match (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut piece).await {
                Ok(0) => break,
                Ok(_) => yield Ok(Bytes::from(piece)),
                Err(error) => {
                    yield Err(error);
                    break;
                }
            }
        }
    })
}

impl Server {
    /// A name is looked for in the export's own list, so that it cannot lead anywhere else.
    fn export_file(&self, export_id: JobId, name: &str) -> Answer<PathBuf> {
        let job = self.runtime.upkeep().job(export_id).ok_or_else(|| missing(export_id))?;
        let JobKind::Export { folder, manifest, .. } = &job.kind else { return Err(missing(export_id)) };
        let Some(manifest) = manifest.as_ref().filter(|_| job.state == JobState::Done) else {
            return Err(ApiError::new(ProblemCode::Conflict, "the export is not done"));
        };
        let files = export::file_names(manifest);
        let known = files.iter().find(|known| known.as_str() == name);
        let known = known.ok_or_else(|| {
            let own = files.iter().filter(|known| !known.contains('/')).cloned().collect::<Vec<_>>();
            let detail = format!("the export has these files, and blobs: {}", own.join(", "));
            ApiError::new(ProblemCode::NotFound, detail)
        })?;
        Ok(folder.join(known))
    }
}
