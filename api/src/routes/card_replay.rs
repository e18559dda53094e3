//! A card's states as they happened.

use axum::{Router, extract::State, response::Response, routing::get};
use projections::{CardReplay, TaskRef};

use crate::{
    error::{Answer, ApiError},
    extract::{Path, Query, ReplayQuery, TaskPath},
    paths,
    sse::{self, CardFrames, Cursor, Opening},
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::TASK_CARD_REPLAY, get(replay))
}

/// From the beginning, or after the state that the client has. A delegation at work is followed to
/// its end.
async fn replay(
    State(server): State<Server>,
    Path(path): Path<TaskPath>,
    Query(ReplayQuery { pace }): Query<ReplayQuery>,
    cursor: Cursor,
) -> Answer<Response> {
    server.tail(&path.thread_id)?;
    let after = cursor.within(server.log.head())?;
    let replay = server.read(move |server| server.card_replay(&path, after)).await?;
    let opening =
        Opening { place: server.streams.take()?, shutdown: server.shutdown.clone(), on_disconnect: None };
    Ok(sse::response(CardFrames::new(replay, pace, opening)))
}

impl Server {
    fn card_replay(&self, path: &TaskPath, after: eventlog::Position) -> Answer<CardReplay> {
        for task in domain::task_ref::meanings(&path.task_id, TaskRef::DelegationId, TaskRef::TaskId) {
            let (thread_id, run_id) = (path.thread_id.clone(), path.run_id.clone());
            if let Some(replay) = CardReplay::open(&self.log, thread_id, run_id, &task, after)? {
                return Ok(replay);
            }
        }
        Err(ApiError::no_task(path.task_id.as_str()))
    }
}
