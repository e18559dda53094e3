//! What is running, and how much may.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::capacity::{Capacity, QueuePlace};

use crate::{convert::card::whole_seconds, extract::Query, paths, state::Server, streams::STREAMS_MAX};

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
        queue: capacity.queue.into_iter().map(place).collect(),
        estimated_wait_seconds: capacity.estimated_wait.map(whole_seconds),
        open_streams: count(server.streams.open()),
        max_streams: count(STREAMS_MAX),
        models: server.runtime.models(),
    })
}

fn place(place: runtime::QueuePlace) -> QueuePlace {
    QueuePlace {
        delegation_id: place.delegation_id.to_string(),
        place: place.place,
        estimated_wait_seconds: place.estimated_wait.map(whole_seconds),
    }
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
