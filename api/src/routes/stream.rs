//! Follow a run that has been started.

use axum::{Router, extract::State, response::Response, routing::get};

use crate::{
    error::Answer,
    extract::{Path, Query, RunPath},
    paths,
    sse::{self, Cursor, Frames, Opening, RunFeed},
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::RUN_STREAM, get(follow))
}

async fn follow(
    State(server): State<Server>,
    Path(RunPath { thread_id, run_id }): Path<RunPath>,
    _: Query<()>,
    cursor: Cursor,
) -> Answer<Response> {
    let feed = RunFeed::open(&server.log, thread_id, run_id, cursor.within(server.log.head())?)?;
    let opening =
        Opening { place: server.streams.take()?, shutdown: server.shutdown.clone(), on_disconnect: None };
    Ok(sse::response(Frames::new(feed, opening)))
}
