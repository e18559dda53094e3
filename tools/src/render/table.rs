//! Aligned columns without borders, cut to the width of the screen.

use comfy_table::{
    Attribute, Cell as TableCell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, Width,
    presets::NOTHING,
};

use super::{printable, tone::Tone};
use crate::screen::Screen;

/// Space between two columns.
const GAP: u16 = 2;
/// A column that gives way keeps this much.
const FLEXIBLE_MIN: u16 = 11;
/// Cells are cut at any character, not only between words: a character that no cell holds.
const NO_DELIMITER: char = '\u{0}';
/// Without a screen's width, a column that gives way is cut to this, so that a line stays a line.
const FLEXIBLE_CHARS_MAX: usize = 120;

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    kind: Kind,
    chars_min: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Flexible,
}

impl Column {
    /// Text that is never cut.
    pub(crate) const fn text(title: &'static str) -> Self {
        Self { title, kind: Kind::Text, chars_min: 0 }
    }

    /// Numbers, aligned at the right.
    pub(crate) const fn number(title: &'static str) -> Self {
        Self { title, kind: Kind::Number, chars_min: 0 }
    }

    /// Text that is cut to what is left.
    pub(crate) const fn flexible(title: &'static str) -> Self {
        Self { title, kind: Kind::Flexible, chars_min: 0 }
    }

    /// The column with at least this width, so that several tables stand under each other.
    pub(crate) const fn at_least(self, chars_min: usize) -> Self {
        Self { chars_min, ..self }
    }

    fn padded(self, text: &str) -> String {
        let width = self.chars_min;
        match self.kind {
            Kind::Number => format!("{text:>width$}"),
            Kind::Text | Kind::Flexible => format!("{text:<width$}"),
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
    let mut table = start(screen);
    let titles = columns
        .iter()
        .map(|column| TableCell::new(column.padded(column.title)).add_attribute(Attribute::Bold));
    let mut header = Row::from(titles.collect::<Vec<_>>());
    header.max_height(1);
    table.set_header(header);
    finish(table, screen, columns, rows)
}

/// Lays rows out without titles.
pub(crate) fn untitled(screen: Screen, columns: &[Column], rows: Vec<Vec<Cell>>) -> String {
    finish(start(screen), screen, columns, rows)
}

fn start(screen: Screen) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_truncation_indicator("…").set_delimiter(NO_DELIMITER);
    match screen.width {
        Some(width) => {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    if screen.colours {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table
}

fn finish(mut table: Table, screen: Screen, columns: &[Column], rows: Vec<Vec<Cell>>) -> String {
    for cells in rows {
        let cells = cells.into_iter().zip(columns).map(|(cell, column)| table_cell(cell, *column, screen));
        let mut row = Row::from(cells.collect::<Vec<_>>());
        row.max_height(1);
        table.add_row(row);
    }
    let last = columns.len().saturating_sub(1);
    for (index, column) in columns.iter().enumerate() {
        if let Some(laid_out) = table.column_mut(index) {
            laid_out.set_padding((0, if index == last { 0 } else { GAP }));
            match column.kind {
                Kind::Text => laid_out.set_constraint(ColumnConstraint::ContentWidth),
                Kind::Number => {
                    laid_out.set_cell_alignment(CellAlignment::Right);
                    laid_out.set_constraint(ColumnConstraint::ContentWidth)
                }
                Kind::Flexible if screen.width.is_some() => {
                    laid_out.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(FLEXIBLE_MIN)))
                }
                Kind::Flexible => laid_out,
            };
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

fn table_cell(cell: Cell, column: Column, screen: Screen) -> TableCell {
    let is_bounded = column.kind != Kind::Flexible || screen.width.is_some();
    let text = if is_bounded { cell.text } else { printable::short_line(&cell.text, FLEXIBLE_CHARS_MAX) };
    let laid_out = TableCell::new(column.padded(&text));
    match cell.tone.cell_colour() {
        Some(colour) => laid_out.fg(colour),
        None => laid_out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [Column::text("ID"), Column::number("TOKENS"), Column::flexible("WHAT")];

    fn rows() -> Vec<Vec<Cell>> {
        vec![
            vec![
                Cell::new("a"),
                Cell::new("12.3K"),
                Cell::new("Größe der 漢字漢字漢字 prüfen, und zwar alle"),
            ],
            vec![Cell::new("long-id"), Cell::optional(None::<&str>), Cell::new("two\nlines")],
        ]
    }

    #[test]
    fn columns_are_aligned_and_the_flexible_one_is_cut() {
        insta::assert_snapshot!(table(Screen::plain(Some(40)), &COLUMNS, rows()));
    }

    #[test]
    fn without_a_width_lines_are_whole() {
        insta::assert_snapshot!(table(Screen::plain(None), &COLUMNS, rows()));
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        for width in 40..90 {
            for line in table(Screen::plain(Some(width)), &COLUMNS, rows()).lines() {
                // Each of the six ideographs takes two columns.
                let wide = line.chars().filter(|letter| ('一'..='龥').contains(letter)).count();
                assert!(line.chars().count() + wide <= usize::from(width), "{width}: {line}");
            }
        }
    }
}
