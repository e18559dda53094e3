//! Ids as short as they can be without being mistaken for each other.

/// The time in an id, to the millisecond: ids that are not listed beside it begin otherwise too.
const CHARS_MIN: usize = 13;

/// Each id cut to the least common length at which different ids differ.
pub(crate) fn shortened<'a>(ids: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let ids: Vec<&str> = ids.into_iter().collect();
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let shared = sorted.iter().zip(sorted.iter().skip(1)).map(|(left, right)| shared_chars(left, right));
    let length = shared.max().map_or(CHARS_MIN, |chars| CHARS_MIN.max(chars + 1));
    ids.into_iter().map(|id| cut(id, length)).collect()
}

fn shared_chars(left: &str, right: &str) -> usize {
    left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count()
}

/// The first characters of an id, without a separator at the end.
fn cut(id: &str, chars: usize) -> String {
    let kept: String = id.chars().take(chars).collect();
    kept.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ids: &[&str], expected: &[&str]) {
        assert_eq!(shortened(ids.iter().copied()), expected);
    }

    #[test]
    fn ids_are_cut_where_they_differ() {
        check(&[], &[]);
        check(&["0193a1b2-c3d4-7000"], &["0193a1b2-c3d4"]);
        check(&["0193a1b2-c3d4-7000", "0193a1b2-c3d5-7000"], &["0193a1b2-c3d4", "0193a1b2-c3d5"]);
        check(
            &["0193a1b2-c3d4-7000-80", "0193a1b2-c3d4-7000-81"],
            &["0193a1b2-c3d4-7000-80", "0193a1b2-c3d4-7000-81"],
        );
        check(&["0193a1b2-c3d4-7", "0193a1b2-c3d4-7"], &["0193a1b2-c3d4", "0193a1b2-c3d4"]);
        check(&["short", "other"], &["short", "other"]);
        check(&["r", "r-1"], &["r", "r-1"]);
    }
}
