//! What somebody who mistyped a key may have meant.

/// The known name that is closest to what was given, unless none is close: at most a third of the
/// letters may differ.
pub fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let (distance, name) = known.iter().map(|name| (edits(given, name), *name)).min()?;
    let allowed = (given.chars().count() / 3).max(1);
    (distance <= allowed).then_some(name)
}

/// How many letters must be inserted, deleted or replaced to make `to` of `from` (Levenshtein).
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut costs: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.chars().enumerate() {
        let mut diagonal = row;
        let mut left = row + 1;
        let mut next = vec![left];
        for (above, target) in costs.iter().skip(1).zip(&to) {
            let replaced = diagonal + usize::from(letter != *target);
            left = replaced.min(above + 1).min(left + 1);
            next.push(left);
            diagonal = *above;
        }
        costs = next;
    }
    costs.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (from, to, expected) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("max", "xam", 2)]
        {
            assert_eq!(edits(from, to), expected, "{from} to {to}");
        }
    }

    #[test]
    fn only_what_is_close_is_suggested() {
        let known = ["max_turns", "max_total_per_run", "timeout_seconds"];
        assert_eq!(nearest("max_turn", &known), Some("max_turns"));
        assert_eq!(nearest("timeout", &known), None);
        assert_eq!(nearest("x", &[]), None);
    }
}
