//! An error with its causes, in one line: for messages of machines, and for what is recorded of a
//! failure.

use std::error::Error;

/// What was being done, and behind a colon each cause. A cause that the words before it end with
/// already is not said twice.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{words}")]
    struct Because {
        words: &'static str,
        source: Option<Box<Because>>,
    }

    #[track_caller]
    fn check(chain: &[&'static str], expected: &str) {
        let wrap = |source, words: &&'static str| Some(Box::new(Because { words, source }));
        let error = chain.iter().rev().fold(None, wrap).unwrap();
        assert_eq!(with_causes(&*error), expected);
    }

    #[test]
    fn each_cause_is_said_once() {
        check(&["could not open x"], "could not open x");
        check(&["could not open x", "no leave"], "could not open x: no leave");
        check(&["a", "b", "c"], "a: b: c");
        check(&["a: b", "b", "c"], "a: b: c");
    }
}
