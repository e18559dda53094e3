//! The whole log, thread by thread as it was written.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::event::EventRecord;

use crate::{
    convert,
    error::Answer,
    extract::{LogQuery, Query},
    paths,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::EVENTS, get(page))
}

/// A bare array, ascending by position. Fewer rows than the limit mean that this is the end.
async fn page(
    State(server): State<Server>,
    Query(LogQuery { after, limit }): Query<LogQuery>,
) -> Answer<Json<Vec<EventRecord>>> {
    let read = move |server: &Server| convert::event::to_wire_all(&server.log.read_all(after, limit)?);
    server.read(read).await.map(Json)
}
