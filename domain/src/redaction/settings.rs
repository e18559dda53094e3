//! What the owner of a server decides about masking.

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// Patterns in one list. Each is run over every text that is written.
const REDACTION_PATTERNS_MAX: usize = 64;
/// One pattern.
const REDACTION_PATTERN_CHARS_MAX: usize = 1_000;
/// One compiled pattern: a stop for counted repetitions within each other.
const COMPILED_BYTES_MAX: usize = 1024 * 1024;

/// The `redaction` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedactionSettings {
    /// Whether secrets are masked before anything is written.
    pub enabled: bool,
    /// Regular expressions of further secrets. The first group is the secret, else the whole match.
    pub extra_patterns: Vec<String>,
    /// Regular expressions of texts that are not secret although they look like it. One must
    /// describe the whole of what would be masked.
    pub allow: Vec<String>,
}

impl Default for RedactionSettings {
    fn default() -> Self {
        Self { enabled: true, extra_patterns: Vec::new(), allow: Vec::new() }
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} is {value}: it must be {allowed}")]
pub struct InvalidRedaction {
    /// The key below the section, such as `allow`.
    pub key: &'static str,
    /// What was given.
    pub value: String,
    /// What would have been accepted.
    pub allowed: String,
}

impl RedactionSettings {
    /// Both lists, compiled.
    pub(super) fn compile(&self) -> Result<(Vec<Regex>, Vec<Regex>), InvalidRedaction> {
        let extra = compile_all("extra_patterns", &self.extra_patterns, |pattern| pattern.to_owned())?;
        let allow = compile_all("allow", &self.allow, |pattern| format!("^(?:{pattern})$"))?;
        Ok((extra, allow))
    }
}

fn compile_all(
    key: &'static str,
    patterns: &[String],
    whole: impl Fn(&str) -> String,
) -> Result<Vec<Regex>, InvalidRedaction> {
    if patterns.len() > REDACTION_PATTERNS_MAX {
        let allowed = format!("at most {REDACTION_PATTERNS_MAX} patterns");
        return Err(InvalidRedaction { key, value: format!("a list of {}", patterns.len()), allowed });
    }
    patterns.iter().map(|pattern| compile(key, pattern, &whole)).collect()
}

fn compile(
    key: &'static str,
    pattern: &str,
    whole: impl Fn(&str) -> String,
) -> Result<Regex, InvalidRedaction> {
    let shown: String = pattern.chars().take(80).collect();
    let refuse = |allowed: String| InvalidRedaction { key, value: format!("{shown:?}"), allowed };
    if pattern.chars().count() > REDACTION_PATTERN_CHARS_MAX {
        return Err(refuse(format!("a pattern of at most {REDACTION_PATTERN_CHARS_MAX} characters")));
    }
    // Compiled on its own first, so that no pattern can close the group around it.
    let alone = RegexBuilder::new(pattern).size_limit(COMPILED_BYTES_MAX).build();
    let alone = alone.map_err(|error| refuse(format!("a regular expression ({})", reason(&error))))?;
    if alone.is_match("") {
        return Err(refuse("a regular expression that does not match nothing at all".to_owned()));
    }
    let regex = RegexBuilder::new(&whole(pattern)).size_limit(COMPILED_BYTES_MAX).build();
    regex.map_err(|error| refuse(format!("a regular expression ({})", reason(&error))))
}

/// What is wrong, in one line: the last of the error's lines says it.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
