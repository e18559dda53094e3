//! Events that somebody else made, into the log (facts §7.2). The route is that of a thread's events.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderName},
    response::{IntoResponse as _, Response},
};
use contracts::wire::ingest::Ingest;

use crate::{
    convert,
    error::{Answer, ApiError},
    extract::{IngestBody, Path, Query, ThreadPath},
    state::Server,
};

/// Makes a repeat of the request harmless.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Answers one event with one record, and a list with a list. The first event makes its thread.
pub(crate) async fn ingest(
    State(server): State<Server>,
    Path(ThreadPath { thread_id }): Path<ThreadPath>,
    _: Query<()>,
    headers: HeaderMap,
    IngestBody(body): IngestBody,
) -> Answer<Response> {
    let (incoming, key) = convert::ingest::from_wire(&body, header_key(&headers)?)?;
    let stored = server.ingest(&thread_id, incoming, key).await?;
    let mut records = convert::ingest::to_wire(&stored)?;
    Ok(match (&body, records.pop()) {
        (Ingest::One(_), Some(record)) => Json(record).into_response(),
        (Ingest::One(_) | Ingest::Many(_), last) => {
            records.extend(last);
            Json(records).into_response()
        }
    })
}

fn header_key(headers: &HeaderMap) -> Answer<Option<&str>> {
    let mut given = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(key) = given.next() else { return Ok(None) };
    let key = key.to_str().ok().filter(|_| given.next().is_none());
    let rule = "given once, as visible ASCII text";
    key.map(Some).ok_or_else(|| ApiError::invalid("Idempotency-Key", rule))
}
