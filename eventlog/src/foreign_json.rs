//! JSON that somebody else wrote, made safe for every reader without changing what it says.
//!
//! The grammar of JSON allows two things that many readers refuse, and one refused value would make
//! a whole page unreadable for them: an escape of half a character, and nesting without end.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::Json;

/// Objects and lists within each other. Readers commonly stop at 128 or above, and an answer adds a
/// few around it.
pub const NESTING_MAX: usize = 100;

/// A value is nested more deeply than readers can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("objects and lists are nested more than {NESTING_MAX} deep")]
pub struct TooDeep;

impl Json {
    /// The value `""`: what an event says of which nobody said anything.
    pub fn empty_text() -> Self {
        Self::from_stored("\"\"")
    }

    /// Takes a value as the text that it is. An escape of half a surrogate pair, which stands for no
    /// character, becomes the escape of the replacement character, U+FFFD; all else keeps its bytes.
    pub fn from_foreign(value: &RawValue) -> Result<Self, TooDeep> {
        let text = value.get();
        let found = look_through(text.as_bytes());
        if found.depth > NESTING_MAX {
            return Err(TooDeep);
        }
        Ok(Self::from_stored(&replaced(text, &found.halves)))
    }
}

/// The same text of JSON with the replacement character for each escape of half a surrogate pair. What
/// is no JSON stays none.
pub fn with_whole_characters(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    replaced(text, &look_through(text.as_bytes()).halves)
}

fn replaced<'a>(text: &'a str, halves: &[usize]) -> Cow<'a, str> {
    if halves.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut whole, mut at) = (String::with_capacity(text.len()), 0);
    for half in halves {
        whole.push_str(text.get(at..*half).unwrap_or_default());
        whole.push_str("\\ufffd");
        at = half + ESCAPE_BYTES;
    }
    whole.push_str(text.get(at..).unwrap_or_default());
    Cow::Owned(whole)
}

/// `\u0000`.
const ESCAPE_BYTES: usize = 6;

/// What was found in a text.
#[derive(Default)]
struct Found {
    /// The deepest nesting.
    depth: usize,
    /// Where the escapes of half a pair begin.
    halves: Vec<usize>,
}

/// Measures the depth, and finds the escapes of half a pair.
fn look_through(bytes: &[u8]) -> Found {
    let mut found = Found::default();
    let (mut at, mut depth, mut is_inside_string) = (0, 0_usize, false);
    while let Some(byte) = bytes.get(at) {
        let mut step = 1;
        match byte {
            b'"' => is_inside_string = !is_inside_string,
            b'\\' if is_inside_string => step = escape(bytes, at, &mut found.halves),
            b'{' | b'[' if !is_inside_string => {
                depth += 1;
                found.depth = found.depth.max(depth);
            }
            b'}' | b']' if !is_inside_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += step;
    }
    found
}

/// The length of the escape that begins here, or of two that are one character.
fn escape(bytes: &[u8], at: usize, halves: &mut Vec<usize>) -> usize {
    let Some(unit) = code_unit(bytes, at) else { return 2 };
    match unit {
        0xD800..0xDC00 => {
            let low = code_unit(bytes, at + ESCAPE_BYTES);
            if low.is_some_and(|low| (0xDC00..0xE000).contains(&low)) {
                return 2 * ESCAPE_BYTES;
            }
            halves.push(at);
        }
        0xDC00..0xE000 => halves.push(at),
        _ => {}
    }
    ESCAPE_BYTES
}

/// The number of the `\u` escape that begins here.
fn code_unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + ESCAPE_BYTES)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn foreign(text: &str) -> Result<String, TooDeep> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        Json::from_foreign(raw).map(|json| json.get().to_owned())
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(foreign(text).unwrap(), expected);
        assert!(serde_json::from_str::<serde_json::Value>(expected).is_ok(), "{expected}");
    }

    #[test]
    fn half_characters_are_replaced_and_all_else_stays() {
        for text in [
            r#"{"b":1.0,"a" : 1e2,"n":9007199254740993,"b":"\u0000 \u2028\u0085 \ud83d\ude00 \\ud800"}"#,
            "\"\u{2028}\u{2029}\u{85}\u{1F600}e\u{301}\"",
            "18446744073709551617",
            "null",
        ] {
            check(text, text);
        }
        check(r#"["\ud800"]"#, r#"["\ufffd"]"#);
        check(
            r#"{"\udc00":"\ud83d\ud83d\ude00\uDBFFx\\\uDFFF"}"#,
            r#"{"\ufffd":"\ufffd\ud83d\ude00\ufffdx\\\ufffd"}"#,
        );
        check(r#""\ud800\u0041 \"[{""#, r#""\ufffd\u0041 \"[{""#);
    }

    #[test]
    fn nesting_has_an_end() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(foreign(&nested(NESTING_MAX)).is_ok());
        assert_eq!(foreign(&nested(NESTING_MAX + 1)), Err(TooDeep));
        assert_eq!(foreign(&nested(100_000)), Err(TooDeep));
        assert!(foreign(&format!("[{}]", vec!["[]"; 1_000].join(","))).is_ok());
        assert!(foreign(&format!("\"{}\"", "[".repeat(1_000))).is_ok());
    }

    proptest! {
        #[test]
        fn every_string_of_units_becomes_readable(units in prop::collection::vec(any::<u16>(), 0..20)) {
            let text: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let read: String = serde_json::from_str(&foreign(&format!("\"{text}\"")).unwrap()).unwrap();
            prop_assert_eq!(read, String::from_utf16_lossy(&units));
        }
    }
}
