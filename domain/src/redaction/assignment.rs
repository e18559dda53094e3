//! Values that stand under a name that says secret, in whatever notation.

use std::ops::Range;

use regex::Regex;

use super::{
    names::{self, Class},
    pattern::compiled,
    span::{Found, Kind},
    trigger::NAME_WORDS,
    value::{self, Written},
};

/// A name is looked for this far back, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// Finds names with a separator after them, and their values.
#[derive(Debug)]
pub(super) struct Assignments {
    name_end: Regex,
    type_before_value: Regex,
    opening: Regex,
    scheme: Regex,
    bare: Regex,
}

/// A place in a text where a value begins.
struct Start {
    at: usize,
    written: Written,
    is_element: bool,
}

impl Assignments {
    pub(super) fn new() -> Self {
        Self {
            // The name's last word; what closes the name; then a separator, or a space after a flag.
            name_end: compiled(&format!(
                r#"(?i)(?-u:({NAME_WORDS})(?:[_-]?[0-9]{{1,3}})?)(?:[\\"'`\]) \t]*(:=|=>|==?|:|>)|([ \t]+))"#
            )),
            type_before_value: compiled(
                r"^[ \t]*&?(?:'static )?[A-Za-z_][A-Za-z0-9_<>\[\], |.?&]{0,40}[ \t]*=[ \t]*",
            ),
            opening: compiled(r#"^[ \t]*(?:[bfru]{1,2})?(\\*["'`])"#),
            scheme: compiled(
                r"(?i)^(?:bearer|basic|token|digest|negotiate|apikey|api-key|bot|key|hmac|ntlm|aws4-hmac-sha256)[ \t]+",
            ),
            bare: compiled(r#"^(?:[^\s"'`&;<>\\]|\\+/)+"#),
        }
    }

    pub(super) fn collect(&self, text: &str, found: &mut Vec<Found>) {
        let mut from = 0;
        while let Some(captures) = self.name_end.captures_at(text, from) {
            let (Some(whole), Some(word)) = (captures.get(0), captures.get(1)) else { break };
            from = word.end();
            let (name, before) = name_before(text, word.range());
            let separator = captures.get(2).map(|separator| separator.as_str());
            let Some(class) = class_of(name, before) else { continue };
            let Some(start) = self.value_start(text, separator, before, whole.end()) else { continue };
            if let Some(value) = self.value(text, class, &start) {
                found.push(value);
            }
        }
    }

    /// Where the value begins, if the separator is one after such a name.
    fn value_start(&self, text: &str, separator: Option<&str>, before: &str, end: usize) -> Option<Start> {
        let rest = text.get(end..)?;
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let start = |written| Some(Start { at: end + spaces, written, is_element: false });
        match separator {
            None => {
                if before.ends_with("--") {
                    start(Written::Tight)
                } else {
                    None
                }
            }
            Some(">") => {
                let is_element = before.ends_with('<') || before.ends_with(':');
                is_element.then_some(Start { at: end, written: Written::Quoted, is_element })
            }
            Some(":") => match self.type_before_value.find(rest) {
                Some(typed) => {
                    Some(Start { at: end + typed.end(), written: Written::Loose, is_element: false })
                }
                None => start(if spaces == 0 { Written::Tight } else { Written::Loose }),
            },
            Some(_) => start(if spaces == 0 { Written::Tight } else { Written::Loose }),
        }
    }

    fn value(&self, text: &str, class: Class, start: &Start) -> Option<Found> {
        let rest = text.get(start.at..)?;
        let (skipped, value, written) = match self.opening.captures(rest).and_then(|captures| captures.get(1))
        {
            Some(quote) if !start.is_element => {
                let inside = rest.get(quote.end()..)?;
                (quote.end(), inside.get(..closing(inside, quote.as_str()))?, Written::Quoted)
            }
            Some(_) | None if start.is_element => (0, rest.get(..rest.find('<')?)?, start.written),
            Some(_) | None => (0, self.bare_value(class, rest), start.written),
        };
        let (skipped, value, class) = match class {
            Class::Authorization => {
                let scheme = self.scheme.find(value).map_or(0, |scheme| scheme.end());
                (skipped + scheme, value.get(scheme..)?, class)
            }
            Class::Password | Class::Passphrase | Class::Secret | Class::Perhaps => (skipped, value, class),
        };
        let begin = start.at + skipped;
        is_masked(class, value, written)
            .then(|| Found { range: begin..begin + value.len(), kind: kind(class) })
    }

    /// A value without quotes ends with its word; what closes a sentence or a list is not part of it.
    fn bare_value<'a>(&self, class: Class, rest: &'a str) -> &'a str {
        let scheme = match class {
            Class::Authorization => self.scheme.find(rest).map_or(0, |scheme| scheme.end()),
            Class::Password | Class::Passphrase | Class::Secret | Class::Perhaps => 0,
        };
        let word = self.bare.find(rest.get(scheme..).unwrap_or_default()).map_or("", |word| word.as_str());
        let word = word.trim_end_matches([',', '.', ')', ']', '}', ':']);
        rest.get(..scheme + word.len()).unwrap_or_default()
    }
}

/// The secret of a JSON member whose name says so: all of its text, or what follows a scheme.
pub(super) fn member(class: Option<Class>, text: &str) -> Vec<Found> {
    let Some(class) = class else { return Vec::new() };
    let scheme = match class {
        Class::Authorization => text.find(' ').map_or(0, |space| space + 1),
        Class::Password | Class::Passphrase | Class::Secret | Class::Perhaps => 0,
    };
    let secret = text.get(scheme..).unwrap_or_default();
    let is_secret = is_masked(class, secret, Written::Quoted);
    is_secret.then(|| Found { range: scheme..text.len(), kind: kind(class) }).into_iter().collect()
}

fn is_masked(class: Class, value: &str, written: Written) -> bool {
    match class {
        Class::Authorization => value::are_credentials(value) && !value.contains(char::is_whitespace),
        Class::Password | Class::Passphrase | Class::Secret | Class::Perhaps => {
            value::is_secret(class, value, written)
        }
    }
}

const fn kind(class: Class) -> Kind {
    match class {
        Class::Password | Class::Passphrase => Kind::Password,
        Class::Authorization => Kind::Authorization,
        Class::Secret | Class::Perhaps => Kind::Secret,
    }
}

/// What the name says. After a backslash, its first letter may be the end of an escape.
fn class_of(name: &str, before: &str) -> Option<Class> {
    let is_escaped = before.ends_with('\\') && name.starts_with(['n', 't', 'r', 'b', 'f']);
    let rest = if is_escaped { name.get(1..).and_then(names::class) } else { None };
    rest.or_else(|| names::class(name))
}

/// The whole name that the word ends, and what stands before it.
fn name_before(text: &str, word: Range<usize>) -> (&str, &str) {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let bytes = text.as_bytes().get(..word.start).unwrap_or_default();
    let length = bytes.iter().rev().take(NAME_BYTES_MAX).take_while(|byte| is_part(byte)).count();
    let start = word.start - length;
    let name = text.get(start..word.end).unwrap_or_default();
    // The dashes of a flag, and an escape before them, are not part of its name.
    let dashes = name.rfind("--").map_or(0, |dashes| dashes + 2);
    (name.get(dashes..).unwrap_or_default(), text.get(..start + dashes).unwrap_or_default())
}

/// Where the quote closes again: the same quote with as many backslashes before it. A string that is
/// cut off goes on to the end of its line.
fn closing(inside: &str, quote: &str) -> usize {
    let escapes = quote.len() - quote.trim_start_matches('\\').len();
    let mark = quote.trim_start_matches('\\');
    for (at, _) in inside.match_indices(mark) {
        let before = inside.get(..at).unwrap_or_default();
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        if backslashes == escapes {
            return at - escapes;
        }
    }
    inside.find(['\n', '\r']).unwrap_or(inside.len())
}
