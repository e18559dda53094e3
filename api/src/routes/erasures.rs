//! Erase threads and runs, and look how far that has got.

use std::{collections::HashMap, time::Duration};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::{delete, get},
};
use contracts::wire::{
    erasure::{Erase, Erased, Erasure, ErasureState},
    page::Page,
    problem::ProblemCode,
};
use domain::ids::ErasureId;
use eventlog::Position;
use runtime::Erasing;

use crate::{
    convert,
    error::{Answer, ApiError},
    extract::{ErasurePath, JsonBody, LogMoment, PageQuery, Path, Query, RunPath, ThreadPath},
    paths,
    state::Server,
};

/// How long an answer waits for the end of an erasure. Without a run at work it takes milliseconds;
/// a run is given the time to stop what it does.
const ERASED_WAIT: Duration = Duration::from_secs(10);

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route(paths::THREAD, delete(erase_thread))
        .route(paths::RUN, delete(erase_run))
        .route(paths::ERASURES, get(list).post(erase))
        .route(paths::ERASURE, get(one))
}

/// Answers 200 when nothing of the thread is left, or 202 with the erasure while its run or a tool is
/// still being stopped. A run that is at work is cancelled.
async fn erase_thread(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    _: Query<()>,
) -> Answer<Response> {
    server.erased(runtime::Erase::Thread(thread_id)).await
}

/// The same for one run. What it wrote in the thread's folders stays.
async fn erase_run(
    State(server): State<Server>,
    Path(RunPath { thread_id, run_id }): Path<RunPath>,
    _: Query<()>,
) -> Answer<Response> {
    server.erased(runtime::Erase::Run(thread_id, run_id)).await
}

/// Erases all threads of an owner, or a thread, or a run. Answers with the erasures: 200 when all are
/// done, else 202.
async fn erase(
    State(server): State<Server>,
    _: Query<()>,
    JsonBody(body): JsonBody<Erase>,
) -> Answer<Response> {
    let what = convert::erasure::from_wire(body)?;
    let is_of_owner = matches!(what, runtime::Erase::Owner(_));
    let begun = server.runtime.begin_erasing(what).await?;
    let mut erasures = server.carried_out(begun).await?;
    match erasures.pop() {
        Some(erasure) if !is_of_owner => Ok((status(erasure.state), Json(erasure)).into_response()),
        last => {
            erasures.extend(last);
            let erased = convert::erasure::of_owner(erasures);
            Ok((status(erased.state), Json(erased)).into_response())
        }
    }
}

fn status(state: ErasureState) -> StatusCode {
    if state == ErasureState::Done { StatusCode::OK } else { StatusCode::ACCEPTED }
}

/// In the order in which they were asked for; `after` is the last `erasure_id` of the page before.
async fn list(
    State(server): State<Server>,
    Query(PageQuery { limit, after, moment }): Query<PageQuery>,
) -> Answer<Json<Page<Erasure>>> {
    let as_of = server.log_then(moment).await?;
    let after = after.as_deref().map(str::parse::<ErasureId>).transpose()?;
    server.read(move |server| server.erasure_page(after, limit, as_of)).await.map(Json)
}

async fn one(
    State(server): State<Server>,
    Path(ErasurePath { erasure_id }): Path<ErasurePath>,
    Query(moment): Query<LogMoment>,
) -> Answer<Json<Erasure>> {
    let as_of = server.log_then(moment).await?;
    server.read(move |server| server.erasure(erasure_id, as_of)).await.map(Json)
}

impl Server {
    async fn erased(&self, what: runtime::Erase) -> Answer<Response> {
        let begun = self.runtime.begin_erasing(what).await?;
        let erasure = self.carried_out(begun).await?.pop();
        let erasure = erasure.ok_or_else(ApiError::shutting_down)?;
        Ok(match erasure.state {
            ErasureState::Done => {
                let Erasure { deleted, erasure_id, .. } = erasure;
                Json(Erased { deleted, erasure_id }).into_response()
            }
            ErasureState::Requested | ErasureState::Erasing => {
                (StatusCode::ACCEPTED, Json(erasure)).into_response()
            }
        })
    }

    /// Waits for the ends, for a bounded time, and says where the erasures stand.
    async fn carried_out(&self, begun: Vec<Erasing>) -> Answer<Vec<Erasure>> {
        let ids: Vec<ErasureId> = begun.iter().map(|one| one.erasure_id).collect();
        let all = async {
            for one in begun {
                one.done().await?;
            }
            Ok::<(), runtime::EraseError>(())
        };
        // Who has waited long enough is told where it stands; it is carried out all the same.
        if let Ok(ended) = tokio::time::timeout(ERASED_WAIT, all).await {
            ended?;
        }
        self.read(move |server| server.erasures_of(&ids)).await
    }

    fn erasures_of(&self, ids: &[ErasureId]) -> Answer<Vec<Erasure>> {
        let all = self.runtime.erasures().map_err(runtime::EraseError::from)?;
        let mut by_id: HashMap<_, _> = all.into_iter().map(|erasure| (erasure.erasure_id, erasure)).collect();
        let found = |id: &ErasureId| by_id.remove(id).ok_or_else(|| no_erasure(*id));
        ids.iter().map(found).map(|found| found.map(convert::erasure::to_wire)).collect()
    }

    fn erasure(&self, erasure_id: ErasureId, as_of: Option<Position>) -> Answer<Erasure> {
        let all = self.runtime.erasures_as_of(as_of).map_err(runtime::EraseError::from)?;
        let found = all.into_iter().find(|erasure| erasure.erasure_id == erasure_id);
        found.map(convert::erasure::to_wire).ok_or_else(|| no_erasure(erasure_id))
    }

    fn erasure_page(
        &self,
        after: Option<ErasureId>,
        limit: usize,
        as_of: Option<Position>,
    ) -> Answer<Page<Erasure>> {
        let mut erasures = self.runtime.erasures_as_of(as_of).map_err(runtime::EraseError::from)?;
        if let Some(after) = after {
            let last = erasures.iter().position(|erasure| erasure.erasure_id == after);
            drop(erasures.drain(..=last.ok_or_else(|| no_erasure(after))?));
        }
        let has_more = erasures.len() > limit;
        erasures.truncate(limit);
        let data = erasures.into_iter().map(convert::erasure::to_wire).collect();
        Ok(Page { data, has_more, next_before_seq: None })
    }
}

fn no_erasure(erasure_id: ErasureId) -> ApiError {
    ApiError::new(ProblemCode::NotFound, format!("Erasure {erasure_id} not found"))
}
