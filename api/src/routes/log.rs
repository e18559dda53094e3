//! The whole log, thread by thread as it was written.

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use contracts::wire::event::EventRecord;
use eventlog::{Position, RecordedEvent};

use crate::{
    convert,
    error::Answer,
    extract::{LogFilter, LogQuery, LogStart, Query},
    paths,
    sse::{self, Cursor, LogFrames, Opening},
    state::Server,
};

/// Events that are read at once while a page is filled.
const SCAN_EVENTS: usize = 512;
/// What a client accepts that wants to follow.
const EVENT_STREAM: &str = "text/event-stream";

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::EVENTS, get(events))
}

/// A page, or a stream for whoever accepts one.
async fn events(
    State(server): State<Server>,
    Query(LogQuery { after, limit, filter }): Query<LogQuery>,
    cursor: Cursor,
    headers: HeaderMap,
) -> Answer<Response> {
    let head = server.log.head();
    let after = match after {
        LogStart::After(position) => position,
        LogStart::Head => head,
    };
    if !accepts_stream(&headers) {
        let page = server.read(move |server| server.log_page(after, limit, &filter)).await?;
        return Ok(Json(page).into_response());
    }
    let resumed = cursor.within(head)?;
    let after = if resumed > Position::ZERO { resumed } else { after };
    let opening =
        Opening { place: server.streams.take()?, shutdown: server.shutdown.clone(), on_disconnect: None };
    Ok(sse::response(LogFrames::new(&server.log, filter, after, opening)))
}

fn accepts_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted
        .flat_map(|list| list.split(','))
        .any(|one| one.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case(EVENT_STREAM)))
}

impl Server {
    /// A bare array, ascending by position. Fewer rows than the limit mean that this is the end. What
    /// was erased is left out, and not counted; nor is what the filter does not want.
    fn log_page(&self, mut after: Position, limit: usize, filter: &LogFilter) -> Answer<Vec<EventRecord>> {
        let mut page = Vec::new();
        while page.len() < limit {
            let read = self.log.read_all(after, SCAN_EVENTS)?;
            let Some(last) = read.last() else { break };
            after = last.position;
            let room = limit - page.len();
            let wanted = |event: &RecordedEvent| !event.is_erased() && filter.admits(event);
            page.extend(read.into_iter().filter(wanted).take(room));
        }
        convert::event::to_wire_all(&page)
    }
}
