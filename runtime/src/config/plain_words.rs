//! Messages of the parsers in the words of whoever wrote the file.

/// What the parsers say, and what they mean by it. The longer comes before what it contains.
const WORDS: [(&str, &str); 20] = [
    ("missing field ", "missing key "),
    ("duplicate field ", "twice the key "),
    ("unknown variant ", "unknown value "),
    ("invalid type: sequence", "invalid type: a list"),
    ("invalid type: map", "invalid type: keys and values"),
    ("invalid type: null", "invalid type: nothing"),
    ("invalid type: unit value", "invalid type: nothing"),
    ("expected a sequence", "expected a list"),
    ("expected a map", "expected keys and values"),
    ("expected unit", "expected nothing"),
    ("expected struct ", "expected keys and values for "),
    ("expected enum ", "expected a value of "),
    ("expected nonzero ", "expected a whole number other than 0 in "),
    ("expected usize", "expected a whole number"),
    ("expected u8", "expected a whole number from 0 to 255"),
    ("expected u16", "expected a whole number from 0 to 65535"),
    ("expected u32", "expected a whole number"),
    ("expected u64", "expected a whole number"),
    ("expected i64", "expected a whole number"),
    ("expected f64", "expected a number"),
];

/// A message without words of the language that the parsers are written in. What somebody wrote
/// stands in quotes and stays as it is.
pub(super) fn plain_words(message: &str) -> String {
    let mut parts = message.split('"').map(str::to_owned).collect::<Vec<_>>();
    for part in parts.iter_mut().step_by(2) {
        for (theirs, plain) in WORDS {
            *part = part.replace(theirs, plain);
        }
    }
    parts.join("\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_no_words_of_programmers() {
        for (theirs, plain) in [
            ("missing field `name`", "missing key `name`"),
            (
                "invalid type: string \"expected u32\", expected u32",
                "invalid type: string \"expected u32\", expected a whole number",
            ),
            ("invalid type: map, expected a sequence", "invalid type: keys and values, expected a list"),
            (
                "invalid value: integer `300`, expected u8",
                "invalid value: integer `300`, expected a whole number from 0 to 255",
            ),
            ("something else", "something else"),
        ] {
            assert_eq!(plain_words(theirs), plain);
        }
    }
}
