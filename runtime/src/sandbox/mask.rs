//! Turns host paths in what a shell line prints back into the paths that agents know.
//!
//! Works on the stream, so that a path that is cut between two reads is masked as well, and
//! nothing larger than the longest path is held back.

use std::{os::unix::ffi::OsStrExt, path::Path};

/// Replaces whole host paths, and what lies below them, with their virtual names.
pub(crate) struct StreamMask {
    /// Longest first, so that a folder inside another keeps its own name.
    names: Vec<(Vec<u8>, &'static str)>,
    /// The beginning of what may become a host path.
    held: Vec<u8>,
    /// The last byte that was given out.
    previous: u8,
}

enum Seen {
    Path(usize, &'static str),
    Perhaps,
    Nothing,
}

impl StreamMask {
    pub(crate) fn new<'a>(pairs: impl IntoIterator<Item = (&'static str, &'a Path)>) -> Self {
        let mut names: Vec<_> = pairs
            .into_iter()
            .map(|(name, host)| (host.as_os_str().as_bytes().to_vec(), name))
            .filter(|(host, _)| host.len() > 1)
            .collect();
        names.sort_by_key(|(host, _)| std::cmp::Reverse(host.len()));
        Self { names, held: Vec::new(), previous: b' ' }
    }

    /// Takes the next bytes and gives out what is settled.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.advance(bytes, false)
    }

    /// Gives out what was held back.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.advance(&[], true)
    }

    fn advance(&mut self, bytes: &[u8], is_end: bool) -> Vec<u8> {
        let mut input = std::mem::take(&mut self.held);
        input.extend_from_slice(bytes);
        let mut out = Vec::with_capacity(input.len());
        let mut rest = input.as_slice();
        while let Some(at) = rest.iter().position(|byte| *byte == b'/') {
            let (before, from) = rest.split_at(at);
            out.extend_from_slice(before);
            let previous = *out.last().unwrap_or(&self.previous);
            match self.look(from, previous, is_end) {
                Seen::Path(length, name) => {
                    out.extend_from_slice(name.as_bytes());
                    rest = from.get(length..).unwrap_or_default();
                }
                Seen::Perhaps => {
                    self.held = from.to_vec();
                    rest = &[];
                }
                Seen::Nothing => {
                    out.push(b'/');
                    rest = from.get(1..).unwrap_or_default();
                }
            }
        }
        out.extend_from_slice(rest);
        self.previous = *out.last().unwrap_or(&self.previous);
        out
    }

    fn look(&self, from: &[u8], previous: u8, is_end: bool) -> Seen {
        // A name that goes on to the left or right is another path. A dot may end a sentence, so
        // to the right it does not count: better a path too many masked than one shown.
        if is_name_byte(previous) || previous == b'.' {
            return Seen::Nothing;
        }
        for (host, name) in &self.names {
            if from.starts_with(host) {
                match from.get(host.len()) {
                    Some(byte) if is_name_byte(*byte) => {}
                    None if !is_end => return Seen::Perhaps,
                    Some(_) | None => return Seen::Path(host.len(), name),
                }
            } else if !is_end && host.starts_with(from) {
                return Seen::Perhaps;
            }
        }
        Seen::Nothing
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn masked(chunks: &[&[u8]]) -> String {
        let mut mask = StreamMask::new([
            ("/mnt/user-data/workspace", Path::new("/srv/data/ws")),
            ("/mnt/user-data/outputs", Path::new("/srv/data/ws/out")),
            ("/tmp", Path::new("/tmp/remit-1")),
        ]);
        let mut out: Vec<u8> = chunks.iter().flat_map(|chunk| mask.push(chunk)).collect();
        out.extend(mask.finish());
        String::from_utf8(out).unwrap()
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(masked(&[text.as_bytes()]), expected);
    }

    #[test]
    fn whole_paths_are_masked_and_others_are_left_alone() {
        check("/srv/data/ws/a.txt", "/mnt/user-data/workspace/a.txt");
        check("in '/srv/data/ws' now", "in '/mnt/user-data/workspace' now");
        check("at /srv/data/ws.", "at /mnt/user-data/workspace.");
        check("/srv/data/ws", "/mnt/user-data/workspace");
        check("/srv/data/ws/out/x", "/mnt/user-data/outputs/x");
        check("/srv/data/wsx and x/srv/data/ws", "/srv/data/wsx and x/srv/data/ws");
        check("TMPDIR=/tmp/remit-1/a", "TMPDIR=/tmp/a");
        check("/srv/data", "/srv/data");
    }

    proptest! {
        #[test]
        fn where_the_stream_is_cut_makes_no_difference(
            parts in proptest::collection::vec("(/srv/data/ws|/srv/data|/out|/tmp|/remit-1|[a /é]){1,3}", 0..8),
            cut in 1_usize..9,
        ) {
            let text = parts.concat();
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            prop_assert_eq!(masked(&chunks), masked(&[text.as_bytes()]));
        }
    }
}
