//! Bounded text. The unit is the Unicode code point, never the byte, so that no cut can split a
//! character.

/// Stands between the head and the tail of text that was cut in the middle.
const MIDDLE_MARK: &str = "\n...\n";

/// Up to here a bound is too small for head, mark and tail, and the text is simply cut.
const PLAIN_PREFIX_CHARS_MAX: usize = 5;

/// Text with the knowledge of whether something was cut from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounded {
    /// What is left.
    pub text: String,
    /// Whether anything was cut.
    pub is_truncated: bool,
}

/// Keeps the first `chars_max` characters. At exactly the bound nothing is cut (facts §6.2).
pub fn prefix(text: &str, chars_max: usize) -> Bounded {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => {
            Bounded { text: text.get(..end).unwrap_or_default().to_owned(), is_truncated: true }
        }
        None => Bounded { text: text.to_owned(), is_truncated: false },
    }
}

/// Keeps two thirds from the beginning and the rest from the end, with a mark between
/// (chain facts §0, "Head/tail bound"). A cut result is exactly `chars_max` characters long.
pub fn head_and_tail(text: &str, chars_max: usize) -> Bounded {
    let length = text.chars().count();
    if length <= chars_max {
        return Bounded { text: text.to_owned(), is_truncated: false };
    }
    let head = chars_max * 2 / 3;
    let tail = chars_max.saturating_sub(head + MIDDLE_MARK.len());
    if chars_max <= PLAIN_PREFIX_CHARS_MAX || tail == 0 {
        return prefix(text, chars_max);
    }
    let mut kept: String = text.chars().take(head).collect();
    kept.push_str(MIDDLE_MARK);
    kept.extend(text.chars().skip(length - tail));
    Bounded { text: kept, is_truncated: true }
}

/// Collapses every run of white space into one space and trims the ends: for one line of a list.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn three_hundred_characters_under_a_bound_of_120_keep_80_and_35() {
        let text: String = ('a'..='z').cycle().take(300).collect();
        let bounded = head_and_tail(&text, 120);
        let (head, tail) = bounded.text.split_once(MIDDLE_MARK).unwrap();
        assert_eq!((head.chars().count(), tail.chars().count()), (80, 35));
        assert!(text.starts_with(head) && text.ends_with(tail) && bounded.is_truncated);
    }

    #[test]
    fn a_brief_of_2000_is_1333_and_662() {
        let bounded = head_and_tail(&"x".repeat(3_000), 2_000);
        let (head, tail) = bounded.text.split_once(MIDDLE_MARK).unwrap();
        assert_eq!((head.len(), tail.len()), (1_333, 662));
    }

    #[test]
    fn tiny_bounds_are_plain_prefixes() {
        for (chars_max, expected) in [(0, ""), (1, "a"), (5, "abcde")] {
            assert_eq!(head_and_tail("abcdefghij", chars_max).text, expected);
        }
    }

    proptest! {
        // Field report 91: cuts at limit -3 … +3 over 4-byte characters and combining marks.
        #[test]
        fn a_cut_is_exact_and_never_splits_a_character(
            text in "[a-z\u{1F600}\u{0301}漢\u{2028}]{0,60}", delta in -3_i64..=3,
        ) {
            let length = text.chars().count();
            let chars_max = usize::try_from(length as i64 + delta).unwrap_or(0);
            for bounded in [prefix(&text, chars_max), head_and_tail(&text, chars_max)] {
                prop_assert_eq!(bounded.text.chars().count(), length.min(chars_max));
                prop_assert_eq!(bounded.is_truncated, length > chars_max);
            }
        }
    }
}
