//! Erase threads, and look how far that has got.

use std::time::Duration;

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::{delete, get},
};
use contracts::wire::{
    erasure::{Erased, Erasure},
    page::Page,
    problem::ProblemCode,
};
use domain::ids::{ErasureId, ThreadId};
use runtime::ErasureState;

use crate::{
    convert,
    error::{Answer, ApiError},
    extract::{ErasurePath, PageQuery, Path, Query, RunPath, ThreadPath},
    paths,
    state::Server,
};

/// How long an answer waits for the end of an erasure. Without a run at work it takes milliseconds;
/// a run is given the time to stop what it does.
const ERASED_WAIT: Duration = Duration::from_secs(10);

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route(paths::THREAD, delete(erase))
        .route(paths::RUN, delete(erase_run))
        .route(paths::ERASURES, get(list))
        .route(paths::ERASURE, get(one))
}

/// Answers 200 when nothing of the thread is left, or 202 with the erasure while its run is still
/// being stopped. A run that is at work is cancelled.
async fn erase(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    _: Query<()>,
) -> Answer<Response> {
    let erasing = server.runtime.erase_thread(&thread_id);
    match tokio::time::timeout(ERASED_WAIT, erasing).await {
        Ok(erased) => {
            let erasure = server.erasure(erased?)?;
            let erased = Erased { deleted: erasure.deleted, erasure_id: erasure.erasure_id };
            Ok(Json(erased).into_response())
        }
        Err(_) => server.erasure_under_way(&thread_id),
    }
}

/// A run cannot be erased by itself: what the thread's views hold is sealed with the thread's key.
async fn erase_run(
    State(server): State<Server>,
    Path(RunPath { thread_id, .. }): Path<RunPath>,
    _: Query<()>,
) -> Answer<Response> {
    server.tail(&thread_id)?;
    let detail = format!("a run cannot be erased alone; erase its thread: DELETE /api/threads/{thread_id}");
    Err(ApiError::new(ProblemCode::Unsupported, detail))
}

/// In the order in which they were asked for; `after` is the last `erasure_id` of the page before.
async fn list(
    State(server): State<Server>,
    Query(PageQuery { limit, after }): Query<PageQuery>,
) -> Answer<Json<Page<Erasure>>> {
    let after = after.as_deref().map(str::parse::<ErasureId>).transpose()?;
    server.read(move |server| server.erasure_page(after, limit)).await.map(Json)
}

async fn one(
    State(server): State<Server>,
    Path(ErasurePath { erasure_id }): Path<ErasurePath>,
    _: Query<()>,
) -> Answer<Json<Erasure>> {
    server.read(move |server| server.erasure(erasure_id)).await.map(Json)
}

impl Server {
    fn erasure(&self, erasure_id: ErasureId) -> Answer<Erasure> {
        let found = self.runtime.erasure(erasure_id).map_err(runtime::EraseError::from)?;
        found.map(convert::erasure::to_wire).ok_or_else(|| no_erasure(erasure_id))
    }

    fn erasure_page(&self, after: Option<ErasureId>, limit: usize) -> Answer<Page<Erasure>> {
        let mut erasures = self.runtime.erasures().map_err(runtime::EraseError::from)?;
        if let Some(after) = after {
            let last = erasures.iter().position(|erasure| erasure.erasure_id == after);
            drop(erasures.drain(..=last.ok_or_else(|| no_erasure(after))?));
        }
        let has_more = erasures.len() > limit;
        erasures.truncate(limit);
        let data = erasures.into_iter().map(convert::erasure::to_wire).collect();
        Ok(Page { data, has_more, next_before_seq: None })
    }

    /// The answer to whoever has waited long enough: where the erasure stands. One that waits for
    /// another erasure is not recorded yet.
    fn erasure_under_way(&self, thread_id: &ThreadId) -> Answer<Response> {
        let erasures = self.runtime.erasures().map_err(runtime::EraseError::from)?;
        let found = erasures.into_iter().rev().find(|erasure| erasure.thread_id == *thread_id);
        let Some(erasure) = found else {
            self.tail(thread_id)?;
            let detail = format!("the erasure of thread {thread_id} waits for another one; ask again");
            return Err(ApiError::new(ProblemCode::Unavailable, detail));
        };
        let is_done = erasure.state == ErasureState::Done;
        let erasure = convert::erasure::to_wire(erasure);
        if is_done {
            let erased = Erased { deleted: erasure.deleted, erasure_id: erasure.erasure_id };
            return Ok(Json(erased).into_response());
        }
        Ok((StatusCode::ACCEPTED, Json(erasure)).into_response())
    }
}

fn no_erasure(erasure_id: ErasureId) -> ApiError {
    ApiError::new(ProblemCode::NotFound, format!("Erasure {erasure_id} not found"))
}
