//! Finds blocked tags. The rule (chain facts (c), "Match rule"): `<`, spaces, `/` or not, spaces,
//! a blocked name in any case, a word boundary, then everything up to and with the next `>`, or
//! the end of the text.

use super::BLOCKED_TAGS;

/// Where the blocked tag that the text begins with ends, in bytes. `None` when the text does not
/// begin with one.
pub(super) fn tag_end(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('<')?.trim_start();
    let name = inside.strip_prefix('/').unwrap_or(inside).trim_start();
    let is_blocked = BLOCKED_TAGS.iter().any(|blocked| begins_with_word(name, blocked));
    is_blocked.then(|| text.find('>').map_or(text.len(), |closing| closing + 1))
}

/// Whether the text begins with the word, in any case, and the word ends there.
fn begins_with_word(text: &str, word: &str) -> bool {
    let mut letters = text.chars();
    let has_word = word.chars().all(|expected| letters.next().is_some_and(|letter| fold(letter) == expected));
    has_word && !letters.next().is_some_and(is_word_letter)
}

/// Lower case, with the four letters outside ASCII that fold to one inside it.
fn fold(letter: char) -> char {
    match letter {
        '\u{130}' | '\u{131}' => 'i',
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}

fn is_word_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}
