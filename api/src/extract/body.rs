//! JSON bodies.

use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use contracts::wire::problem::ProblemCode;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::error::{Answer, ApiError};

/// One request's body, in bytes. A prompt of the largest size fits several times over.
pub(crate) const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;

/// A body that must be there: a JSON object.
pub(crate) struct JsonBody<T>(pub(crate) T);

/// A body that may be left out, with its content type; then it is `{}`.
pub(crate) struct OptionalJsonBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Answer<Self> {
        let (parts, body) = request.into_parts();
        check_content_type(&parts.headers)?;
        parse(&read(&parts.headers, body).await?).map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalJsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Answer<Self> {
        let (parts, body) = request.into_parts();
        let bytes = read(&parts.headers, body).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        check_content_type(&parts.headers)?;
        parse(&bytes).map(Self)
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

async fn read(headers: &HeaderMap, body: Body) -> Answer<Bytes> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: usize| length > BODY_BYTES_MAX) {
        return Err(too_large());
    }
    axum::body::to_bytes(body, BODY_BYTES_MAX).await.map_err(|error| {
        // The limit is the cause of its own error; everything else is a connection that broke.
        match std::error::Error::source(&error) {
            Some(cause) if cause.to_string().contains("length limit") => too_large(),
            Some(_) | None => ApiError::new(ProblemCode::BadRequest, "the body did not arrive whole"),
        }
    })
}

fn too_large() -> ApiError {
    let detail = format!("the body has more than {BODY_BYTES_MAX} bytes, the most that is accepted");
    ApiError::new(ProblemCode::PayloadTooLarge, detail)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Answer<T> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        refused(&path, error.inner())
    })?;
    deserializer.end().map_err(|error| refused(".", &error))?;
    // A list of values would else pass for an object whose fields it has in order.
    if bytes.trim_ascii_start().starts_with(b"{") {
        Ok(value)
    } else {
        Err(ApiError::invalid("body", "a JSON object"))
    }
}

/// What is not JSON is a bad request; JSON of another shape is an invalid value. Both say where.
fn refused(path: &str, error: &serde_json::Error) -> ApiError {
    match error.classify() {
        Category::Syntax | Category::Eof | Category::Io => {
            ApiError::new(ProblemCode::BadRequest, format!("the body is not JSON: {error}"))
        }
        Category::Data if path == "." => {
            ApiError::new(ProblemCode::Invalid, format!("invalid body: {error}"))
        }
        Category::Data => ApiError::new(ProblemCode::Invalid, format!("invalid {path}: {error}")),
    }
}

#[cfg(test)]
mod tests;
