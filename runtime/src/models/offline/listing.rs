//! Reading the text that the `ls` tool returns.

use minijinja::Value;

/// Files above this size are left for tools that search.
const READABLE_BYTES_MAX: u64 = 200_000;

/// Names that promise text, best first.
const TEXT_EXTENSIONS: &[&str] = &[
    "md", "txt", "rst", "toml", "yaml", "yml", "json", "rs", "py", "js", "ts", "go", "java", "c", "h", "cpp",
    "sh", "html", "css", "sql", "csv", "log", "ini", "cfg", "xml",
];
/// Names that promise anything but text.
const BINARY_EXTENSIONS: &[&str] = &[
    "png", "jpg", "jpeg", "gif", "webp", "ico", "pdf", "zip", "gz", "tar", "xz", "7z", "exe", "dll", "so",
    "o", "a", "bin", "dat", "db", "sqlite", "woff", "woff2", "ttf", "mp3", "mp4", "mov", "wasm", "class",
    "jar", "pyc",
];

struct Entry<'a> {
    path: &'a str,
    bytes: Option<u64>,
}

/// The entries of a listing: directories end with a slash, files are followed by a tab and a size,
/// and a line that begins with three dots says that more was cut off.
fn entries(text: &str) -> impl Iterator<Item = Entry<'_>> {
    let is_entry = |line: &&str| !line.trim().is_empty() && *line != "(empty)" && !line.starts_with("...");
    text.lines().filter(is_entry).map(|line| match line.rsplit_once('\t') {
        Some((path, bytes)) => Entry { path, bytes: bytes.trim().parse().ok() },
        None => Entry { path: line, bytes: None },
    })
}

/// Every path of a listing, without sizes.
pub(super) fn paths(text: &str) -> Value {
    entries(text).map(|entry| entry.path.to_owned()).collect()
}

/// The files of a listing.
pub(super) fn files(text: &str) -> Value {
    entries(text).filter(|entry| !entry.path.ends_with('/')).map(|entry| entry.path.to_owned()).collect()
}

/// The files of a listing that are probably text and not too large: those whose names promise it
/// first, otherwise in the listing's order.
pub(super) fn text_files(text: &str) -> Value {
    let mut found: Vec<(usize, &str)> = entries(text)
        .filter(|entry| {
            !entry.path.ends_with('/') && entry.bytes.is_none_or(|bytes| bytes <= READABLE_BYTES_MAX)
        })
        .filter_map(|entry| Some((rank(entry.path)?, entry.path)))
        .collect();
    found.sort_by_key(|&(rank, _)| rank);
    found.into_iter().map(|(_, path)| path.to_owned()).collect()
}

/// The lines of a tool's result that say what was found: `ls`, `glob` and `grep` say in words that
/// there is nothing, and that more was cut off.
pub(super) fn found(text: &str) -> usize {
    const NOTHING: [&str; 5] = ["(empty)", "(no match", "(no output", "no files match ", "no lines match "];
    let is_found = |line: &&str| {
        let line = line.trim();
        !line.is_empty()
            && !line.starts_with("... ")
            && !NOTHING.iter().any(|nothing| line.starts_with(nothing))
    };
    text.lines().filter(is_found).count()
}

fn rank(path: &str) -> Option<usize> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_lowercase()).unwrap_or_default();
    let is_among = |extensions: &[&str]| extensions.iter().position(|known| **known == extension);
    if is_among(BINARY_EXTENSIONS).is_some() {
        return None;
    }
    Some(is_among(TEXT_EXTENSIONS).unwrap_or(TEXT_EXTENSIONS.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "src/\nlogo.png\t12\nMakefile\t80\nnotes für später.txt\t9\nhuge.md\t9000000\nREADME.md\t100\n... 3 more entries";

    #[track_caller]
    fn check(found: &Value, expected: &[&str]) {
        let found: Vec<String> = found.try_iter().unwrap().map(|path| path.to_string()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn finding_nothing_is_told_from_finding_something() {
        for (text, expected) in [
            ("a.md\t1\nb.md\t2\n\n... 3 more entries", 2),
            ("no files match \"*.py\" in .", 0),
            ("no lines match \"x\"", 0),
            ("(empty)", 0),
            ("", 0),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn a_listing_is_read() {
        check(
            &paths(LISTING),
            &["src/", "logo.png", "Makefile", "notes für später.txt", "huge.md", "README.md"],
        );
        check(&files(LISTING), &["logo.png", "Makefile", "notes für später.txt", "huge.md", "README.md"]);
        check(&text_files(LISTING), &["README.md", "notes für später.txt", "Makefile"]);
        for empty in ["", "(empty)", "\n"] {
            check(&text_files(empty), &[]);
        }
    }
}
