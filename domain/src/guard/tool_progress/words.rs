//! How alike two results are, by the words that they have in common.

use std::collections::BTreeSet;

/// Characters of a result that are looked at.
const LOOKED_AT_CHARS_MAX: usize = 8_192;
/// Characters that a word needs to say something.
const WORD_CHARS_MIN: usize = 3;

/// The different words of one result, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Words(BTreeSet<String>);

impl Words {
    pub(super) fn of(text: &str) -> Self {
        let looked_at: String = text.chars().take(LOOKED_AT_CHARS_MAX).collect();
        let lower = looked_at.to_lowercase();
        let words = lower.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        Self(words.filter(|word| word.chars().count() >= WORD_CHARS_MIN).map(str::to_owned).collect())
    }

    /// Whether these are mostly the words of an earlier result. Few words say nothing about that.
    pub(super) fn repeat(&self, earlier: &Self, words_min: u32, threshold: f64) -> bool {
        let is_short = |words: &Self| u32::try_from(words.0.len()).is_ok_and(|count| count < words_min);
        if is_short(self) || is_short(earlier) {
            return false;
        }
        self.likeness(earlier) >= threshold
    }

    /// The words in both over the words in either, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a result has far fewer than 2^53 words")]
    fn likeness(&self, other: &Self) -> f64 {
        let common = self.0.intersection(&other.0).count();
        let either = self.0.len() + other.0.len() - common;
        if either == 0 { 1.0 } else { common as f64 / either as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(range: std::ops::Range<usize>) -> Words {
        let words: Vec<_> = range.map(|number| format!("word{number}")).collect();
        Words::of(&words.join(" "))
    }

    #[test]
    fn words_are_of_three_letters_in_any_case_and_from_the_beginning() {
        let words = Words::of("An ÜBER, über; the_one ab");
        assert_eq!(words, Words(["the_one", "über"].map(str::to_owned).into()));
        let long = format!("{} late", "early ".repeat(LOOKED_AT_CHARS_MAX / 6));
        assert_eq!(Words::of(&long), Words(["early".to_owned()].into()));
    }

    #[test]
    fn likeness_is_what_is_common_over_what_there_is() {
        // 8 of 10 words are common: at the threshold it counts.
        let (one, other) = (numbered(0..9), numbered(1..10));
        assert!(one.repeat(&other, 9, 0.8) && !one.repeat(&other, 9, 0.81));
        assert!(!one.repeat(&other, 10, 0.0), "too few words say nothing");
        assert!(!numbered(0..9).repeat(&numbered(20..29), 9, 0.1));
    }
}
