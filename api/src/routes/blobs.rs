//! Blobs: what is too large for an event, whole or in part.
//!
//! The bytes are somebody's output and nothing that this server vouches for, so a browser is told to
//! save them and not to look for a type of its own. Nobody on the way may keep them: an erasure must
//! reach all that is left.

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use contracts::wire::problem::ProblemCode;
use domain::ids::ThreadId;
use eventlog::{BlobDigest, BlobError, BlobReader};

use crate::{
    error::{Answer, ApiError},
    extract::{BlobPath, Part, PartWanted, Path, Query},
    paths,
    state::Server,
};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route(paths::BLOB, get(blob))
}

async fn blob(
    State(server): State<Server>,
    Path(BlobPath { thread_id, sha256 }): Path<BlobPath>,
    _: Query<()>,
    headers: HeaderMap,
) -> Answer<Response> {
    let reader = server.read(move |server| server.blob(&thread_id, &sha256)).await?;
    let (bytes, etag) = (reader.blob().bytes, format!("\"{sha256}\""));
    let (status, range) = match PartWanted::of(&headers).within(bytes, &etag) {
        Part::NotModified => {
            return Ok((StatusCode::NOT_MODIFIED, described(&sha256, &etag)?).into_response());
        }
        Part::Unsatisfiable => return unsatisfiable(bytes),
        Part::Whole => (StatusCode::OK, 0..bytes),
        Part::Bytes(range) => (StatusCode::PARTIAL_CONTENT, range),
    };
    let mut response = (status, described(&sha256, &etag)?).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    if status == StatusCode::PARTIAL_CONTENT {
        let shown = format!("bytes {}-{}/{bytes}", range.start, range.end.saturating_sub(1));
        headers.insert(header::CONTENT_RANGE, value(&shown)?);
    }
    *response.body_mut() = body(reader.only(range));
    Ok(response)
}

impl Server {
    fn blob(&self, thread_id: &ThreadId, sha256: &BlobDigest) -> Answer<BlobReader> {
        self.tail(thread_id)?;
        self.log.open_blob(thread_id, sha256).map_err(|error| refusal(sha256, &error))
    }
}

fn refusal(sha256: &BlobDigest, error: &BlobError) -> ApiError {
    match error {
        BlobError::NotFound { .. }
        | BlobError::Erased { .. }
        | BlobError::NoKey { .. }
        | BlobError::NoFolder => ApiError::new(ProblemCode::NotFound, format!("Blob {sha256} not found")),
        BlobError::Missing { .. }
        | BlobError::TooLarge
        | BlobError::NoRoom { .. }
        | BlobError::Damaged { .. }
        | BlobError::Io { .. }
        | BlobError::Log(_) => ApiError::failed(ProblemCode::Unavailable, "reading a blob", error),
    }
}

/// What every answer about a blob says.
fn described(sha256: &BlobDigest, etag: &str) -> Answer<HeaderMap> {
    let file = format!("attachment; filename=\"{sha256}.bin\"");
    Ok(HeaderMap::from_iter([
        (header::ETAG, value(etag)?),
        (header::ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-store, no-transform")),
        (header::CONTENT_DISPOSITION, value(&file)?),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ]))
}

fn unsatisfiable(bytes: u64) -> Answer<Response> {
    let detail = format!("the blob has {bytes} bytes, and the range has none of them");
    let mut response = ApiError::new(ProblemCode::RangeNotSatisfiable, detail).into_response();
    response.headers_mut().insert(header::CONTENT_RANGE, value(&format!("bytes */{bytes}"))?);
    Ok(response)
}

fn value(text: &str) -> Answer<HeaderValue> {
    HeaderValue::from_str(text)
        .map_err(|error| ApiError::failed(ProblemCode::Internal, "answering with a blob", &error))
}

/// Reads piece by piece, where blocking does no harm, and only as fast as the client takes it. Damage
/// in the middle breaks the connection off, so that the client does not take a part for all of it.
fn body(reader: BlobReader) -> Body {
    Body::from_stream(async_stream::stream! {
        let mut reader = Some(reader);
        while let Some(mut at) = reader.take() {
            let read = tokio::task::spawn_blocking(move || at.next_piece().map(|piece| (piece, at)));
            match read.await {
                Ok(Ok((Some(piece), at))) => {
                    reader = Some(at);
                    yield Ok(Bytes::from(piece));
                }
                Ok(Ok((None, _))) => {}
                Ok(Err(error)) => {
                    let error = ApiError::failed(ProblemCode::Unavailable, "reading a blob", &error);
                    yield Err(std::io::Error::other(error.detail().to_owned()));
                }
                Err(stopped) => yield Err(std::io::Error::other(stopped)),
            }
        }
    })
}
