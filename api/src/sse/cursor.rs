//! `Last-Event-ID`: where a client resumes.
//!
//! | Header | Answer |
//! |---|---|
//! | absent, or empty as some clients send it at first | from the run's first event |
//! | a position from 1 to the log's head | after that position, whatever stands there |
//! | anything else: `-1`, `abc`, `0`, 2^64, a position that does not exist yet | 400 |
//!
//! A cursor that cannot be one of ours is never taken for "from the beginning": a client that
//! sends it at each reconnect would get everything each time.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, request::Parts},
};
use contracts::wire::problem::ProblemCode;
use eventlog::Position;

use crate::{
    error::{Answer, ApiError},
    extract::whole_number,
};

/// The header.
pub(crate) const LAST_EVENT_ID: &str = "last-event-id";

/// The position that a client names as the last one it has. Whether the log has it is checked by
/// [`Cursor::within`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor(Option<Position>);

impl<S: Send + Sync> FromRequestParts<S> for Cursor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Answer<Self> {
        Self::read(&parts.headers)
    }
}

impl Cursor {
    fn read(headers: &HeaderMap) -> Answer<Self> {
        let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(Self(None)) };
        if value.is_empty() {
            return Ok(Self(None));
        }
        let number = value.to_str().ok().and_then(whole_number).filter(|number| *number >= 1);
        let position =
            number.map(Position::new).ok_or_else(|| refused("a position, a whole number from 1"))?;
        Ok(Self(Some(position)))
    }

    /// The position to resume after, once it is known not to lie beyond the log's head.
    pub(crate) fn within(self, head: Position) -> Answer<Position> {
        match self.0 {
            Some(position) if position > head => {
                Err(refused(&format!("a position that exists; the log is at {head}")))
            }
            Some(position) => Ok(position),
            None => Ok(Position::ZERO),
        }
    }
}

fn refused(rule: &str) -> ApiError {
    ApiError::new(ProblemCode::BadRequest, format!("invalid Last-Event-ID: it must be {rule}"))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const HEAD: Position = Position::new(12);

    fn resume(value: Option<HeaderValue>) -> Answer<Position> {
        let mut headers = HeaderMap::new();
        if let Some(value) = value {
            headers.insert(LAST_EVENT_ID, value);
        }
        Cursor::read(&headers)?.within(HEAD)
    }

    // Field report 63: no invalid cursor starts a full replay.
    #[test]
    fn a_cursor_is_a_position_that_exists_or_refused() {
        assert_eq!(resume(None), Ok(Position::ZERO));
        for (text, expected) in [("", 0), ("1", 1), ("12", 12), ("012", 12)] {
            assert_eq!(resume(Some(HeaderValue::from_static(text))), Ok(Position::new(expected)), "{text:?}");
        }
        for text in
            ["-1", "abc", "0", "18446744073709551616", "18446744073709551615", "13", "+1", "1.0", " ", "1,2"]
        {
            assert!(resume(Some(HeaderValue::from_static(text))).is_err(), "{text:?}");
        }
        assert!(resume(Some(HeaderValue::from_bytes(b"\xff").unwrap())).is_err());
    }
}
