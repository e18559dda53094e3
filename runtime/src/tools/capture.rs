//! One bound for every text that a tool gives to a model: head, a mark that says how much is
//! missing, and tail (chain facts §2.3).
//!
//! Takes any amount of output in bounded memory. All of it is counted and digested, and where there
//! is a keeper a large output is kept whole, so that an output of any size has one clear outcome.

use domain::{
    kept_output::KeptOutput,
    limits::{TOOL_OUTPUT_CHARS_MAX, TOOL_OUTPUT_HEAD_CHARS, TOOL_OUTPUT_TAIL_CHARS},
};
use eventlog::{BlobError, BlobWriter, Kept};
use sha2::{Digest, Sha256};

use super::{OutputKeeper, ToolContext, ToolOutcome, ToolOutput};

/// What stands around a captured output.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Frame<'a> {
    /// Goes before it.
    pub(crate) before: &'a str,
    /// Goes after it.
    pub(crate) after: &'a str,
    /// How to get at what is left out, for the mark.
    pub(crate) advice: &'a str,
}

/// Output that is being taken.
#[derive(Default)]
pub(crate) struct Capture {
    whole: Whole,
    bytes: u64,
    chars: usize,
    /// The first `TOOL_OUTPUT_CHARS_MAX` characters.
    first: String,
    first_chars: usize,
    /// The newest characters after those; at least `TOOL_OUTPUT_TAIL_CHARS` of them.
    last: String,
    /// The beginning of a character whose other bytes have not arrived.
    undecoded: Vec<u8>,
}

/// What becomes of all of it.
enum Whole {
    /// It is digested as it is.
    Digested(Sha256),
    /// Its secrets are masked as in events, that is digested, and kept if it is large.
    Kept(Box<BlobWriter>),
}

impl Default for Whole {
    fn default() -> Self {
        Self::Digested(Sha256::new())
    }
}

impl Capture {
    /// Takes a whole text.
    pub(crate) fn of(text: &str) -> Self {
        let mut capture = Self::default();
        capture.push(text);
        capture
    }

    /// For a call, with its keeper.
    pub(crate) fn within(context: &ToolContext) -> Self {
        Self::kept_by(context.keeper.as_ref())
    }

    fn kept_by(keeper: Option<&OutputKeeper>) -> Self {
        let whole = keeper.map_or_else(Whole::default, |keeper| Whole::Kept(Box::new(keeper.begin())));
        Self { whole, ..Self::default() }
    }

    /// Takes text.
    pub(crate) fn push(&mut self, text: &str) {
        self.whole(text.as_bytes());
        self.keep_text(text);
    }

    /// Takes bytes. What is not UTF-8 is replaced in the text.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.whole(bytes);
        self.keep(bytes);
    }

    fn whole(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        match &mut self.whole {
            Whole::Digested(hash) => hash.update(bytes),
            Whole::Kept(writer) => writer.write(bytes),
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let mut input = std::mem::take(&mut self.undecoded);
        input.extend_from_slice(bytes);
        let mut rest = input.as_slice();
        while let Err(error) = std::str::from_utf8(rest) {
            let (valid, from) = rest.split_at(error.valid_up_to());
            self.keep_text(std::str::from_utf8(valid).unwrap_or_default());
            let Some(bad) = error.error_len() else {
                self.undecoded = from.to_vec();
                return;
            };
            self.keep_text("\u{FFFD}");
            rest = from.get(bad..).unwrap_or_default();
        }
        self.keep_text(std::str::from_utf8(rest).unwrap_or_default());
    }

    fn keep_text(&mut self, text: &str) {
        let room = TOOL_OUTPUT_CHARS_MAX - self.first_chars;
        let (now, later) = split_at_char(text, room);
        let now_chars = now.chars().count();
        let later_chars = later.chars().count();
        self.chars += now_chars + later_chars;
        self.first.push_str(now);
        self.first_chars += now_chars;
        self.last.push_str(later);
        // Cut only now and then, so that many small pieces cost no more than a few large ones.
        const LAST_BYTES_MAX: usize = 16 * TOOL_OUTPUT_TAIL_CHARS;
        if self.last.len() > LAST_BYTES_MAX {
            self.last = last_chars(&self.last, TOOL_OUTPUT_TAIL_CHARS).to_owned();
        }
    }

    /// The number of bytes that were taken.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bounded text within its frame. The frame is part of neither count nor digest. A large
    /// output is on disk when this returns: call it where a sync may take its time.
    pub(crate) fn finish(mut self, outcome: ToolOutcome, frame: Frame<'_>) -> ToolOutput {
        if !self.undecoded.is_empty() {
            self.undecoded.clear();
            self.keep_text("\u{FFFD}");
        }
        let ended = std::mem::take(&mut self.whole).finish(self.bytes);
        let framed = frame.before.chars().count() + frame.after.chars().count();
        let room = TOOL_OUTPUT_CHARS_MAX.saturating_sub(framed);
        let is_truncated = self.chars > room;
        let kept = if is_truncated { self.cut(room, &ended.told(frame.advice)) } else { self.first };
        ToolOutput {
            text: format!("{}{kept}{}", frame.before, frame.after),
            outcome,
            output_bytes: ended.bytes,
            output_sha256: ended.sha256,
            is_truncated,
            kept: ended.kept,
        }
    }

    /// Head, mark and tail; where the mark alone is too long for the room, a plain beginning.
    fn cut(&self, room: usize, advice: &str) -> String {
        let kept = TOOL_OUTPUT_HEAD_CHARS + TOOL_OUTPUT_TAIL_CHARS;
        let mark =
            format!("\n\n[... {} characters left out; {advice} ...]\n\n", self.chars - kept.min(self.chars));
        if kept + mark.chars().count() > room {
            return split_at_char(&self.first, room).0.to_owned();
        }
        let head = split_at_char(&self.first, TOOL_OUTPUT_HEAD_CHARS).0;
        let newest = last_chars(&self.last, TOOL_OUTPUT_TAIL_CHARS);
        let missing = TOOL_OUTPUT_TAIL_CHARS - newest.chars().count();
        [head, &mark, last_chars(&self.first, missing), newest].concat()
    }
}

/// What became of a whole output.
struct Ended {
    bytes: u64,
    sha256: String,
    kept: Option<KeptOutput>,
    /// It was to be kept and could not.
    is_lost: bool,
}

impl Whole {
    fn finish(self, bytes: u64) -> Ended {
        let Kept { whole, blob } = match self {
            Self::Digested(hash) => {
                let sha256 = hex::encode(hash.finalize());
                return Ended { bytes, sha256, kept: None, is_lost: false };
            }
            Self::Kept(writer) => writer.finish(),
        };
        let (bytes, sha256) = (whole.bytes, whole.sha256.to_string());
        let (kept, is_lost) = match blob {
            Ok(blob) => {
                let kept = blob.map(|blob| KeptOutput {
                    sha256: blob.sha256.to_string(),
                    bytes: blob.bytes,
                    truncated: blob != whole,
                });
                (kept, false)
            }
            Err(BlobError::NoFolder) => (None, false),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, bytes, "the whole of an output could not be kept");
                (None, true)
            }
        };
        Ended { bytes, sha256, kept, is_lost }
    }
}

impl Ended {
    /// The advice, after what is to be said of the whole output.
    fn told(&self, advice: &str) -> String {
        let bytes = self.bytes;
        match &self.kept {
            Some(kept) => {
                let path = kept.path();
                let how = format!("as {path}, which read_file reads by start_line and end_line; {advice}");
                match kept {
                    KeptOutput { truncated: false, .. } => format!("all {bytes} bytes are kept {how}"),
                    KeptOutput { truncated: true, bytes: first, .. } => {
                        format!("the first {first} of {bytes} bytes are kept {how}")
                    }
                }
            }
            None if self.is_lost => format!("the whole could not be kept; {advice}"),
            None => advice.to_owned(),
        }
    }
}

/// Bounds a whole text in the same way. The advice says how to get at what is left out.
pub fn bound(text: &str, advice: &str) -> ToolOutput {
    bound_by(None, text, advice)
}

/// The same for a call, whose large outputs are kept.
pub(crate) fn bound_in(context: &ToolContext, text: &str, advice: &str) -> ToolOutput {
    bound_by(context.keeper.as_ref(), text, advice)
}

/// The same with a keeper.
pub(crate) fn bound_by(keeper: Option<&OutputKeeper>, text: &str, advice: &str) -> ToolOutput {
    let mut capture = Capture::kept_by(keeper);
    capture.push(text);
    capture.finish(ToolOutcome::Ok, Frame { advice, ..Frame::default() })
}

fn split_at_char(text: &str, chars: usize) -> (&str, &str) {
    // A text has at most as many characters as bytes.
    if text.len() <= chars {
        return (text, "");
    }
    let at = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    text.split_at(at)
}

fn last_chars(text: &str, chars: usize) -> &str {
    match chars.checked_sub(1) {
        None => "",
        Some(before) => {
            text.char_indices().rev().nth(before).map_or(text, |(at, _)| text.get(at..).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn at_exactly_the_limit_nothing_is_cut() {
        let text = "漢".repeat(TOOL_OUTPUT_CHARS_MAX);
        let output = bound(&text, "look closer");
        assert_eq!((output.text.as_str(), output.is_truncated), (text.as_str(), false));
        assert_eq!(output.output_bytes, 90_000);
    }

    // Chain facts §2.3: 40 000 characters become head, mark and tail.
    #[test]
    fn above_the_limit_head_and_tail_stay_and_the_mark_counts_the_rest() {
        let text: String = ('a'..='z').cycle().take(40_000).collect();
        let output = bound(&text, "look closer");
        let mark = "\n\n[... 29000 characters left out; look closer ...]\n\n";
        let (head, tail) = output.text.split_once(mark).unwrap();
        assert_eq!((head.len(), tail.len()), (TOOL_OUTPUT_HEAD_CHARS, TOOL_OUTPUT_TAIL_CHARS));
        assert!(text.starts_with(head) && text.ends_with(tail) && output.is_truncated);
        assert_eq!(output.output_sha256, hex::encode(Sha256::digest(text.as_bytes())));
    }

    #[test]
    fn an_endless_advice_gives_a_plain_beginning() {
        let output = bound(&"x".repeat(40_000), &"y".repeat(40_000));
        assert_eq!(output.text, "x".repeat(TOOL_OUTPUT_CHARS_MAX));
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_still_counted() {
        let mut capture = Capture::default();
        for piece in [&b"a\xff"[..], &b"\xe6\xbc"[..], &b"\xa2b\xe6"[..]] {
            capture.take(piece);
        }
        let output = capture.finish(ToolOutcome::Ok, Frame::default());
        assert_eq!((output.text.as_str(), output.output_bytes), ("a\u{FFFD}漢b\u{FFFD}", 7));
    }

    proptest! {
        // Field report 91: cuts at limit -3 … +3 over 4-byte characters and combining marks.
        #[test]
        fn no_cut_splits_a_character_or_is_longer_than_the_limit(
            alphabet in "[a\u{1F600}\u{0301}漢]{3,7}", delta in -3_i64..=3, piece in 1_usize..9_999,
            after in "[a漢]{0,20}",
        ) {
            let length = usize::try_from(TOOL_OUTPUT_CHARS_MAX as i64 + delta).unwrap();
            let text: String = alphabet.chars().cycle().take(length).collect();
            let mut capture = Capture::default();
            for bytes in text.as_bytes().chunks(piece) {
                capture.take(bytes);
            }
            let output = capture.finish(ToolOutcome::Ok, Frame { after: &after, ..Frame::default() });
            let whole = length + after.chars().count();
            prop_assert_eq!(output.is_truncated, whole > TOOL_OUTPUT_CHARS_MAX);
            prop_assert!(output.text.chars().count() <= TOOL_OUTPUT_CHARS_MAX);
            let is_whole = !output.text.contains(char::REPLACEMENT_CHARACTER);
            prop_assert!(output.text.ends_with(&after) && is_whole);
            prop_assert_eq!(output.output_bytes, text.len() as u64);
        }
    }
}
