//! Puts host paths in the place of virtual ones in a shell line, for confinements that cannot
//! mount the folders where agents know them.

use std::path::Path;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

/// Replaces each whole virtual path, and the beginning of what lies below it. Quotes are followed
/// so far that a host path with spaces stays one word; here-documents are not understood.
pub(crate) fn with_host_paths(line: &str, pairs: &[(&str, &Path)]) -> String {
    let mut out = String::with_capacity(line.len());
    let mut quote = Quote::None;
    let mut previous = ' ';
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let found = if letter == '/' && !is_name_char(previous) { path_at(rest, pairs) } else { None };
        if let Some((name, host)) = found {
            out.push_str(&quoted(&host.to_string_lossy(), quote));
            rest = rest.get(name.len()..).unwrap_or_default();
            previous = 'x';
            continue;
        }
        out.push(letter);
        rest = rest.get(letter.len_utf8()..).unwrap_or_default();
        quote = match (quote, letter) {
            _ if previous == '\\' && quote != Quote::Single => quote,
            (Quote::None, '\'') => Quote::Single,
            (Quote::None, '"') => Quote::Double,
            (Quote::Single, '\'') | (Quote::Double, '"') => Quote::None,
            (Quote::None | Quote::Single | Quote::Double, _) => quote,
        };
        // An escaped backslash escapes nothing.
        previous = if letter == '\\' && previous == '\\' { ' ' } else { letter };
    }
    out
}

fn path_at<'a>(rest: &str, pairs: &[(&'a str, &'a Path)]) -> Option<(&'a str, &'a Path)> {
    pairs
        .iter()
        .copied()
        .find(|(name, _)| rest.strip_prefix(name).is_some_and(|after| !after.starts_with(is_name_char)))
}

fn is_name_char(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.')
}

fn quoted(host: &str, quote: Quote) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/_-.,:+@%=".contains(letter);
    let escaped = |must: &dyn Fn(char) -> bool| {
        let mut out = String::new();
        for letter in host.chars() {
            if must(letter) {
                out.push('\\');
            }
            out.push(letter);
        }
        out
    };
    match quote {
        Quote::None => escaped(&|letter| !is_plain(letter)),
        Quote::Double => escaped(&|letter| "\"\\$`".contains(letter)),
        Quote::Single => host.replace('\'', "'\\''"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let plain = Path::new("/srv/ws");
        let odd = Path::new("/srv/it's $5");
        let pairs = [
            ("/mnt/user-data/workspace", plain),
            ("/mnt/user-data/uploads", odd),
            ("/tmp", Path::new("/t/1")),
        ];
        assert_eq!(with_host_paths(line, &pairs), expected);
    }

    #[test]
    fn whole_virtual_paths_are_replaced() {
        check("cat /mnt/user-data/workspace/a", "cat /srv/ws/a");
        check("cd /mnt/user-data/workspace; ls", "cd /srv/ws; ls");
        check("x --out=/mnt/user-data/workspace", "x --out=/srv/ws");
        check("echo \"/mnt/user-data/workspace/ä b\"", "echo \"/srv/ws/ä b\"");
        check("echo >/tmp/x", "echo >/t/1/x");
    }

    #[test]
    fn paths_that_only_look_alike_are_left_alone() {
        check("cat /mnt/user-data/workspaces/a", "cat /mnt/user-data/workspaces/a");
        check("cat /mnt/user-data/workspace.bak", "cat /mnt/user-data/workspace.bak");
        check("cat x/mnt/user-data/workspace", "cat x/mnt/user-data/workspace");
        check("cat /var/tmp/x", "cat /var/tmp/x");
        check("cat /mnt/user-data", "cat /mnt/user-data");
    }

    #[test]
    fn a_host_path_with_odd_letters_stays_one_word_in_every_quoting() {
        check("cat /mnt/user-data/uploads/a", r"cat /srv/it\'s\ \$5/a");
        check("cat \"/mnt/user-data/uploads/a\"", r#"cat "/srv/it's \$5/a""#);
        check("cat '/mnt/user-data/uploads/a'", r"cat '/srv/it'\''s $5/a'");
        check(r#"echo \" /mnt/user-data/uploads"#, r#"echo \" /srv/it\'s\ \$5"#);
        check(r#"echo '\' /mnt/user-data/uploads"#, r"echo '\' /srv/it\'s\ \$5");
    }
}
