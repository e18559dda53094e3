//! Aligned columns without borders. Every row is one line, and no line is wider than the screen:
//! columns give way, and where that is not enough some are left out.

mod layout;

use super::{
    printable,
    tone::{Tone, bold, paint},
    width::{columns, cut, cut_middle},
};
use crate::screen::Screen;

/// Space between two columns.
const GAP: usize = 2;
/// Without a screen's width, such as in a file or a pipe, a table has this: a line stays a line.
/// The JSON form has everything whole.
pub(crate) const UNLIMITED_WIDTH: u16 = 160;
/// No column of words is wider, so that one long name does not push the others away.
const TEXT_COLUMNS_MAX: usize = 40;
/// No id is wider: a UUID has as many.
const ID_COLUMNS_MAX: usize = 36;
/// An id that gives way keeps this much.
const ID_COLUMNS_MIN: usize = 11;
/// A word or two are cut only beyond this.
const TEXT_COLUMNS_MIN: usize = 24;
/// Words that give way keep this much.
const WORDS_COLUMNS_MIN: usize = 8;
/// A text that gives way keeps this much.
const FLEXIBLE_COLUMNS_MIN: usize = 11;

/// One column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    title: &'static str,
    kind: Kind,
    columns_min: usize,
    dropped_as: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Words,
    Id,
    Number,
    Flexible,
}

impl Column {
    const fn new(title: &'static str, kind: Kind) -> Self {
        Self { title, kind, columns_min: 0, dropped_as: None }
    }

    /// A word or two that say little when they are cut.
    pub(crate) const fn text(title: &'static str) -> Self {
        Self::new(title, Kind::Text)
    }

    /// Words that can be cut at the end, such as a name.
    pub(crate) const fn words(title: &'static str) -> Self {
        Self::new(title, Kind::Words)
    }

    /// An id: cut in its middle, because ids often differ at the end only.
    pub(crate) const fn id(title: &'static str) -> Self {
        Self::new(title, Kind::Id)
    }

    /// Numbers, aligned at the right.
    pub(crate) const fn number(title: &'static str) -> Self {
        Self::new(title, Kind::Number)
    }

    /// Text that gets what is left.
    pub(crate) const fn flexible(title: &'static str) -> Self {
        Self::new(title, Kind::Flexible)
    }

    /// The column with at least this width, so that several tables stand under each other.
    pub(crate) const fn at_least(self, columns_min: usize) -> Self {
        Self { columns_min, ..self }
    }

    /// The column is left out where there is no room for it; the lowest number first.
    pub(crate) const fn dropped_as(self, order: u8) -> Self {
        Self { dropped_as: Some(order), ..self }
    }

    /// How wide a column with cells as wide as this wants to be.
    fn wanted(self, widest: usize) -> usize {
        let limit = match self.kind {
            Kind::Text | Kind::Words => TEXT_COLUMNS_MAX,
            Kind::Id => ID_COLUMNS_MAX,
            Kind::Number | Kind::Flexible => usize::MAX,
        };
        widest.min(limit).max(self.columns_min)
    }

    /// The width below which it is of no use.
    fn needed(self, wanted: usize) -> usize {
        let least = match self.kind {
            Kind::Text => TEXT_COLUMNS_MIN,
            Kind::Number => wanted,
            Kind::Words => WORDS_COLUMNS_MIN,
            Kind::Id => ID_COLUMNS_MIN,
            Kind::Flexible => FLEXIBLE_COLUMNS_MIN,
        };
        least.max(self.columns_min).min(wanted)
    }

    fn fitted(self, text: &str, width: usize) -> String {
        match self.kind {
            Kind::Id => cut_middle(text, width),
            Kind::Text | Kind::Words | Kind::Number | Kind::Flexible => cut(text, width),
        }
    }
}

/// One cell: any text, shown as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A cell with nothing special about it.
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self::toned(text, Tone::Plain)
    }

    /// A cell in a colour.
    pub(crate) fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        Self { text: printable::line(text.as_ref()), tone }
    }

    /// A cell for what may not be known.
    pub(crate) fn optional(text: Option<impl AsRef<str>>) -> Self {
        text.map_or_else(|| Self::toned("-", Tone::Dim), Self::new)
    }
}

/// Lays rows out under their titles.
pub(crate) fn table(screen: Screen, columns: &[Column], rows: Vec<Vec<Cell>>) -> String {
    let widths = widths(screen, columns, &rows, true);
    let titles: Vec<Cell> = columns.iter().map(|column| Cell::new(column.title)).collect();
    let header = line(columns, &widths, &titles, |text, _| bold(text, screen.colours));
    let mut lines = vec![header];
    lines.extend(rows.iter().map(|cells| toned_line(screen, columns, &widths, cells)));
    lines.join("\n")
}

/// Lays rows out without titles.
pub(crate) fn untitled(screen: Screen, columns: &[Column], rows: Vec<Vec<Cell>>) -> String {
    let widths = widths(screen, columns, &rows, false);
    let lines: Vec<String> = rows.iter().map(|cells| toned_line(screen, columns, &widths, cells)).collect();
    lines.join("\n")
}

/// The width of each column; none for those that are left out.
fn widths(screen: Screen, listed: &[Column], rows: &[Vec<Cell>], has_titles: bool) -> Vec<Option<usize>> {
    let places = listed.iter().enumerate().map(|(place, column)| {
        let cells = rows.iter().filter_map(|row| row.get(place)).map(|cell| columns(&cell.text));
        let title = if has_titles { columns(column.title) } else { 0 };
        let wanted = column.wanted(cells.max().unwrap_or(0).max(title));
        layout::Place {
            wanted,
            needed: column.needed(wanted),
            is_flexible: column.kind == Kind::Flexible,
            dropped_as: column.dropped_as,
        }
    });
    layout::widths(places.collect(), screen.width.unwrap_or(UNLIMITED_WIDTH).into(), GAP)
}

fn toned_line(screen: Screen, columns: &[Column], widths: &[Option<usize>], cells: &[Cell]) -> String {
    line(columns, widths, cells, |text, tone| paint(text, tone, screen.colours))
}

/// One line. Colours are put round what is there and not round the spaces beside it.
fn line(
    listed: &[Column],
    widths: &[Option<usize>],
    cells: &[Cell],
    painted: impl Fn(&str, Tone) -> String,
) -> String {
    let mut line = String::new();
    let mut owed = 0;
    for ((column, width), cell) in listed.iter().zip(widths).zip(cells) {
        let Some(width) = *width else { continue };
        let text = column.fitted(&cell.text, width);
        let space = width.saturating_sub(columns(&text));
        if column.kind == Kind::Number {
            owed += space;
        }
        if !text.is_empty() {
            line.push_str(&" ".repeat(owed));
            line.push_str(&painted(&text, cell.tone));
            owed = 0;
        }
        owed += if column.kind == Kind::Number { GAP } else { space + GAP };
    }
    line
}

#[cfg(test)]
mod tests;
