//! Comparing what was made again with what answers, row by row.

use eventlog::engine::{Direction, KeyRange, Pair};

use crate::{
    keys::{self, KeyKind, KeyWriter, checkpoint::ParkedKey},
    store::{RowError, Side, Snapshot},
    view::Registered,
};

/// Rows that are compared at once.
const PAGE_ROWS: usize = 1_000;

/// The first row in which a view that was made again differs from the one that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The view.
    pub view: &'static str,
    /// The row's key, for people.
    pub key: String,
    /// The row that answers, as JSON; none if there is none.
    pub answering: Option<String>,
    /// The row that was made, as JSON; none if there is none.
    pub rebuilt: Option<String>,
}

/// Compares the rows on a side with those on the other one, which answer. Rows of what was
/// erased do not count.
pub(super) fn first_difference(
    snapshot: &Snapshot<'_>,
    view: &Registered,
    made: Side,
) -> Result<Option<Difference>, RowError> {
    loop {
        match compare(snapshot, view, made)? {
            // What is erased meanwhile may be seen on one side and not on the other.
            Some((kind, key, _)) if is_gone(snapshot, kind, &key)? => {}
            found => return Ok(found.map(|(.., difference)| difference)),
        }
    }
}

fn compare(
    snapshot: &Snapshot<'_>,
    view: &Registered,
    made: Side,
) -> Result<Option<(KeyKind, Vec<u8>, Difference)>, RowError> {
    let parked = (KeyKind::Parked, ParkedKey::of_view(view.name).range());
    let ranges = view.kinds.iter().map(|kind| (*kind, KeyWriter::new(*kind).range()));
    for (kind, range) in ranges.chain([parked]) {
        let mut answering = Reader::new(snapshot, made.other(), kind, range.clone());
        let mut rebuilt = Reader::new(snapshot, made, kind, range);
        loop {
            let (one, other) = (answering.next()?, rebuilt.next()?);
            let (key, answering_row, rebuilt_row) = match (one, other) {
                (None, None) => break,
                (Some((key, row)), None) => (key, Some(row), None),
                (None, Some((key, row))) => (key, None, Some(row)),
                (Some((key, row)), Some((other_key, _))) if key < other_key => (key, Some(row), None),
                (Some((key, _)), Some((other_key, row))) if other_key < key => (other_key, None, Some(row)),
                (Some((_, row)), Some((_, other_row))) if row == other_row => continue,
                (Some((key, row)), Some((_, other_row))) => (key, Some(row), Some(other_row)),
            };
            let text = |row: Vec<u8>| keys::shown(kind, &row);
            let difference = Difference {
                view: view.name,
                key: shown(kind, &key),
                answering: answering_row.map(text),
                rebuilt: rebuilt_row.map(text),
            };
            return Ok(Some((kind, key, difference)));
        }
    }
    Ok(None)
}

fn is_gone(snapshot: &Snapshot<'_>, kind: KeyKind, key: &[u8]) -> Result<bool, RowError> {
    for side in Side::BOTH {
        if snapshot.is_gone(side, kind, key)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The kind, the name that the key begins with, and the rest: as text, or as hexadecimal digits.
fn shown(kind: KeyKind, key: &[u8]) -> String {
    let mut parts = key.get(1..).unwrap_or_default().splitn(2, |byte| *byte == 0);
    let name = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let rest = parts.next().unwrap_or_default();
    let text = rest.strip_suffix(&[0]).unwrap_or(rest);
    let rest = if text.iter().all(u8::is_ascii_graphic) {
        String::from_utf8_lossy(text).into_owned()
    } else {
        rest.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    format!("{kind:?} {name} {rest}").trim_end().to_owned()
}

/// The rows of a kind on a side, one after the other.
struct Reader<'s> {
    snapshot: &'s Snapshot<'s>,
    side: Side,
    kind: KeyKind,
    /// What was not read yet; none at the end.
    rest: Option<KeyRange>,
    page: std::vec::IntoIter<Pair>,
}

impl<'s> Reader<'s> {
    fn new(snapshot: &'s Snapshot<'s>, side: Side, kind: KeyKind, range: KeyRange) -> Self {
        Self { snapshot, side, kind, rest: Some(range), page: Vec::new().into_iter() }
    }

    fn next(&mut self) -> Result<Option<Pair>, RowError> {
        loop {
            if let Some(pair) = self.page.next() {
                return Ok(Some(pair));
            }
            let Some(range) = self.rest.take() else { return Ok(None) };
            let (page, last) = self.snapshot.opened(self.side, self.kind, &range, PAGE_ROWS)?;
            self.rest = last.map(|last| range.beyond(&last, Direction::Forward));
            self.page = page.into_iter();
        }
    }
}
