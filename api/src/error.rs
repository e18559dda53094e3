//! How a request fails: one problem (RFC 9457), whose code decides its status.
//!
//! The code is [`ProblemCode`], in the contracts: whether trying again can help and whether the
//! request changed anything is decided there, once, for servers and clients alike.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use contracts::wire::problem::{PROBLEM_CONTENT_TYPE, Problem, ProblemCode};
use domain::{
    causes::with_causes,
    ids::{InvalidId, RunId, ThreadId},
};
use eventlog::ReadError;

/// What a client that was turned away for lack of capacity waits, in seconds.
const RETRY_AFTER_SECONDS: &str = "1";

/// What a handler answers.
pub(crate) type Answer<T> = Result<T, ApiError>;

/// A request that was not obeyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError(Box<Problem>);

impl ApiError {
    /// A problem in its own words: what is wrong, and what would be accepted.
    pub(crate) fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(code, detail)))
    }

    /// A field or parameter that breaks its rule.
    pub(crate) fn invalid(field: &str, rule: &str) -> Self {
        Self::new(ProblemCode::Invalid, format!("invalid {field}: it must be {rule}"))
    }

    /// Its words.
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// There is no such thread.
    pub(crate) fn no_thread(thread_id: &ThreadId) -> Self {
        Self::new(ProblemCode::NotFound, format!("Thread {thread_id} not found"))
    }

    /// There is no such run on the thread.
    pub(crate) fn no_run(run_id: &RunId) -> Self {
        Self::new(ProblemCode::NotFound, format!("Run {run_id} not found"))
    }

    /// There is no such delegation in the run.
    pub(crate) fn no_task(task_id: &str) -> Self {
        Self::new(ProblemCode::NotFound, format!("Task {task_id} not found"))
    }

    /// The server is stopping.
    pub(crate) fn shutting_down() -> Self {
        Self::new(ProblemCode::Unavailable, "the server is shutting down; ask again when it is back")
    }

    /// Something failed that is not the client's doing. The log line has the whole chain of causes.
    /// Damage is `integrity`, wherever it is met and whatever the code is otherwise.
    pub(crate) fn failed(code: ProblemCode, doing: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        let code = if eventlog::is_damage(error) { ProblemCode::Integrity } else { code };
        let chain = with_causes(error);
        tracing::error!(code = code.as_str(), error = %chain, "{doing} failed");
        Self::new(code, format!("{doing} failed: {chain}"))
    }
}

impl From<InvalidId> for ApiError {
    fn from(error: InvalidId) -> Self {
        Self::new(ProblemCode::Invalid, error.to_string())
    }
}

/// The log that a request needs cannot be read.
impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        Self::failed(ProblemCode::Unavailable, "reading the log", &error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, axum::Json(&*self.0)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_CONTENT_TYPE));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if matches!(self.0.code, ProblemCode::RateLimited | ProblemCode::Unavailable) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
        }
        response
    }
}
