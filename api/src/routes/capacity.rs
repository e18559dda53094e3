//! What is running, and how much may.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::capacity::Capacity;

use crate::{extract::Query, paths, state::Server, streams::STREAMS_MAX};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::CAPACITY, get(capacity))
}

async fn capacity(State(server): State<Server>, _: Query<()>) -> Json<Capacity> {
    let capacity = server.runtime.capacity();
    Json(Capacity {
        max_running: capacity.limits.max_running,
        running: capacity.running,
        queued: capacity.queued,
        queue_capacity: capacity.limits.queue_capacity,
        open_streams: count(server.streams.open()),
        max_streams: count(STREAMS_MAX),
        models: server.runtime.models(),
    })
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
