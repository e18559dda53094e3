//! Which part of a resource is wanted (RFC 9110, section 14).

use std::ops::Range;

use axum::http::{HeaderMap, HeaderName, header};

/// What a request says of ranges and versions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PartWanted {
    range: Option<String>,
    if_range: Option<String>,
    if_none_match: Option<String>,
}

/// What is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// These bytes.
    Bytes(Range<u64>),
    /// Nothing: the client has it.
    NotModified,
    /// Nothing: there are no such bytes.
    Unsatisfiable,
}

impl PartWanted {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let text =
            |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self {
            range: text(header::RANGE),
            if_range: text(header::IF_RANGE),
            if_none_match: text(header::IF_NONE_MATCH),
        }
    }

    /// What is to be sent of so many bytes of this version. A range that is not understood, and more
    /// than one, is answered with all of it.
    pub(crate) fn within(&self, bytes: u64, etag: &str) -> Part {
        let is_ours = |tag: &str| matches!(tag.trim(), "*") || tag.trim().trim_start_matches("W/") == etag;
        if self.if_none_match.as_ref().is_some_and(|tags| tags.split(',').any(is_ours)) {
            return Part::NotModified;
        }
        if self.if_range.as_ref().is_some_and(|version| version.trim() != etag) {
            return Part::Whole;
        }
        self.range.as_deref().and_then(|range| parse(range, bytes)).unwrap_or(Part::Whole)
    }
}

fn parse(range: &str, bytes: u64) -> Option<Part> {
    let (first, last) = range.trim().strip_prefix("bytes=")?.trim().split_once('-')?;
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    let wanted = match (first, last) {
        ("", suffix) => bytes.saturating_sub(number(suffix)?)..bytes,
        (first, "") => number(first)?..bytes,
        (first, last) => {
            let (first, last): (u64, u64) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            first..last.saturating_add(1).min(bytes)
        }
    };
    Some(if wanted.start < wanted.end { Part::Bytes(wanted) } else { Part::Unsatisfiable })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETAG: &str = "\"abc\"";

    #[track_caller]
    fn check(range: &str, bytes: u64, expected: Part) {
        let wanted = PartWanted { range: Some(range.to_owned()), ..PartWanted::default() };
        assert_eq!(wanted.within(bytes, ETAG), expected, "{range} of {bytes}");
    }

    #[test]
    fn a_range_is_the_bytes_that_are_there() {
        check("bytes=0-0", 10, Part::Bytes(0..1));
        check("bytes=0-9", 10, Part::Bytes(0..10));
        check("bytes=3-99", 10, Part::Bytes(3..10));
        check("bytes=3-", 10, Part::Bytes(3..10));
        check("bytes=-3", 10, Part::Bytes(7..10));
        check("bytes=-99", 10, Part::Bytes(0..10));
        check("bytes=9-18446744073709551615", 10, Part::Bytes(9..10));
    }

    #[test]
    fn what_is_not_there_cannot_be_sent() {
        check("bytes=10-", 10, Part::Unsatisfiable);
        check("bytes=10-12", 10, Part::Unsatisfiable);
        check("bytes=-0", 10, Part::Unsatisfiable);
        check("bytes=0-0", 0, Part::Unsatisfiable);
        check("bytes=-1", 0, Part::Unsatisfiable);
    }

    #[test]
    fn what_is_not_understood_is_answered_with_all() {
        for range in [
            "",
            "0-1",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=5-3",
            "bytes=0-1,4-5",
            "rows=0-1",
            "bytes=+1-2",
        ] {
            check(range, 10, Part::Whole);
        }
    }

    #[test]
    fn versions_decide_first() {
        let wanted = |if_range: Option<&str>, if_none_match: Option<&str>| PartWanted {
            range: Some("bytes=0-0".into()),
            if_range: if_range.map(str::to_owned),
            if_none_match: if_none_match.map(str::to_owned),
        };
        assert_eq!(wanted(Some(ETAG), None).within(10, ETAG), Part::Bytes(0..1));
        assert_eq!(wanted(Some("\"other\""), None).within(10, ETAG), Part::Whole);
        for tags in [ETAG, "*", "W/\"abc\"", "\"x\", \"abc\""] {
            assert_eq!(wanted(None, Some(tags)).within(10, ETAG), Part::NotModified, "{tags}");
        }
        assert_eq!(wanted(None, Some("\"x\"")).within(10, ETAG), Part::Bytes(0..1));
    }
}
