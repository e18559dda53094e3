//! Secrets in a stream of bytes, masked before anything is digested or written.
//!
//! The redactor looks at whole texts; a stream is given to it in windows. A window is cut where the
//! two sides, looked at apart, come out as they do together, and far enough from its end that a
//! secret which goes on in the next piece is still seen whole. So what comes out is what the redactor
//! makes of the whole text, as long as no secret with its surroundings is longer than
//! [`OVERLAP_BYTES`]; the longest that is known, a PEM block, has a quarter of that.
//!
//! What is not text stays as it is: a window of which more than an eighth is no UTF-8 or control
//! characters. A few such bytes in a text do not help a secret: what is between them is looked at.

use std::sync::Arc;

use domain::redaction::Redactor;

/// What is looked at together.
const WINDOW_BYTES: usize = 256 * 1024;
/// What is looked at again with what follows.
const OVERLAP_BYTES: usize = 16 * 1024;
/// Places where a window is tried to be cut before it is cut anywhere.
const CUTS_MAX: usize = 16;
/// A window of which more than one in so many bytes is no text is left alone.
const NO_TEXT_SHARE: usize = 8;

/// Masks what it is given, in order.
#[derive(Debug)]
pub(super) struct Masking {
    redactor: Arc<Redactor>,
    window: usize,
    overlap: usize,
    held: Vec<u8>,
}

impl Masking {
    pub(super) fn new(redactor: Arc<Redactor>) -> Self {
        Self::with_window(redactor, WINDOW_BYTES, OVERLAP_BYTES)
    }

    fn with_window(redactor: Arc<Redactor>, window: usize, overlap: usize) -> Self {
        Self { redactor, window, overlap, held: Vec::new() }
    }

    /// Takes bytes, and hands out what is settled.
    pub(super) fn push(&mut self, mut bytes: &[u8], out: &mut dyn FnMut(&[u8])) {
        while !bytes.is_empty() {
            let room = self.window.saturating_sub(self.held.len()).max(1);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.held.extend_from_slice(now);
            bytes = later;
            if self.held.len() >= self.window {
                self.advance(false, out);
            }
        }
    }

    /// Hands out the rest.
    pub(super) fn finish(mut self, out: &mut dyn FnMut(&[u8])) {
        self.advance(true, out);
    }

    fn advance(&mut self, is_end: bool, out: &mut dyn FnMut(&[u8])) {
        let held = std::mem::take(&mut self.held);
        let taken = if is_no_text(&held) {
            let taken = if is_end { held.len() } else { held.len().saturating_sub(self.overlap) };
            out(held.get(..taken).unwrap_or_default());
            taken
        } else {
            self.mask(&held, is_end, out)
        };
        self.held = held.get(taken..).unwrap_or_default().to_vec();
    }

    /// Masks the text between bytes that are none, and says how much of it is settled.
    fn mask(&self, bytes: &[u8], is_end: bool, out: &mut dyn FnMut(&[u8])) -> usize {
        let mut taken = 0;
        loop {
            let rest = bytes.get(taken..).unwrap_or_default();
            let (text, no_text) = match std::str::from_utf8(rest) {
                Ok(text) => (text, None),
                Err(error) => {
                    let text = rest.get(..error.valid_up_to()).unwrap_or_default();
                    (std::str::from_utf8(text).unwrap_or_default(), Some(error.error_len()))
                }
            };
            match no_text {
                // The text ends here.
                Some(Some(length)) => {
                    let end = text.len() + length;
                    self.mask_text(text, out);
                    out(rest.get(text.len()..end).unwrap_or_default());
                    taken += end;
                }
                // A character whose other bytes are still to come.
                Some(None) if is_end => {
                    self.mask_text(text, out);
                    out(rest.get(text.len()..).unwrap_or_default());
                    return bytes.len();
                }
                Some(None) | None if !is_end => return taken + self.mask_beginning(text, out),
                Some(None) | None => {
                    self.mask_text(text, out);
                    return bytes.len();
                }
            }
        }
    }

    fn mask_text(&self, text: &str, out: &mut dyn FnMut(&[u8])) {
        out(self.masked(text).as_deref().unwrap_or(text).as_bytes());
    }

    fn masked(&self, text: &str) -> Option<String> {
        self.redactor.redact_text(text).map(|redacted| redacted.text)
    }

    /// Masks what will not come out differently, whatever follows. Gives its length.
    fn mask_beginning(&self, text: &str, out: &mut dyn FnMut(&[u8])) -> usize {
        let latest = text.floor_char_boundary(text.len().saturating_sub(self.overlap));
        if latest == 0 {
            return 0;
        }
        let whole = self.masked(text);
        for at in cuts(text, latest) {
            let (first, rest) = text.split_at(at);
            let Some(whole) = &whole else {
                // A line that begins anew is no different from one that follows another.
                if first.ends_with('\n') || self.masked(rest).is_none() {
                    out(first.as_bytes());
                    return at;
                }
                continue;
            };
            let (first_masked, rest_masked) = (self.masked(first), self.masked(rest));
            let first_masked = first_masked.as_deref().unwrap_or(first);
            let rest_masked = rest_masked.as_deref().unwrap_or(rest);
            let is_clean = whole.strip_prefix(first_masked).is_some_and(|behind| behind == rest_masked);
            if is_clean {
                out(first_masked.as_bytes());
                return at;
            }
        }
        // One secret over all of it: no known kind is so long.
        self.mask_text(text.split_at(latest).0, out);
        latest
    }
}

/// Where to try to cut, the best first: behind the last line ends, then behind the last spaces, then
/// anywhere.
fn cuts(text: &str, latest: usize) -> impl Iterator<Item = usize> {
    let before = text.split_at(latest).0;
    let behind = |end: char| {
        let ends = before.rmatch_indices(end).map(move |(at, end)| at + end.len());
        ends.take(CUTS_MAX)
    };
    let anywhere =
        (0..CUTS_MAX).map(move |step| text.floor_char_boundary(latest - latest * step / (2 * CUTS_MAX)));
    behind('\n').chain(behind(' ')).chain(anywhere).filter(|at| *at > 0)
}

fn is_no_text(bytes: &[u8]) -> bool {
    let mut other = 0;
    for chunk in bytes.utf8_chunks() {
        let is_control = |byte: &u8| byte.is_ascii_control() && !matches!(byte, 0 | 8..=13 | 27);
        other += chunk.valid().as_bytes().iter().filter(|byte| is_control(byte)).count();
        other += chunk.invalid().len();
    }
    other > bytes.len() / NO_TEXT_SHARE
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECRETS: [&str; 6] = [
        "password=hunter2hunter2",
        "Authorization: Bearer s3cr3tTokenValue1",
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "sk-proj-abcdefghijklmnop1234567890",
        "postgres://user:pa55word@db.example/x",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\nVJTUt9Us8cKjMzEfYyjiWA4R\n-----END PRIVATE KEY-----",
    ];

    fn through(pieces: impl IntoIterator<Item = Vec<u8>>, window: usize, overlap: usize) -> Vec<u8> {
        let mut masking = Masking::with_window(Redactor::standard(), window, overlap);
        let mut out = Vec::new();
        for piece in pieces {
            masking.push(&piece, &mut |bytes| out.extend_from_slice(bytes));
        }
        masking.finish(&mut |bytes| out.extend_from_slice(bytes));
        out
    }

    fn whole(text: &str) -> String {
        Redactor::standard().redact_text(text).map_or_else(|| text.to_owned(), |redacted| redacted.text)
    }

    proptest! {
        #[test]
        fn a_stream_comes_out_as_its_whole_text(
            parts in prop::collection::vec(
                prop_oneof![
                    4 => "[a-z漢 ]{0,60}\n",
                    1 => "[a-z]{0,90} ",
                    2 => (0..SECRETS.len()).prop_map(|at| format!("{}\n", SECRETS[at])),
                ],
                0..60,
            ),
            piece in 1_usize..700,
        ) {
            let text = parts.concat();
            let pieces = text.as_bytes().chunks(piece).map(<[u8]>::to_vec);
            let out = through(pieces, 1_024, 384);
            prop_assert_eq!(String::from_utf8(out).unwrap(), whole(&text));
        }

        #[test]
        fn what_is_no_text_comes_out_as_it_is(
            bytes in prop::collection::vec(any::<u8>(), 0..5_000), piece in 1_usize..700,
        ) {
            // Random bytes of which half are no text; no window of them is one by chance.
            let bytes: Vec<u8> = bytes.iter().flat_map(|byte| [0xff, *byte]).collect();
            let out = through(bytes.chunks(piece).map(<[u8]>::to_vec), 1_024, 384);
            prop_assert_eq!(out, bytes);
        }
    }

    #[test]
    fn bytes_that_are_no_text_hide_no_secret() {
        for around in [&b"\xff"[..], b"\0", b"\xe6\xbc", b"\x1b[0m"] {
            let filler = vec![b'.'; 40];
            let output = [&filler[..], around, b"\npassword=hunter2hunter2\n", around, &filler].concat();
            let out = through([output], 1_024, 384);
            let text = String::from_utf8_lossy(&out).into_owned();
            assert!(!text.contains("hunter2") && text.contains("[redacted:password:"), "{text:?}");
            assert!(out.windows(around.len()).filter(|window| window == &around).count() >= 2);
        }
    }

    #[test]
    fn one_long_line_is_masked_too() {
        let text = "x".repeat(3_000) + " password=hunter2hunter2 " + &"y".repeat(3_000);
        let out = through(text.as_bytes().chunks(100).map(<[u8]>::to_vec), 1_024, 384);
        assert_eq!(String::from_utf8(out).unwrap(), whole(&text));
    }

    #[test]
    fn held_bytes_are_bounded() {
        let mut masking = Masking::with_window(Redactor::standard(), 1_024, 384);
        for _ in 0..1_000 {
            masking.push(&[b'x'; 333], &mut |_| {});
            assert!(masking.held.len() < 1_024);
        }
    }
}
