//! Reads out of a result's own words what it is worth. The first rule that fits decides, and words
//! are looked for in any case; a number counts only where it stands alone.

use serde_json::Value;

use super::{MetaSource, ToolErrorType, ToolMeta, web_page};
use crate::message::{ToolMessage, ToolStatus};

/// How a tool begins that says that it failed.
const ERROR_PREFIX: &str = "error:";
/// Values of `error` in a JSON object that mean that there is none.
const NO_ERRORS: [&str; 8] = ["none", "null", "false", "no", "ok", "success", "n/a", ""];
/// What says that only a part was found, or nothing.
const PARTIAL_MARKS: [&str; 7] = [
    "partial results",
    "limited results",
    "truncated",
    "results may be incomplete",
    "no results found",
    "no content found",
    "no images found",
];
/// What an error is about, by its words; the first that fits decides.
const RULES: [(ToolErrorType, &[&str]); 8] = [
    (ToolErrorType::Auth, &["401", "403", "unauthorized", "authentication", "invalid api key"]),
    (ToolErrorType::RateLimited, &["rate limit", "rate limited", "rate_limit"]),
    (
        ToolErrorType::Transient,
        &["timeout", "timed out", "connection", "network error", "temporarily unavailable"],
    ),
    (
        ToolErrorType::Config,
        &["not configured", "not installed", "missing required", "disabled", "no api key"],
    ),
    (ToolErrorType::Permission, &["permission denied", "access denied", "path traversal", "forbidden"]),
    (ToolErrorType::NoResults, &["no results", "no content found", "no images found"]),
    (ToolErrorType::NotFound, &["not found", "no such file", "does not exist", "404"]),
    (ToolErrorType::Internal, &["unexpected error", "internal error", "500"]),
];

/// What a result is worth, by how the tool returned and by what it says.
pub fn analyse(result: &ToolMessage) -> ToolMeta {
    let text = result.content.trim();
    let lower = text.to_lowercase();
    let is_marked = lower.starts_with(ERROR_PREFIX);
    if result.status == ToolStatus::Error && !is_marked {
        return ToolMeta::error(failed(text, &lower), MetaSource::ToolReturn);
    }
    if is_marked {
        return ToolMeta::error(classify(&lower), MetaSource::ContentAnalysis);
    }
    if let Some(error) = object(text).as_ref().and_then(error_in) {
        return ToolMeta::error(classify(&error.to_lowercase()), MetaSource::ContentAnalysis);
    }
    if let Some(line) = web_page::error_title(&result.name, &lower) {
        return ToolMeta::error(classify(line), MetaSource::ContentAnalysis);
    }
    let is_partial = PARTIAL_MARKS.iter().any(|mark| lower.contains(mark));
    if is_partial { ToolMeta::PARTIAL } else { ToolMeta::SUCCESS }
}

/// What a result is about that the tool itself calls an error. An object without an error in it has
/// numbers and words of its own, which say nothing.
fn failed(text: &str, lower: &str) -> ToolErrorType {
    match object(text) {
        Some(object) => match error_in(&object) {
            Some(error) => classify(&error.to_lowercase()),
            None => ToolErrorType::Unknown,
        },
        None => classify(lower),
    }
}

fn object(text: &str) -> Option<Value> {
    text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
}

/// The error that an object tells of.
fn error_in(object: &Value) -> Option<String> {
    let error = match object.get("error")? {
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => return None,
        Value::Object(fields) if fields.is_empty() => return None,
        Value::Number(number) if number.as_f64() == Some(0.0) => return None,
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            other.to_string()
        }
    };
    (!NO_ERRORS.contains(&error.trim().to_lowercase().as_str())).then_some(error)
}

/// `lower` is in lower case.
fn classify(lower: &str) -> ToolErrorType {
    let fits = |word: &&str| {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { has_number(lower, word) } else { lower.contains(*word) }
    };
    let rule = RULES.iter().find(|(_, words)| words.iter().any(fits));
    rule.map_or(ToolErrorType::Unknown, |(error_type, _)| *error_type)
}

/// Whether a number stands alone somewhere in a text.
fn has_number(text: &str, number: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| word == number)
}
