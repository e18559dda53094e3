//! Start a run: and leave it, follow it, or wait for it.

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
    routing::post,
};
use contracts::wire::{
    problem::ProblemCode,
    run::{CreateRun, OnDisconnect, Run},
};
use domain::{
    causes::with_causes,
    ids::{RunId, ThreadId},
};
use eventlog::Position;

use crate::{
    convert,
    error::{Answer, ApiError},
    extract::{JsonBody, Path, Query, ThreadPath},
    on_disconnect::CancelOnDrop,
    paths,
    reads::At,
    sse::{self, Frames, Opening, RunFeed},
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route(paths::RUNS, post(start))
        .route(paths::RUNS_STREAM, post(start_and_follow))
        .route(paths::RUNS_WAIT, post(start_and_wait))
}

/// Answers when the run's start is durable.
async fn start(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    _: Query<()>,
    JsonBody(body): JsonBody<CreateRun>,
) -> Answer<Response> {
    let Started { run_id, on_disconnect } = server.start(&thread_id, body).await?;
    CancelOnDrop::disarm(on_disconnect);
    server.started(thread_id, run_id).await
}

/// Follows the run from its first event. The place among the streams is taken first: a client that
/// cannot be served has started nothing.
async fn start_and_follow(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    _: Query<()>,
    JsonBody(body): JsonBody<CreateRun>,
) -> Answer<Response> {
    let place = server.streams.take()?;
    let Started { run_id, on_disconnect } = server.start(&thread_id, body).await?;
    let location = content_location(&thread_id, &run_id);
    let feed = RunFeed::open(&server.log, thread_id, run_id, Position::ZERO)?;
    let opening = Opening { place, shutdown: server.shutdown.clone(), on_disconnect };
    Ok((location, sse::response(Frames::new(feed, opening))).into_response())
}

/// Answers when the run has ended, with its record.
async fn start_and_wait(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    _: Query<()>,
    JsonBody(body): JsonBody<CreateRun>,
) -> Answer<Response> {
    let Started { run_id, on_disconnect } = server.start(&thread_id, body).await?;
    let ended = server.until_ended(&thread_id, &run_id).await;
    // Nobody has left: the run ended, or the server stops and resumes it later.
    CancelOnDrop::disarm(on_disconnect);
    ended?;
    server.started(thread_id, run_id).await
}

/// A run that has just been started.
struct Started {
    run_id: RunId,
    on_disconnect: Option<CancelOnDrop>,
}

fn content_location(thread_id: &ThreadId, run_id: &RunId) -> Option<[(header::HeaderName, HeaderValue); 1]> {
    let path = paths::RUN.replace("{thread_id}", thread_id.as_str()).replace("{run_id}", run_id.as_str());
    Some([(header::CONTENT_LOCATION, HeaderValue::from_str(&path).ok()?)])
}

impl Server {
    /// In a task of its own: a client that goes away meanwhile must not leave a run behind whose
    /// start is recorded and at which nobody is at work. What is started then is dropped, and with
    /// it the run, if the client wanted that.
    async fn start(&self, thread_id: &ThreadId, body: CreateRun) -> Answer<Started> {
        let (leaving, server, thread_id) = (body.on_disconnect, self.clone(), thread_id.clone());
        let request = convert::run_request::from_wire(body)?;
        let starting = tokio::spawn(async move {
            let run_id = server.runtime.start_run(&thread_id, request).await?;
            let on_disconnect = server.on_disconnect(leaving, &thread_id, &run_id);
            Ok(Started { run_id, on_disconnect })
        });
        let done = starting.await;
        done.unwrap_or_else(|error| Err(ApiError::failed(ProblemCode::Internal, "starting the run", &error)))
    }

    /// The run's record, folded from the log, so that the answer does not wait for a view.
    async fn started(&self, thread_id: ThreadId, run_id: RunId) -> Answer<Response> {
        let (tail, location) = (self.tail(&thread_id)?, content_location(&thread_id, &run_id));
        let run: Run = self.read(move |server| server.run_at(&thread_id, &run_id, At::Then(tail))).await?;
        Ok((location, Json(run)).into_response())
    }

    fn on_disconnect(
        &self,
        leaving: Option<OnDisconnect>,
        thread_id: &ThreadId,
        run_id: &RunId,
    ) -> Option<CancelOnDrop> {
        match leaving {
            Some(OnDisconnect::Cancel) => {}
            Some(OnDisconnect::Continue) | None => return None,
        }
        let tasks = tokio::runtime::Handle::current();
        let (runtime, thread_id, run_id) = (self.runtime.clone(), thread_id.clone(), run_id.clone());
        Some(CancelOnDrop::new(move || {
            tasks.spawn(async move {
                if let Err(error) = runtime.cancel_run(&thread_id, &run_id).await {
                    tracing::info!(%run_id, error = %with_causes(&error), "the run of a client that left goes on");
                }
            });
        }))
    }
}
