//! The whole log, thread by thread as it was written.

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, header},
    response::Response,
    routing::get,
};
use eventlog::{EventLog, Position, RecordedEvent};

use crate::{
    error::{Answer, ApiError},
    extract::{LogFilter, LogQuery, LogStart, Query},
    paths,
    record_stream::Records,
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

/// A page, or a stream for whoever accepts one. A page is a bare array: fewer rows than the limit mean
/// that this is the end. A stream has no moment; it begins when the log has what it must have.
async fn events(
    State(server): State<Server>,
    Query(LogQuery { after, limit, filter, moment }): Query<LogQuery>,
    cursor: Cursor,
    headers: HeaderMap,
) -> Answer<Response> {
    let last = server.log_then(moment).await?;
    let head = server.log.head();
    let after = match after {
        LogStart::After(position) => position,
        LogStart::Head => head,
    };
    if !accepts_stream(&headers) {
        let last = last.unwrap_or(Position::new(u64::MAX));
        let mut page = LogPage { after, last, limit, filter };
        let open = move |server: &Server| {
            let log = server.log.clone();
            Ok(Records::array(Box::new(move || page.next_piece(&log))))
        };
        return server.send(open).await;
    }
    if last.is_some() {
        return Err(ApiError::invalid(
            "as_of_position",
            "left out where a stream is accepted, which has no end",
        ));
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

/// What is still to be read of a page.
struct LogPage {
    after: Position,
    /// The last position that belongs to it.
    last: Position,
    limit: usize,
    filter: LogFilter,
}

impl LogPage {
    /// The next events, ascending by position; none at the end of the page. What was erased is left out,
    /// and not counted; nor is what the filter does not want.
    fn next_piece(&mut self, log: &EventLog) -> Answer<Vec<RecordedEvent>> {
        while self.limit > 0 && self.after < self.last {
            let read = log.read_all(self.after, SCAN_EVENTS)?;
            let Some(newest) = read.last() else { break };
            self.after = newest.position;
            let wanted = |event: &RecordedEvent| {
                event.position <= self.last && !event.is_erased() && self.filter.admits(event)
            };
            let piece: Vec<_> = read.into_iter().filter(wanted).take(self.limit).collect();
            if !piece.is_empty() {
                self.limit -= piece.len();
                return Ok(piece);
            }
        }
        Ok(Vec::new())
    }
}
