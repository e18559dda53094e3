//! Runs: look at them and cancel them.

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    routing::{get, post},
};
use contracts::wire::{page::Page, run::Run};
use domain::ids::{RunId, ThreadId};
use projections::{RunRow, as_of};

use crate::{
    convert,
    error::{Answer, ApiError},
    extract::{CancelQuery, Moment, Path, Query, RunPath, RunsQuery, ThreadPath},
    paths,
    reads::At,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route(paths::RUNS, get(list))
        .route(paths::RUN, get(one))
        .route(paths::RUN_CANCEL, post(cancel))
}

/// Newest first; `next_before_seq` is the `before_seq` of the next page.
async fn list(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    Query(query): Query<RunsQuery>,
) -> Answer<Json<Page<Run>>> {
    let at = server.at(&thread_id, query.moment).await?;
    server.read(move |server| server.run_page(&thread_id, at, &query)).await.map(Json)
}

async fn one(
    State(server): State<Server>,
    Path(RunPath { thread_id, run_id }): Path<RunPath>,
    Query(moment): Query<Moment>,
) -> Answer<Json<Run>> {
    let at = server.at_or_in_log(&thread_id, moment).await?;
    server.read(move |server| server.run_at(&thread_id, &run_id, at)).await.map(Json)
}

/// Answers 202 at once, also when the run is on its way to its end already, or 204 once it has
/// ended where the client wants to wait. A run that has ended is a conflict.
async fn cancel(
    State(server): State<Server>,
    Path(RunPath { thread_id, run_id }): Path<RunPath>,
    Query(CancelQuery { wait }): Query<CancelQuery>,
) -> Answer<StatusCode> {
    server.tail(&thread_id)?;
    server.runtime.cancel_run(&thread_id, &run_id).await?;
    if !wait {
        return Ok(StatusCode::ACCEPTED);
    }
    server.until_ended(&thread_id, &run_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl Server {
    /// Waits for the run's terminal status, or for the server's own end.
    pub(crate) async fn until_ended(&self, thread_id: &ThreadId, run_id: &RunId) -> Answer<()> {
        let mut shutdown = self.shutdown.clone();
        tokio::select! {
            ended = self.runtime.wait(thread_id, run_id) => Ok(ended.map(drop)?),
            () = shutdown.begun() => Err(ApiError::shutting_down()),
        }
    }

    /// The run as it was at this moment.
    pub(crate) fn run_at(&self, thread_id: &ThreadId, run_id: &RunId, at: At) -> Answer<Run> {
        let row = match at {
            At::Now => self.projections.run(thread_id, run_id)?,
            At::Then(seq) => as_of::run_as_of(&self.projections, thread_id, run_id, seq)?,
        };
        row.map(convert::run::to_wire).ok_or_else(|| ApiError::no_run(run_id))
    }

    fn run_page(&self, thread_id: &ThreadId, at: At, query: &RunsQuery) -> Answer<Page<Run>> {
        let mut rows = self.run_rows(thread_id, at, query)?;
        let has_more = rows.len() > query.limit;
        rows.truncate(query.limit);
        let next_before_seq = rows.last().filter(|_| has_more).map(|row| row.first_seq);
        Ok(Page { data: rows.into_iter().map(convert::run::to_wire).collect(), has_more, next_before_seq })
    }

    /// One row more than is wanted, where there is one.
    fn run_rows(&self, thread_id: &ThreadId, at: At, query: &RunsQuery) -> Answer<Vec<RunRow>> {
        let limit = query.limit + 1;
        match at {
            At::Now => Ok(self.projections.runs(thread_id, query.before, limit)?),
            At::Then(seq) => Ok(as_of::runs_as_of(&self.projections, thread_id, seq, query.before, limit)?),
        }
    }
}
