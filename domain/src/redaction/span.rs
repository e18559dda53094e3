//! Where secrets are in a text, and putting marks there.

use std::ops::Range;

use super::Redacted;

/// What is left of a secret beside a mark is masked from this length on, in bytes.
const REST_BYTES_MIN: usize = 4;

/// What kind of secret it is: a word in its mark. The names are stored; never change one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A key whose form is known.
    ApiKey,
    /// Credentials of an authorization header.
    Authorization,
    /// The secret key beside an AWS access key.
    AwsSecretKey,
    /// What the owner of the server described.
    Custom,
    /// A JSON Web Token.
    Jwt,
    /// What stands under a name that says password.
    Password,
    /// A PEM block.
    PrivateKey,
    /// What stands under any other name that says secret.
    Secret,
    /// The password in an address.
    UrlPassword,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::Authorization => "authorization",
            Self::AwsSecretKey => "aws_secret_key",
            Self::Custom => "custom",
            Self::Jwt => "jwt",
            Self::Password => "password",
            Self::PrivateKey => "private_key",
            Self::Secret => "secret",
            Self::UrlPassword => "url_password",
        }
    }
}

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Its bytes, from one character to another.
    pub(super) range: Range<usize>,
    /// What it is.
    pub(super) kind: Kind,
}

/// In order; those that overlap become one, of the kind that was found first.
pub(super) fn joined(mut found: Vec<Found>) -> Vec<Found> {
    // A stable sort: of two that begin together, the rule that was asked first names it.
    found.sort_by_key(|found| found.range.start);
    let mut joined: Vec<Found> = Vec::with_capacity(found.len());
    for next in found {
        match joined.last_mut() {
            Some(last) if next.range.start < last.range.end => {
                last.range.end = last.range.end.max(next.range.end);
            }
            Some(_) | None => joined.push(next),
        }
    }
    joined
}

/// Takes the marks out of what was found. Both are in order.
pub(super) fn without(found: Vec<Found>, marks: &[Range<usize>]) -> Vec<Found> {
    if marks.is_empty() {
        return found;
    }
    let mut rest = Vec::with_capacity(found.len());
    for Found { range, kind } in found {
        let mut start = range.start;
        let mut is_cut = false;
        for mark in marks.iter().filter(|mark| mark.start < range.end && mark.end > range.start) {
            push_rest(&mut rest, start..mark.start, kind);
            start = mark.end;
            is_cut = true;
        }
        if is_cut {
            push_rest(&mut rest, start..range.end, kind);
        } else {
            rest.push(Found { range, kind });
        }
    }
    rest
}

fn push_rest(rest: &mut Vec<Found>, range: Range<usize>, kind: Kind) {
    if range.start < range.end && range.len() >= REST_BYTES_MIN {
        rest.push(Found { range, kind });
    }
}

/// Puts other text in the place of ranges, which are in order and apart. None: there are none.
pub(super) fn splice(text: &str, edits: Vec<(Range<usize>, String)>) -> Option<Redacted> {
    if edits.is_empty() {
        return None;
    }
    let mut spliced = String::with_capacity(text.len());
    let (mut at, mut masks) = (0, 0);
    for (range, mark) in edits {
        spliced.push_str(text.get(at..range.start).unwrap_or_default());
        spliced.push_str(&mark);
        at = range.end;
        masks += 1;
    }
    spliced.push_str(text.get(at..).unwrap_or_default());
    Some(Redacted { text: spliced, masks })
}
