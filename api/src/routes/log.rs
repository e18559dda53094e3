//! The whole log, thread by thread as it was written.

use axum::{Json, Router, extract::State, routing::get};
use contracts::wire::event::EventRecord;
use eventlog::Position;

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
    server.read(move |server| server.log_page(after, limit)).await.map(Json)
}

impl Server {
    /// What was erased is left out, and not counted.
    fn log_page(&self, mut after: Position, limit: usize) -> Answer<Vec<EventRecord>> {
        let mut page = Vec::new();
        while page.len() < limit {
            let read = self.log.read_all(after, limit - page.len())?;
            let Some(last) = read.last() else { break };
            after = last.position;
            page.extend(read.into_iter().filter(|event| !event.is_erased()));
        }
        convert::event::to_wire_all(&page)
    }
}
