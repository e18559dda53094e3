//! Reads how a `task` call ended from a tool message's metadata. Text is never read for it.

use serde_json::{Map, Value};

use super::{
    ERROR_KEY, MODEL_NAME_KEY, RESULT_BRIEF_KEY, RESULT_SHA256_KEY, STATUS_KEY, STOP_REASON_KEY, StopReason,
    SubagentStatus, TOKEN_USAGE_KEY, writer::brief,
};
use crate::usage::Usage;

/// A status that older writers used for a subagent that ran out of turns.
const LEGACY_TURNS_REACHED: &str = "max_turns_reached";

/// Hexadecimal digits of a SHA-256.
const SHA256_DIGITS: usize = 64;

/// What the metadata of a `task` call's result says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// How it ended.
    pub status: SubagentStatus,
    /// The brief of its result; only of a completed task.
    pub result: Option<ResultBrief>,
    /// The brief of what went wrong; never of a completed task.
    pub error: Option<String>,
    /// The guard that ended it early.
    pub stop_reason: Option<StopReason>,
    /// Its model.
    pub model_name: Option<String>,
    /// Its tokens, where reported.
    pub usage: Option<Usage>,
}

/// What is known of a result: its brief, and how to recognise the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultBrief {
    /// The brief, never blank.
    pub text: String,
    /// SHA-256 of the whole result in lower-case hexadecimal, where the writer gave a proper one.
    pub sha256: Option<String>,
}

/// Reads the metadata. `None` when its status is missing or unknown; any other key that is
/// malformed is left out (facts §9.5).
pub fn read(metadata: &Map<String, Value>) -> Option<Reading> {
    let text = |key: &str| metadata.get(key).and_then(Value::as_str);
    let result = text(RESULT_BRIEF_KEY)
        .and_then(brief)
        .map(|brief| ResultBrief { text: brief, sha256: text(RESULT_SHA256_KEY).and_then(digest) });
    let (status, implied_reason) = status(text(STATUS_KEY)?, result.is_some())?;
    let is_completed = status == SubagentStatus::Completed;
    Some(Reading {
        status,
        result: result.filter(|_| is_completed),
        error: text(ERROR_KEY).and_then(brief).filter(|_| !is_completed),
        stop_reason: text(STOP_REASON_KEY).and_then(|name| name.parse().ok()).or(implied_reason),
        model_name: text(MODEL_NAME_KEY).map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned),
        usage: metadata.get(TOKEN_USAGE_KEY).and_then(Usage::from_untrusted),
    })
}

/// A legacy ending by turns counts as completed only when a result came of it.
fn status(name: &str, has_result: bool) -> Option<(SubagentStatus, Option<StopReason>)> {
    if name != LEGACY_TURNS_REACHED {
        return Some((name.parse().ok()?, None));
    }
    let status = if has_result { SubagentStatus::Completed } else { SubagentStatus::Failed };
    Some((status, Some(StopReason::TurnCapped)))
}

fn digest(text: &str) -> Option<String> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == SHA256_DIGITS && text.bytes().all(is_digit)).then(|| text.to_owned())
}
