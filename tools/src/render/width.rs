//! How many columns of a screen a text takes, and texts cut to so many.

use unicode_width::UnicodeWidthStr as _;

/// Stands where something was cut: one column.
const MARK: char = '…';

/// The columns that a line takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// The beginning of a line, with a mark where something was cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    format!("{}{MARK}", beginning(text, width - 1).trim_end())
}

/// The beginning and the end of an id, with a mark where something was cut.
pub(crate) fn cut_middle(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    if width < 4 {
        return cut(text, width);
    }
    let end = (width - 1) / 2;
    format!("{}{MARK}{}", beginning(text, width - 1 - end), ending(text, end))
}

/// As much of the beginning as fits.
fn beginning(text: &str, width: usize) -> &str {
    let ends = text.char_indices().map(|(at, letter)| at + letter.len_utf8());
    // Marks that take no column stay with their letter.
    let fitting = ends.map_while(|end| text.get(..end).filter(|part| columns(part) <= width));
    fitting.last().unwrap_or_default()
}

/// As much of the end as fits.
fn ending(text: &str, width: usize) -> &str {
    let starts = text.char_indices().rev().map(|(at, _)| at);
    let fitting = starts.map_while(|start| text.get(start..).filter(|part| columns(part) <= width));
    fitting.last().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_its_end() {
        for (text, width, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("ab cd", 4, "ab…"),
            ("漢字漢字", 5, "漢字…"),
            ("漢字漢字", 4, "漢…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
        ] {
            assert_eq!(cut(text, width), expected, "{text} in {width}");
        }
    }

    #[test]
    fn an_id_is_cut_in_its_middle() {
        for (text, width, expected) in [
            ("call_1", 6, "call_1"),
            ("call_958d70670bd12e4b_1", 11, "call_…e4b_1"),
            ("call_958d70670bd12e4b_1", 10, "call_…4b_1"),
            ("漢字漢字", 6, "漢…字"),
            ("abcdef", 3, "ab…"),
        ] {
            let shown = cut_middle(text, width);
            assert_eq!(shown, expected, "{text} in {width}");
            assert!(columns(&shown) <= width);
        }
    }
}
