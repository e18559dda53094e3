//! The text of a JSON string, with the place that each byte of it has among the escapes.

use std::{borrow::Cow, ops::Range};

/// A JSON string without its escapes.
pub(super) struct Decoded<'a> {
    /// The text. A lone surrogate is U+FFFD in it.
    pub(super) text: Cow<'a, str>,
    /// Where each byte of the text, and its end, stand in the raw string; none when both are equal.
    places: Option<Vec<usize>>,
}

impl<'a> Decoded<'a> {
    /// Reads what stands between the quotes.
    pub(super) fn of(raw: &'a str) -> Self {
        if !raw.contains('\\') {
            return Self { text: Cow::Borrowed(raw), places: None };
        }
        let mut text = String::with_capacity(raw.len());
        let mut places = Vec::with_capacity(raw.len() + 1);
        let mut rest = raw;
        while let Some(first) = rest.chars().next() {
            let at = raw.len() - rest.len();
            let (decoded, length) = if first == '\\' { escape(rest) } else { (first, first.len_utf8()) };
            text.push(decoded);
            places.extend(std::iter::repeat_n(at, decoded.len_utf8()));
            rest = rest.get(length..).unwrap_or_default();
        }
        places.push(raw.len());
        Self { text: Cow::Owned(text), places: Some(places) }
    }

    /// The bytes of a range of the text in what the raw string stands in, from `at` on.
    pub(super) fn raw_range(&self, range: &Range<usize>, at: usize) -> Range<usize> {
        let place = |index: usize| match &self.places {
            None => index,
            Some(places) => places.get(index).or(places.last()).copied().unwrap_or(0),
        };
        at + place(range.start)..at + place(range.end)
    }
}

/// The character of the escape that the text begins with, and the length of the escape.
fn escape(text: &str) -> (char, usize) {
    let plain = |decoded| (decoded, 2);
    match text.as_bytes().get(1) {
        Some(b'n') => plain('\n'),
        Some(b'r') => plain('\r'),
        Some(b't') => plain('\t'),
        Some(b'b') => plain('\u{8}'),
        Some(b'f') => plain('\u{c}'),
        Some(b'u') => unicode_escape(text),
        Some(byte) if byte.is_ascii() => plain(char::from(*byte)),
        // Not JSON: the backslash stands for itself.
        Some(_) | None => ('\\', 1),
    }
}

fn unicode_escape(text: &str) -> (char, usize) {
    let Some(unit) = code_unit(text) else { return ('\\', 1) };
    if let Some(decoded) = char::from_u32(unit) {
        return (decoded, 6);
    }
    let low = text.get(6..).and_then(code_unit).filter(|low| (0xDC00..0xE000).contains(low));
    match low {
        Some(low) if unit < 0xDC00 => {
            let scalar = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            (char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        Some(_) | None => (char::REPLACEMENT_CHARACTER, 6),
    }
}

/// The number of a `\u` escape that the text begins with.
fn code_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}
