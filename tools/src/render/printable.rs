//! Text from models, tools and files, made harmless for a terminal.
//!
//! What agents say may hold escape sequences that move the cursor, change the title or hide a line,
//! and marks that turn the direction of writing round. People see such characters instead.

use domain::text;

/// Several lines: line ends and tabs stay, other control characters are shown as what they are.
pub(crate) fn lines(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, letter| {
        match letter {
            '\n' => shown.push('\n'),
            '\t' => shown.push_str("    "),
            '\r' => {}
            letter if is_harmful(letter) => shown.push_str(&format!("\\u{{{:x}}}", u32::from(letter))),
            letter => shown.push(letter),
        }
        shown
    })
}

/// One line: white space collapses.
pub(crate) fn line(text: &str) -> String {
    lines(&text::one_line(text))
}

/// One line of at most `chars_max` characters, with a mark where something was cut.
pub(crate) fn short_line(text: &str, chars_max: usize) -> String {
    let cut = text::prefix(&line(text), chars_max);
    if cut.is_truncated { format!("{}…", cut.text.trim_end()) } else { cut.text }
}

/// Control characters, and the invisible marks that change the direction of writing.
fn is_harmful(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_command_the_terminal() {
        assert_eq!(lines("a\u{1b}[2Jb\u{7}\u{9b}1m\r\nc\td"), "a\\u{1b}[2Jb\\u{7}\\u{9b}1m\nc    d");
        assert_eq!(line(" one\n\n two\u{202e} "), "one two\\u{202e}");
    }

    #[test]
    fn letters_of_all_languages_stay() {
        assert_eq!(lines("Größe 漢字 😀 é"), "Größe 漢字 😀 é");
    }

    #[test]
    fn a_cut_line_says_so() {
        assert_eq!(short_line("one two three", 7), "one two…");
        assert_eq!(short_line("one two", 7), "one two");
    }
}
