//! Lists in the order of a thread's events: the first rows after a cursor, counted after the filter.
//! Rows are only ever added, so that an earlier moment is the same list, cut short.

use eventlog::{Seq, engine::KeyRange};

use crate::{
    keys::{KeyWriter, chunk_of},
    store::RowError,
};

/// Rows that are looked at in one go when a filter may refuse most of them.
const LOOK_ROWS: usize = 256;

/// Which part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listing {
    /// Exclusive: the seq of the last row that the reader has.
    pub after: Seq,
    /// As it was when this was the thread's newest event; `None` is now.
    pub as_of: Option<Seq>,
    /// Rows at most, counted after the filter.
    pub limit: usize,
}

impl Listing {
    /// The whole list, as it is now.
    pub const WHOLE: Self = Self { after: Seq::ZERO, as_of: None, limit: usize::MAX };

    /// The rows after a seq, of keys that go on with a seq.
    pub(crate) fn range(&self, prefix: &KeyWriter, after: Seq) -> KeyRange {
        prefix.range_within(after.get().saturating_add(1), self.as_of.map_or(u64::MAX, Seq::get))
    }

    /// The numbers of the chunks that may have rows after a seq.
    pub(crate) fn chunks(&self, after: Seq) -> (u64, u64) {
        (chunk_of(after.get().saturating_add(1)), chunk_of(self.as_of.map_or(u64::MAX, Seq::get)))
    }

    /// Whether the row of a seq may be in the list after another one.
    pub(crate) fn holds(&self, after: Seq, seq: u64) -> bool {
        after.get() < seq && self.as_of.is_none_or(|last| seq <= last.get())
    }

    /// Fills a page. `read` gives what the filter admits of so many rows after a seq, and the last seq
    /// that it looked at.
    pub(crate) fn list<Row>(
        &self,
        mut read: impl FnMut(Seq, usize) -> Result<(Vec<Row>, Option<Seq>), RowError>,
    ) -> Result<Listed<Row>, RowError> {
        let (mut rows, mut after) = (Vec::new(), self.after);
        while rows.len() <= self.limit && self.as_of.is_none_or(|last| after < last) {
            let (admitted, seen) = read(after, LOOK_ROWS)?;
            rows.extend(admitted);
            match seen {
                Some(seen) => after = seen,
                None => break,
            }
        }
        let has_more = rows.len() > self.limit;
        rows.truncate(self.limit);
        Ok(Listed { rows, has_more })
    }
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<Row> {
    /// The rows, ascending by seq.
    pub rows: Vec<Row>,
    /// Whether there are more after them.
    pub has_more: bool,
}
