//! Secrets that are known by their own form.

use regex::Regex;

use super::{
    span::{Found, Kind},
    trigger::Trigger,
    value,
};

/// What may stand before a key: nothing that continues a word, but also the end of an escape, which
/// looks like one (`\n`, `%3D`, a colour).
const BEFORE: &str = r"(?:^|[^A-Za-z0-9]|\\+[bfnrt]|\\+u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}|\x1b\[[0-9;]*m)";
/// Credentials in a header: base64, a token, or either with its slashes escaped.
const CREDENTIALS: &str = r"(?:[A-Za-z0-9._~+/=-]|\\+/)+";
/// How far from an AWS access key its secret key is looked for, in bytes.
const AWS_SECRET_REACH: usize = 240;
/// Base64 characters that make a block more than the mention of its boundary.
const KEY_BODY_CHARS_MIN: usize = 16;
/// What a key has after its well-known beginning, at least.
const KNOWN_KEYS: &[&str] = &[
    r"sk-[A-Za-z0-9_-]{16,}",
    r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"gl(?:pat|dt|ft|soat|rt|cbt|ptt|agent|imt|oas|ffct)-[A-Za-z0-9_.-]{16,}",
    r"xox[a-z]-[A-Za-z0-9-]{10,}",
    r"xapp-[0-9]-[A-Za-z0-9-]{10,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"ya29\.[A-Za-z0-9_.-]{20,}",
    r"GOCSPX-[A-Za-z0-9_-]{20,}",
    r"npm_[A-Za-z0-9]{20,}",
    r"pypi-[A-Za-z0-9_-]{30,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"hf_[A-Za-z0-9]{20,}",
    r"dop_v1_[a-f0-9]{40,}",
    r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{20,}",
    r"dckr_pat_[A-Za-z0-9_-]{20,}",
    r"gsk_[A-Za-z0-9]{20,}",
    r"xai-[A-Za-z0-9]{20,}",
    r"pplx-[A-Za-z0-9]{20,}",
    r"nvapi-[A-Za-z0-9_-]{20,}",
    r"rubygems_[a-f0-9]{20,}",
    r"gls[a-z]_[A-Za-z0-9_]{20,}",
    r"whsec_[A-Za-z0-9+/=]{20,}",
    r"sntry[su]_[A-Za-z0-9_+/=-]{20,}",
    r"lin_api_[A-Za-z0-9]{20,}",
    r"hvs\.[A-Za-z0-9_-]{20,}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{40,}",
];

/// The patterns, compiled.
#[derive(Debug)]
pub(super) struct Patterns {
    known_key: Regex,
    jwt: Regex,
    private_key: Regex,
    end_of_private_key: Regex,
    credentials: Regex,
    url_password: Regex,
    aws_secret: Regex,
}

impl Patterns {
    pub(super) fn new() -> Self {
        let boundary = |word: &str| format!(r"-----{word} [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----");
        let (begin, end) = (boundary("BEGIN"), boundary("END"));
        let line_end = r"(?:[ \t\r\n]|\\+[nr]|\\)+";
        let base64 = r"[A-Za-z0-9+/=]|\\+/";
        Self {
            known_key: compiled(&format!("{BEFORE}({})", KNOWN_KEYS.join("|"))),
            jwt: compiled(&format!(
                r"{BEFORE}(eyJ[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]{{8,}}(?:\.[A-Za-z0-9_-]*){{0,4}})"
            )),
            private_key: compiled(&format!(r"{begin}(?:(?s:.)*?{end}|(?:{line_end}(?:{base64}){{1,100}})+)")),
            end_of_private_key: compiled(&format!(
                r"(?:(?:{base64}){{16,}}{line_end})+(?:{base64})*(?:{line_end})?{end}"
            )),
            credentials: compiled(&format!(
                r"(?i)(?:^|[^a-z0-9]|\\+[nrt])(?:bearer|basic)[ \t]+({CREDENTIALS})"
            )),
            url_password: compiled(
                r#"(?i)[a-z0-9]:(?:\\*/){2}[^\s/@"'<>?#:\[\]\\]*:((?:[^\s"'<>\\]|\\+/)+)@[a-z0-9\[._$%{-]"#,
            ),
            aws_secret: compiled(r"(?:^|[^A-Za-z0-9/+=])([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"),
        }
    }

    pub(super) fn collect(&self, trigger: &Trigger, text: &str, found: &mut Vec<Found>) {
        // What a pattern needs is looked for first: that costs next to nothing.
        if text.contains("PRIVATE KEY") {
            self.private_keys(text, found);
        }
        if text.contains("eyJ") {
            groups(&self.jwt, text, Kind::Jwt, found, |_| true);
        }
        if trigger.has_known_key(text) {
            groups(&self.known_key, text, Kind::ApiKey, found, is_known_key);
            self.aws_secrets(text, found);
        }
        groups(&self.credentials, text, Kind::Authorization, found, value::are_credentials);
        if text.contains('@') {
            groups(&self.url_password, text, Kind::UrlPassword, found, is_url_password);
        }
    }

    fn private_keys(&self, text: &str, found: &mut Vec<Found>) {
        for pattern in [&self.private_key, &self.end_of_private_key] {
            for block in pattern.find_iter(text) {
                if has_key_body(block.as_str()) {
                    found.push(Found { range: block.range(), kind: Kind::PrivateKey });
                }
            }
        }
    }

    /// An AWS secret key has no form of its own; it is known by its neighbour.
    fn aws_secrets(&self, text: &str, found: &mut Vec<Found>) {
        let is_access_key = |key: &Found| {
            let key = text.get(key.range.clone()).unwrap_or_default();
            key.starts_with("AKIA") || key.starts_with("ASIA")
        };
        let ends: Vec<usize> =
            found.iter().filter(|key| is_access_key(key)).map(|key| key.range.end).collect();
        for end in ends {
            let reach = (end + AWS_SECRET_REACH..=text.len())
                .chain([text.len()])
                .find(|at| text.is_char_boundary(*at));
            let after = text.get(end..reach.unwrap_or(text.len())).unwrap_or_default();
            let mut near = Vec::new();
            groups(&self.aws_secret, after, Kind::AwsSecretKey, &mut near, is_aws_secret);
            found.extend(
                near.into_iter()
                    .map(|Found { range, kind }| Found { range: range.start + end..range.end + end, kind }),
            );
        }
    }
}

/// Adds what a pattern of the owner matches: its first group, else all of it.
pub(super) fn collect_custom(pattern: &Regex, text: &str, found: &mut Vec<Found>) {
    for captures in pattern.captures_iter(text) {
        if let Some(secret) = captures.get(1).or_else(|| captures.get(0)).filter(|secret| !secret.is_empty())
        {
            found.push(Found { range: secret.range(), kind: Kind::Custom });
        }
    }
}

/// Compiles a pattern that is fixed in the code.
pub(super) fn compiled(pattern: &str) -> Regex {
    #[expect(clippy::expect_used, reason = "the patterns are fixed, and every test uses them")]
    Regex::new(pattern).expect("the pattern is a regular expression")
}

/// Adds the first group of every match that passes.
fn groups(pattern: &Regex, text: &str, kind: Kind, found: &mut Vec<Found>, passes: fn(&str) -> bool) {
    for captures in pattern.captures_iter(text) {
        if let Some(secret) = captures.get(1).filter(|secret| passes(secret.as_str())) {
            found.push(Found { range: secret.range(), kind });
        }
    }
}

/// Whether there is a key in the block, and not only a sentence about its boundaries.
fn has_key_body(block: &str) -> bool {
    let body: String = block.split("-----").filter(|part| !part.ends_with("PRIVATE KEY")).collect();
    if block.contains("-----END ") {
        return body.bytes().filter(u8::is_ascii_alphanumeric).count() >= KEY_BODY_CHARS_MIN;
    }
    body.split_whitespace().any(|line| line.len() >= KEY_BODY_CHARS_MIN)
}

/// `sk-` also begins names of styles: words after it are a key only behind a word of the vendors'.
fn is_known_key(key: &str) -> bool {
    const VENDOR_WORDS: [&str; 6] = ["live-", "test-", "proj-", "ant-", "or-", "svcacct-"];
    key.strip_prefix("sk-")
        .is_none_or(|rest| VENDOR_WORDS.iter().any(|word| rest.starts_with(word)) || !value::are_words(rest))
}

/// Everything but variables, and what is a port and a path: `http://host:80/me@home`.
fn is_url_password(password: &str) -> bool {
    let first = password.split('/').next().unwrap_or_default();
    let is_port = password.contains('/') && first.bytes().all(|byte| byte.is_ascii_digit());
    let is_variable = ["$", "{", "%(", "<", "*"].iter().any(|mark| password.starts_with(mark))
        && !password.chars().any(|c| c.is_ascii_lowercase() && !password.contains('{'));
    !is_port && !is_variable
}

fn is_aws_secret(text: &str) -> bool {
    let has = |is_kind: fn(&u8) -> bool| text.as_bytes().iter().any(is_kind);
    has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit)
}
