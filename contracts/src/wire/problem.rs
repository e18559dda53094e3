//! Errors over HTTP: problem details (RFC 9457) with a code for programs.

use serde::{Deserialize, Serialize};

/// The media type of a [`Problem`].
pub const PROBLEM_CONTENT_TYPE: &str = "application/problem+json";

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Names the kind of problem: `urn:remit:problem:{code}`.
    #[serde(rename = "type")]
    pub problem_type: String,
    /// The kind of problem in words; the same for every problem of the kind.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong with this request, and what to do.
    pub detail: String,
    /// What the request was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The kind of problem, for programs.
    pub code: ProblemCode,
}

impl Problem {
    /// A problem of this kind with its own words.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self {
            problem_type: format!("urn:remit:problem:{}", code.as_str()),
            title: code.title().to_owned(),
            status: code.status(),
            detail: detail.into(),
            instance: None,
            code,
        }
    }
}

/// The kinds of problem. Each decides its status and whether trying again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    /// The request cannot be obeyed as it is.
    BadRequest,
    /// Something else is in the way, such as a run that is at work.
    Conflict,
    /// The caller may not do this.
    Forbidden,
    /// What was asked for was erased.
    Gone,
    /// We failed.
    Internal,
    /// What is stored is not what was written.
    Integrity,
    /// A field or parameter is missing, unknown or out of its range.
    Invalid,
    /// The resource does not know this method.
    MethodNotAllowed,
    /// There is no such thing, or it is not the caller's.
    NotFound,
    /// The body is larger than is accepted.
    PayloadTooLarge,
    /// The resource has no bytes in the range that was asked for.
    RangeNotSatisfiable,
    /// Too many requests, or no capacity is left.
    RateLimited,
    /// A view did not reach the asked-for moment in time.
    Stale,
    /// The caller is not known.
    Unauthenticated,
    /// The log or another part that is needed is not there.
    Unavailable,
    /// The interface has it; this server does not.
    Unsupported,
    /// The body is of a type that is not taken.
    UnsupportedMediaType,
}

impl ProblemCode {
    /// Every code, in alphabetical order.
    pub const ALL: [Self; 17] = [
        Self::BadRequest,
        Self::Conflict,
        Self::Forbidden,
        Self::Gone,
        Self::Integrity,
        Self::Internal,
        Self::Invalid,
        Self::MethodNotAllowed,
        Self::NotFound,
        Self::PayloadTooLarge,
        Self::RangeNotSatisfiable,
        Self::RateLimited,
        Self::Stale,
        Self::Unauthenticated,
        Self::Unavailable,
        Self::Unsupported,
        Self::UnsupportedMediaType,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::Conflict => "conflict",
            Self::Forbidden => "forbidden",
            Self::Gone => "gone",
            Self::Integrity => "integrity",
            Self::Internal => "internal",
            Self::Invalid => "invalid",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::NotFound => "not_found",
            Self::PayloadTooLarge => "payload_too_large",
            Self::RangeNotSatisfiable => "range_not_satisfiable",
            Self::RateLimited => "rate_limited",
            Self::Stale => "stale",
            Self::Unauthenticated => "unauthenticated",
            Self::Unavailable => "unavailable",
            Self::Unsupported => "unsupported",
            Self::UnsupportedMediaType => "unsupported_media_type",
        }
    }

    /// The kind in words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::BadRequest => "The request cannot be obeyed",
            Self::Conflict => "Something else is in the way",
            Self::Forbidden => "Not allowed",
            Self::Gone => "Erased",
            Self::Integrity => "The stored data is damaged",
            Self::Internal => "The server failed",
            Self::Invalid => "A value is not valid",
            Self::MethodNotAllowed => "The resource does not know this method",
            Self::NotFound => "Not found",
            Self::PayloadTooLarge => "The body is too large",
            Self::RangeNotSatisfiable => "There are no such bytes",
            Self::RateLimited => "Too many requests",
            Self::Stale => "The view is behind",
            Self::Unauthenticated => "Who are you?",
            Self::Unavailable => "Not available now",
            Self::Unsupported => "Not supported",
            Self::UnsupportedMediaType => "The body's type is not taken",
        }
    }

    /// The HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthenticated => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict | Self::Stale => 409,
            Self::Gone => 410,
            Self::PayloadTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::RangeNotSatisfiable => 416,
            Self::Invalid => 422,
            Self::RateLimited => 429,
            Self::Integrity | Self::Internal => 500,
            Self::Unsupported => 501,
            Self::Unavailable => 503,
        }
    }

    /// Whether the same request may succeed later.
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::Conflict | Self::RateLimited | Self::Stale | Self::Unavailable => true,
            Self::BadRequest
            | Self::Forbidden
            | Self::Gone
            | Self::Integrity
            | Self::Internal
            | Self::Invalid
            | Self::MethodNotAllowed
            | Self::NotFound
            | Self::PayloadTooLarge
            | Self::RangeNotSatisfiable
            | Self::Unauthenticated
            | Self::Unsupported
            | Self::UnsupportedMediaType => false,
        }
    }

    /// Whether it is certain that the request changed nothing.
    pub const fn has_no_side_effects(self) -> bool {
        match self {
            Self::Integrity | Self::Internal | Self::Stale | Self::Unavailable => false,
            Self::BadRequest
            | Self::Conflict
            | Self::Forbidden
            | Self::Gone
            | Self::Invalid
            | Self::MethodNotAllowed
            | Self::NotFound
            | Self::PayloadTooLarge
            | Self::RangeNotSatisfiable
            | Self::RateLimited
            | Self::Unauthenticated
            | Self::Unsupported
            | Self::UnsupportedMediaType => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_names_are_their_serialised_form_and_in_order() {
        let names: Vec<_> = ProblemCode::ALL.map(ProblemCode::as_str).into();
        assert!(names.is_sorted());
        for code in ProblemCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }

    #[test]
    fn a_problem_has_the_members_of_the_standard() {
        let problem = Problem::new(ProblemCode::NotFound, "run r-1 not found");
        let expected = serde_json::json!({"type": "urn:remit:problem:not_found", "title": "Not found", "status": 404,
            "detail": "run r-1 not found", "code": "not_found"});
        assert_eq!(serde_json::to_value(problem).unwrap(), expected);
    }
}
