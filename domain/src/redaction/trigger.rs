//! The quick look: whether a text can hold a secret at all.
//!
//! It reads JSON text with its escapes and plain text alike, and says yes to everything that the
//! rules might find. It is one automaton, so ordinary text costs about a nanosecond per byte.

use regex::bytes::{Regex, RegexBuilder};

/// Words that a secret's name ends with.
pub(super) const NAME_WORDS: &str = "secrets?|token|passw(?:or)?ds?|passphrase|passcode|pwd|\
     credentials?|authorization|auth|jwt|[a-z0-9_.-](?:pass|keys?)";

/// Beginnings of keys whose form is known, without those that `pattern` looks at more closely.
const KNOWN: &str = concat!(
    r"sk-[A-Za-z0-9_-]{12}|[sr]k_(?:live|test)_|gh[pousr]_[A-Za-z0-9]{12}|github_pat_|",
    r"gl[a-z]{2,6}-[A-Za-z0-9_-]{12}|xox[a-z]-|xapp-|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{20}|",
    r"ya29\.|GOCSPX-|npm_[A-Za-z0-9]{12}|pypi-[A-Za-z0-9_-]{20}|SG\.[A-Za-z0-9_-]{12}|hf_[A-Za-z0-9]{12}|",
    r"dop_v1_|shp[a-z]{2}_|dckr_pat_|gsk_[A-Za-z0-9]{12}|xai-[A-Za-z0-9]{12}|pplx-[A-Za-z0-9]{12}|",
    r"nvapi-|rubygems_|gls[a-z]_|whsec_|sntry[su]_|lin_api_|hvs\.|AGE-SECRET-KEY-|eyJ[A-Za-z0-9_-]{8}",
);

/// One automaton for everything, and one for the keys alone.
#[derive(Debug)]
pub(super) struct Trigger {
    any: Regex,
    known_key: Regex,
}

impl Trigger {
    pub(super) fn new() -> Self {
        let gap = r#"(?:[\\"'`\x20\t\])]|\\[rnt])*"#;
        let any = [
            format!(r"(?i:(?:{NAME_WORDS})(?:[_-]?[0-9]{{1,3}})?{gap}[:=>])"),
            format!(r"(?i:--[a-z0-9_.-]*(?:{NAME_WORDS})(?:[_-]?[0-9]{{1,3}})?(?:\x20|\t|\\t))"),
            r"(?i:(?:bearer|basic)(?:\x20|\t|\\t)+[a-z0-9._~+/=-]{6})".to_owned(),
            r#":\\*/\\*/[^\s/@"'?#:]*:[^\s"'@]+@"#.to_owned(),
            r"-----(?:BEGIN|END)\x20".to_owned(),
            // An ASCII character that did not need an escape may be part of any of the above.
            r"\\u00[2-7]".to_owned(),
            KNOWN.to_owned(),
        ];
        Self { any: compiled(&any.join("|")), known_key: compiled(KNOWN) }
    }

    /// Whether there may be any secret.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.any.is_match(text.as_bytes())
    }

    /// Whether there may be a key whose form is known.
    pub(super) fn has_known_key(&self, text: &str) -> bool {
        self.known_key.is_match(text.as_bytes())
    }
}

fn compiled(pattern: &str) -> Regex {
    let built = RegexBuilder::new(pattern).unicode(false).build();
    #[expect(clippy::expect_used, reason = "the pattern is fixed, and every test uses it")]
    built.expect("the pattern is a regular expression")
}
