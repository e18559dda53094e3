//! Ranges of keys.

use std::ops::{Bound, RangeBounds};

use super::Direction;

/// A range of keys in byte order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> Self {
        Self { start: Bound::Unbounded, end: Bound::Unbounded }
    }

    /// The keys that begin with these bytes.
    pub fn prefix(prefix: &[u8]) -> Self {
        Self { start: Bound::Included(prefix.to_vec()), end: end_of(prefix) }
    }

    /// The keys that begin with these bytes and are greater than `key`.
    pub fn after(key: &[u8], prefix: &[u8]) -> Self {
        let start = if key < prefix { Bound::Included(prefix) } else { Bound::Excluded(key) };
        Self { start: start.map(<[u8]>::to_vec), end: end_of(prefix) }
    }

    /// The keys that begin with these bytes and are less than `key`.
    pub fn before(key: &[u8], prefix: &[u8]) -> Self {
        let end = Bound::Excluded(key.to_vec());
        Self { start: Bound::Included(prefix.to_vec()), end }
    }

    /// The keys from `first` to `last`, both included.
    pub fn between(first: &[u8], last: &[u8]) -> Self {
        Self { start: Bound::Included(first.to_vec()), end: Bound::Included(last.to_vec()) }
    }

    /// What is left of the range behind a key, for whoever reads in this direction.
    #[must_use]
    pub fn beyond(self, key: &[u8], direction: Direction) -> Self {
        let bound = Bound::Excluded(key.to_vec());
        match direction {
            Direction::Forward => Self { start: bound, ..self },
            Direction::Backward => Self { end: bound, ..self },
        }
    }

    /// Whether no key can be inside; such a range must not reach an ordered map, which would panic.
    pub(crate) fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end))
            | (Bound::Excluded(start), Bound::Included(end)) => start >= end,
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        }
    }
}

impl RangeBounds<Vec<u8>> for KeyRange {
    fn start_bound(&self) -> Bound<&Vec<u8>> {
        self.start.as_ref()
    }

    fn end_bound(&self) -> Bound<&Vec<u8>> {
        self.end.as_ref()
    }
}

/// The least key that is greater than every key with this prefix.
fn end_of(prefix: &[u8]) -> Bound<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(raised) = last.checked_add(1) {
            end.push(raised);
            return Bound::Excluded(end);
        }
    }
    Bound::Unbounded
}
