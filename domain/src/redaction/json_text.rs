//! Goes through JSON text from end to end, without making anything of it.

use std::ops::Range;

/// A string or number in JSON text.
pub(super) struct Scalar<'a> {
    /// The name that it stands under, with its escapes: that of its member, or of the list it is in.
    pub(super) name: Option<&'a str>,
    /// Which of the two.
    pub(super) kind: ScalarKind,
    /// Its text with its escapes, without quotes.
    pub(super) raw: &'a str,
    /// Where that begins.
    pub(super) at: usize,
}

/// Which kind of value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarKind {
    /// A string.
    Text,
    /// A number.
    Number,
}

impl Scalar<'_> {
    pub(super) fn range(&self) -> Range<usize> {
        self.at..self.at + self.raw.len()
    }
}

/// An object or list that is open.
struct Open<'a> {
    is_object: bool,
    name: Option<&'a str>,
}

/// Visits every string and number that is a value. It is a loop, so depth costs no stack.
pub(super) fn walk<'a>(json: &'a str, visit: &mut dyn FnMut(Scalar<'a>)) {
    let bytes = json.as_bytes();
    let mut open: Vec<Open<'a>> = Vec::new();
    let mut is_name_next = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let mut next = at + 1;
        match byte {
            b'{' => {
                open.push(Open { is_object: true, name: None });
                is_name_next = true;
            }
            b'[' => {
                let name = open.last().and_then(|outer| outer.name);
                open.push(Open { is_object: false, name });
                is_name_next = false;
            }
            b'}' | b']' => drop(open.pop()),
            b',' => is_name_next = open.last().is_some_and(|inner| inner.is_object),
            b':' => is_name_next = false,
            b'"' => {
                let end = string_end(bytes, next);
                let raw = json.get(next..end).unwrap_or_default();
                match open.last_mut() {
                    Some(inner) if is_name_next => inner.name = Some(raw),
                    inner => {
                        let name = inner.and_then(|inner| inner.name);
                        visit(Scalar { name, kind: ScalarKind::Text, raw, at: next });
                    }
                }
                next = end + 1;
            }
            b'-' | b'0'..=b'9' => {
                next = number_end(bytes, next);
                let name = open.last().and_then(|inner| inner.name);
                let raw = json.get(at..next).unwrap_or_default();
                visit(Scalar { name, kind: ScalarKind::Number, raw, at });
            }
            _ => {}
        }
        at = next;
    }
}

/// The place of the closing quote.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(step) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) else {
            return bytes.len();
        };
        at += step;
        match bytes.get(at) {
            Some(b'\\') => at += 2,
            Some(_) | None => return at,
        }
    }
}

fn number_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    start + rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len())
}
