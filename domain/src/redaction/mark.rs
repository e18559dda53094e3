//! What stands in the place of a secret.

use std::ops::Range;

use regex::Regex;

use super::{pattern::compiled, span::Kind};
use crate::digest::sha256_hex;

/// Hexadecimal digits of the secret's SHA-256 in its mark: 32 bits. Enough to see that two places
/// hid the same secret, and to look for a leaked key in a log; of a key that was made at random it
/// gives nothing away. A whole digest would serve no reader better, and would confirm a guess beyond
/// doubt. A password that is in a dictionary can still be guessed against 32 bits: change it when it
/// was written where it did not belong.
const HASH_DIGITS: usize = 8;

/// The mark of a secret.
pub(super) fn of(kind: Kind, secret: &str) -> String {
    let mut hash = sha256_hex(secret.as_bytes());
    hash.truncate(HASH_DIGITS);
    format!("[redacted:{}:sha256={hash}]", kind.as_str())
}

/// Finds marks, so that none is masked again.
#[derive(Debug)]
pub(super) struct Marks(Regex);

impl Marks {
    pub(super) fn new() -> Self {
        Self(compiled(r"\[redacted:[a-z_]{1,20}:sha256=[0-9a-f]{8}\]"))
    }

    pub(super) fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        self.0.find_iter(text).map(|mark| mark.range()).collect()
    }
}
