//! Characters that a provider cut in two between events.
//!
//! A JSON text must be UTF-8 and its `\u` escapes must pair, so half a character makes a whole event
//! unreadable. Such halves are marked with characters from the end of plane 16, which no text uses,
//! and put together again when the pieces have been joined.

use serde_json::Value;

/// Marks one byte that is not UTF-8 where it stands: this plus the byte.
const BYTE_MARKS: u32 = 0x10_FF00;
/// Marks one half of a surrogate pair: this plus its distance from U+D800.
const HALF_MARKS: u32 = 0x10_F000;
const HALVES: std::ops::Range<u32> = 0xD800..0xE000;

/// Reads an event's JSON. The flag says whether halves were marked, so that the texts must be mended.
pub(crate) fn parse(data: &[u8]) -> Result<(Value, bool), serde_json::Error> {
    match serde_json::from_slice(data) {
        Ok(value) => Ok((value, false)),
        Err(error) => match serde_json::from_str(&mark_halves(&mark_bytes(data))) {
            Ok(value) => Ok((value, true)),
            Err(_) => Err(error),
        },
    }
}

/// Joins marked halves; what has no other half becomes U+FFFD.
pub(crate) fn mend(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let mut bytes = Vec::new();
    let mut units = Vec::new();
    for letter in text.chars() {
        let code = u32::from(letter);
        let byte = code.checked_sub(BYTE_MARKS).and_then(|byte| u8::try_from(byte).ok());
        let unit = code
            .checked_sub(HALF_MARKS)
            .map(|half| half + HALVES.start)
            .filter(|half| HALVES.contains(half))
            .and_then(|half| u16::try_from(half).ok());
        if byte.is_none() {
            mended.push_str(&String::from_utf8_lossy(&std::mem::take(&mut bytes)));
        }
        if byte.is_some() || unit.is_none() {
            mended.push_str(&String::from_utf16_lossy(&std::mem::take(&mut units)));
        }
        match (byte, unit) {
            (Some(byte), _) => bytes.push(byte),
            (None, Some(unit)) => units.push(unit),
            (None, None) => mended.push(letter),
        }
    }
    mended.push_str(&String::from_utf8_lossy(&bytes));
    mended.push_str(&String::from_utf16_lossy(&units));
    mended
}

fn mark_bytes(data: &[u8]) -> String {
    let mut marked = String::with_capacity(data.len());
    for chunk in data.utf8_chunks() {
        marked.push_str(chunk.valid());
        marked
            .extend(chunk.invalid().iter().filter_map(|&byte| char::from_u32(BYTE_MARKS + u32::from(byte))));
    }
    marked
}

/// Replaces the escapes of lone surrogates; pairs stay as they are.
fn mark_halves(json: &str) -> String {
    let mut marked = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        marked.push_str(before);
        let length = match (half(escape), escape.get(6..).and_then(half)) {
            (Some(high), Some(low)) if high < 0xDC00 && low >= 0xDC00 => push(&mut marked, escape, 12),
            (Some(lone), _) => {
                marked.extend(char::from_u32(HALF_MARKS + lone - HALVES.start));
                6
            }
            (None, _) => push(&mut marked, escape, escape.chars().take(2).map(char::len_utf8).sum()),
        };
        rest = escape.get(length..).unwrap_or_default();
    }
    marked.push_str(rest);
    marked
}

fn push(marked: &mut String, escape: &str, length: usize) -> usize {
    marked.push_str(escape.get(..length).unwrap_or(escape));
    length
}

/// The surrogate that an escape at the beginning of the text stands for.
fn half(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|code| HALVES.contains(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joins the `a` of each event and mends the whole.
    #[track_caller]
    fn check(events: &[&[u8]], expected: &str) {
        let joined: String = events
            .iter()
            .map(|data| parse(data).unwrap().0.get("a").and_then(Value::as_str).unwrap().to_owned())
            .collect();
        assert_eq!(mend(&joined), expected);
    }

    #[test]
    fn whole_characters_are_left_alone() {
        assert!(!parse("{\"a\":\"é\\ud83d\\ude00\"}".as_bytes()).unwrap().1);
        check(&["{\"a\":\"é\\ud83d\\ude00\\n\"}".as_bytes()], "é\u{1F600}\n");
    }

    #[test]
    fn halves_of_bytes_meet_again() {
        check(&[b"{\"a\":\"x\xF0\x9F\"}", b"{\"a\":\"\x98\x80y\"}"], "x\u{1F600}y");
        check(&[b"{\"a\":\"\xC3\"}", b"{\"a\":\"\xA9\"}"], "é");
        check(&[b"{\"a\":\"\xC3\"}", b"{\"a\":\"x\"}"], "\u{FFFD}x");
    }

    #[test]
    fn halves_of_surrogate_pairs_meet_again() {
        check(&[b"{\"a\":\"x\\ud83d\"}", b"{\"a\":\"\\ude00y\"}"], "x\u{1F600}y");
        check(&[b"{\"a\":\"\\ud83d\"}", b"{\"a\":\"x\"}"], "\u{FFFD}x");
        check(&[b"{\"a\":\"\\\\ud83d \\ude00\"}"], "\\ud83d \u{FFFD}");
        check(&[b"{\"a\":\"\\ud83d\\ud83d\\ude00\"}"], "\u{FFFD}\u{1F600}");
    }

    #[test]
    fn what_is_not_json_stays_an_error() {
        for bad in [b"{\"a\":".as_slice(), b"\xFF", b"", b"{\"a\":\"\\", b"{\"a\":\"\\u12"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
