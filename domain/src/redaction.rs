//! Secrets in text that is about to be written down for ever.
//!
//! A secret is masked where it stands, with a mark that says so:
//! `[redacted:KIND:sha256=ab12cd34]`. What is around it stays as it is, byte by byte. What is looked
//! for:
//!
//! - authorization headers, and bearer and basic credentials anywhere;
//! - assignments whose name says secret, of any vendor, in any notation (`x-api-key: …`,
//!   `"clientSecret": "…"`, `DB_PASSWORD=…`, `--token …`), with a value that looks like one;
//! - keys whose form is known (`sk-…`, `ghp_…`, `AKIA…`), JSON Web Tokens, and the secret key that
//!   stands beside an AWS access key;
//! - private keys in PEM blocks, also when one end is cut off;
//! - passwords in addresses;
//! - what the owner of the server describes.
//!
//! It errs on the side of masking where a name says secret, and of leaving alone where only the
//! value could say so: digests, UUIDs, ids, paths and code are ordinary text. What it does not know
//! it cannot mask, so it is no reason to be careless with secrets.

mod assignment;
mod decoded;
mod json_text;
mod mark;
mod names;
mod pattern;
mod settings;
mod span;
#[cfg(test)]
mod tests;
mod trigger;
mod value;

use std::sync::{Arc, LazyLock};

use regex::Regex;

pub use self::settings::{InvalidRedaction, RedactionSettings};
use self::{
    assignment::Assignments,
    decoded::Decoded,
    json_text::{Scalar, ScalarKind},
    mark::Marks,
    pattern::Patterns,
    span::{Found, Kind},
    trigger::Trigger,
};

/// How often a text is looked through at most. A mark may bring two texts together that were apart
/// and now look like an assignment; a second look settles that.
const PASSES_MAX: usize = 4;
/// How many times over a string may have been written into another with its ordinary characters as
/// escapes (`\\u0022`), as some programs do. Other nesting has no limit.
const ESCAPED_DEPTH_MAX: usize = 4;

/// Masks secrets. Making one compiles its patterns; using it is cheap and shared between threads.
#[derive(Debug)]
pub struct Redactor {
    enabled: bool,
    rules: &'static Rules,
    extra: Vec<Regex>,
    allow: Vec<Regex>,
}

/// What every redactor looks for.
#[derive(Debug)]
struct Rules {
    trigger: Trigger,
    patterns: Patterns,
    assignments: Assignments,
    marks: Marks,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| Rules {
    trigger: Trigger::new(),
    patterns: Patterns::new(),
    assignments: Assignments::new(),
    marks: Marks::new(),
});

static STANDARD: LazyLock<Arc<Redactor>> = LazyLock::new(|| {
    Arc::new(Redactor { enabled: true, rules: &RULES, extra: Vec::new(), allow: Vec::new() })
});

/// A text with its secrets masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted {
    /// The text.
    pub text: String,
    /// How many masks were put in.
    pub masks: u32,
}

impl Redactor {
    /// Checks the settings and compiles their patterns.
    pub fn new(settings: &RedactionSettings) -> Result<Self, InvalidRedaction> {
        let (extra, allow) = settings.compile()?;
        Ok(Self { enabled: settings.enabled, rules: &RULES, extra, allow })
    }

    /// The redactor with the default settings.
    pub fn standard() -> Arc<Self> {
        Arc::clone(&STANDARD)
    }

    /// Masks the secrets in a text. None: there are none, and the text stays as it is.
    pub fn redact_text(&self, text: &str) -> Option<Redacted> {
        self.until_settled(text, |text| {
            if !self.may_have_secrets(text) {
                return None;
            }
            let edits = self.secrets_in(text).into_iter().map(|found| {
                let mark = mark::of(found.kind, text.get(found.range.clone()).unwrap_or_default());
                (found.range, mark)
            });
            span::splice(text, edits.collect())
        })
    }

    /// Masks the secrets in JSON text: in its strings, and in what stands under a name that says
    /// secret. Names stay, and so does every byte of what is not masked; the result is JSON. None:
    /// there are none. Text that is not JSON comes out as some text, with what was recognised masked.
    pub fn redact_json(&self, json: &str) -> Option<Redacted> {
        self.until_settled(json, |json| {
            if !self.may_have_secrets(json) {
                return None;
            }
            let mut edits = Vec::new();
            json_text::walk(json, &mut |scalar| self.mask_scalar(&scalar, &mut edits));
            span::splice(json, edits)
        })
    }

    fn until_settled(&self, text: &str, pass: impl Fn(&str) -> Option<Redacted>) -> Option<Redacted> {
        if !self.enabled {
            return None;
        }
        let mut redacted = pass(text)?;
        for _ in 1..PASSES_MAX {
            let Some(again) = pass(&redacted.text) else { break };
            redacted = Redacted { text: again.text, masks: redacted.masks + again.masks };
        }
        Some(redacted)
    }

    fn may_have_secrets(&self, text: &str) -> bool {
        !self.extra.is_empty() || self.rules.trigger.is_in(text)
    }

    fn mask_scalar(&self, scalar: &Scalar<'_>, edits: &mut Vec<(std::ops::Range<usize>, String)>) {
        let class = scalar.name.and_then(|name| names::class(&Decoded::of(name).text));
        match scalar.kind {
            ScalarKind::Number => {
                if class.is_some_and(|class| value::is_secret_number(class, scalar.raw)) {
                    let mark = mark::of(Kind::Password, scalar.raw);
                    edits.push((scalar.range(), format!("\"{mark}\"")));
                }
            }
            ScalarKind::Text => {
                if class.is_none() && !self.may_have_secrets(scalar.raw) {
                    return;
                }
                let decoded = Decoded::of(scalar.raw);
                let mut found = assignment::member(class, &decoded.text);
                self.collect(&decoded.text, &mut found, ESCAPED_DEPTH_MAX);
                for found in self.settle(&decoded.text, found) {
                    let secret = decoded.text.get(found.range.clone()).unwrap_or_default();
                    let mark = mark::of(found.kind, secret);
                    edits.push((decoded.raw_range(&found.range, scalar.at), mark));
                }
            }
        }
    }

    fn secrets_in(&self, text: &str) -> Vec<Found> {
        let mut found = Vec::new();
        self.collect(text, &mut found, ESCAPED_DEPTH_MAX);
        self.settle(text, found)
    }

    fn collect(&self, text: &str, found: &mut Vec<Found>, depth: usize) {
        if self.rules.trigger.is_in(text) {
            self.rules.patterns.collect(&self.rules.trigger, text, found);
            self.rules.assignments.collect(text, found);
        }
        for pattern in &self.extra {
            pattern::collect_custom(pattern, text, found);
        }
        if depth > 0 && text.contains("\\u00") {
            let inner = Decoded::of(text);
            let mut found_inside = Vec::new();
            self.collect(&inner.text, &mut found_inside, depth - 1);
            found.extend(
                found_inside
                    .into_iter()
                    .map(|found| Found { range: inner.raw_range(&found.range, 0), kind: found.kind }),
            );
        }
    }

    /// What is left when marks and allowed texts are taken out, in order and apart from each other.
    fn settle(&self, text: &str, mut found: Vec<Found>) -> Vec<Found> {
        if found.is_empty() {
            return found;
        }
        let marks = self.rules.marks.ranges(text);
        found.retain(|found| {
            let secret = text.get(found.range.clone()).unwrap_or_default();
            let is_of_a_mark =
                marks.iter().any(|mark| mark.start < found.range.start && found.range.start < mark.end);
            !is_of_a_mark && !self.allow.iter().any(|allowed| allowed.is_match(secret))
        });
        span::without(span::joined(found), &marks)
    }
}
