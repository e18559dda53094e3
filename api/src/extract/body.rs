//! JSON bodies.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use contracts::wire::{ingest::Ingest, object::Object, problem::ProblemCode};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;

use crate::error::{Answer, ApiError};

/// One request's body, in bytes. A prompt of the largest size fits several times over.
pub(crate) const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// A body of events, in bytes. Two events of the largest size fit.
pub(crate) const INGEST_BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How fast a body of the largest size has to arrive; a smaller one may take as long. 32 s for
/// [`BODY_BYTES_MAX`].
const BODY_BYTES_PER_SECOND_MIN: usize = 64 * 1024;

/// A body that must be there: a JSON object.
pub(crate) struct JsonBody<T>(pub(crate) T);

/// A body of one event or a list of them.
pub(crate) struct IngestBody(pub(crate) Ingest);

/// A body that may be left out, with its content type; then it is `{}`.
pub(crate) struct OptionalJsonBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Answer<Self> {
        let (parts, body) = request.into_parts();
        check_content_type(&parts.headers)?;
        let bytes = read(&parts.headers, body, BODY_BYTES_MAX).await?;
        parse_object(&bytes).map(Self)
    }
}

impl<S: Send + Sync> FromRequest<S> for IngestBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Answer<Self> {
        let (parts, body) = request.into_parts();
        check_content_type(&parts.headers)?;
        parse(&read(&parts.headers, body, INGEST_BODY_BYTES_MAX).await?).map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalJsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Answer<Self> {
        let (parts, body) = request.into_parts();
        let bytes = read(&parts.headers, body, BODY_BYTES_MAX).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        check_content_type(&parts.headers)?;
        parse_object(&bytes).map(Self)
    }
}

/// `application/json` or a type that ends in `+json`, with or without parameters.
fn check_content_type(headers: &HeaderMap) -> Answer<()> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json =
        essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"));
    if is_json {
        return Ok(());
    }
    let shown: String = given.chars().take(80).collect();
    let detail = format!("content type {shown:?} is not taken here; send application/json");
    Err(ApiError::new(ProblemCode::UnsupportedMediaType, detail))
}

async fn read(headers: &HeaderMap, body: Body, bytes_max: usize) -> Answer<Bytes> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: usize| length > bytes_max) {
        return Err(too_large(bytes_max));
    }
    let longest = Duration::from_secs((bytes_max / BODY_BYTES_PER_SECOND_MIN) as u64);
    let Ok(bytes) = tokio::time::timeout(longest, axum::body::to_bytes(body, bytes_max)).await else {
        let detail =
            format!("the body did not arrive within {} s; send it without a pause", longest.as_secs());
        return Err(ApiError::new(ProblemCode::BadRequest, detail));
    };
    bytes.map_err(|error| {
        // The limit is the cause of its own error; everything else is a connection that broke.
        match std::error::Error::source(&error) {
            Some(cause) if cause.to_string().contains("length limit") => too_large(bytes_max),
            Some(_) | None => ApiError::new(ProblemCode::BadRequest, "the body did not arrive whole"),
        }
    })
}

fn too_large(bytes_max: usize) -> ApiError {
    let detail = format!("the body has more than {bytes_max} bytes, the most that is accepted");
    ApiError::new(ProblemCode::PayloadTooLarge, detail)
}

/// Half a surrogate pair stands for no character, and a string cut in the middle of one has it at its
/// end: it is read as the replacement character.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Answer<T> {
    let whole = std::str::from_utf8(bytes).map(eventlog::with_whole_characters);
    let bytes = whole.as_ref().map_or(bytes, |whole| whole.as_bytes());
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        refused(&path, error.inner(), bytes)
    })?;
    deserializer.end().map_err(|error| refused(".", &error, bytes))?;
    Ok(value)
}

fn parse_object<T: DeserializeOwned>(bytes: &[u8]) -> Answer<T> {
    parse(bytes).map(|Object(value)| value)
}

/// What is not JSON is a bad request; JSON of another shape is an invalid value. Both say where.
fn refused(path: &str, error: &serde_json::Error, bytes: &[u8]) -> ApiError {
    match error.classify() {
        // What stands for one of several values is looked at before it is known to be JSON.
        Category::Syntax if serde_json::from_slice::<IgnoredAny>(bytes).is_ok() => {
            ApiError::invalid(path, "one of its values, as text")
        }
        Category::Syntax | Category::Eof | Category::Io => {
            ApiError::new(ProblemCode::BadRequest, format!("the body is not JSON: {error}"))
        }
        Category::Data if path == "." => {
            ApiError::new(ProblemCode::Invalid, format!("invalid body: {}", in_plain_words(error)))
        }
        Category::Data => {
            // A path that begins with an index has no name of its own.
            let body = if path.starts_with('[') { "body" } else { "" };
            let detail = format!("invalid {body}{path}: {}", in_plain_words(error));
            ApiError::new(ProblemCode::Invalid, detail)
        }
    }
}

/// What is wrong, in the words of JSON instead of those of our types.
fn in_plain_words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let said = text.strip_suffix(&place).unwrap_or(&text);
    let Some((found, expected)) = said.rsplit_once(", expected ") else { return text };
    let found = match found {
        "invalid type: sequence" => "invalid type: a list",
        "invalid type: map" => "invalid type: an object",
        found => found,
    };
    let expected = match expected {
        "a map" => "a JSON object",
        "a sequence" => "a list",
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "usize" => {
            "a whole number in its range"
        }
        "f32" | "f64" => "a number",
        expected if expected.starts_with("struct ") => "a JSON object",
        expected if expected.starts_with("enum ") => "one of its values, as text",
        expected => expected,
    };
    // Text of the client's own may hold anything, so it is only the ends that were looked at.
    format!("{found}, expected {expected}{}", if error.line() == 0 { "" } else { &place })
}

#[cfg(test)]
mod tests;
