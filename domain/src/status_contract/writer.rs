//! Writes how a `task` call ended: the text for the lead, and the metadata for programs.

use serde_json::{Map, Value, json};

use super::{
    ERROR_KEY, MODEL_NAME_KEY, RESULT_BRIEF_KEY, RESULT_SHA256_KEY, STATUS_KEY, STOP_REASON_KEY, StopReason,
    SubagentStatus, TOKEN_USAGE_KEY,
};
use crate::{digest::sha256_hex, limits::BRIEF_CHARS_MAX, text, usage::Usage};

/// How a `task` call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOutcome {
    /// In one word.
    pub status: SubagentStatus,
    /// The whole result when it completed, else what went wrong. `None` when nothing was said,
    /// and then the status's own sentence stands for it.
    pub detail: Option<String>,
    /// The guard that ended it early.
    pub stop_reason: Option<StopReason>,
    /// Its model.
    pub model_name: Option<String>,
    /// Its tokens, where reported.
    pub usage: Option<Usage>,
}

impl TaskOutcome {
    /// An ending with nothing more to say of it.
    pub const fn new(status: SubagentStatus, detail: Option<String>) -> Self {
        Self { status, detail, stop_reason: None, model_name: None, usage: None }
    }

    /// The text of the tool message, never bounded (facts §9.4). Only completed and failed tasks
    /// show the guard that ended them.
    pub fn text(&self) -> String {
        let sentence = default_detail(self.status);
        let detail = self.error().filter(|detail| !detail.trim().is_empty() && *detail != sentence);
        let opening = sentence.trim_end_matches('.');
        match (self.status, detail) {
            (SubagentStatus::Completed, _) => {
                format!("{opening}{}. Result: {}", self.cap(), self.detail.as_deref().unwrap_or_default())
            }
            (SubagentStatus::Failed, None) => format!("{opening}{}.", self.cap()),
            (SubagentStatus::Failed, Some(detail)) => format!("{opening}{}. Error: {detail}", self.cap()),
            (SubagentStatus::Cancelled | SubagentStatus::TimedOut, Some(detail)) => {
                format!("{sentence} Error: {detail}")
            }
            (SubagentStatus::PollingTimedOut, Some(detail)) => detail.to_owned(),
            (
                SubagentStatus::Cancelled | SubagentStatus::TimedOut | SubagentStatus::PollingTimedOut,
                None,
            ) => sentence.to_owned(),
        }
    }

    /// The metadata of the tool message (facts §9.2). Briefs are bounded; the digest is of the
    /// whole result as it is, not of the trimmed one.
    pub fn metadata(&self) -> Map<String, Value> {
        let mut metadata = Map::new();
        let mut write = |key: &str, value: Value| metadata.insert(key.to_owned(), value);
        write(STATUS_KEY, json!(self.status.as_str()));
        if let Some((result, brief)) = self.result().and_then(|result| Some((result, brief(result)?))) {
            write(RESULT_BRIEF_KEY, json!(brief));
            write(RESULT_SHA256_KEY, json!(sha256_hex(result.as_bytes())));
        }
        if let Some(brief) = self.error().and_then(brief) {
            write(ERROR_KEY, json!(brief));
        }
        if let Some(stop_reason) = self.stop_reason {
            write(STOP_REASON_KEY, json!(stop_reason.as_str()));
        }
        if let Some(model_name) = self.model_name.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
            write(MODEL_NAME_KEY, json!(model_name));
        }
        if let Some(Usage { input_tokens, output_tokens, total_tokens, cache_read_tokens: _ }) = self.usage {
            let counts = json!({"input_tokens": input_tokens, "output_tokens": output_tokens, "total_tokens": total_tokens});
            write(TOKEN_USAGE_KEY, counts);
        }
        metadata
    }

    fn result(&self) -> Option<&str> {
        self.detail.as_deref().filter(|_| self.status == SubagentStatus::Completed)
    }

    /// What went wrong. A task that ended badly and said nothing has its status's own sentence.
    fn error(&self) -> Option<&str> {
        let is_error = self.status != SubagentStatus::Completed;
        is_error.then(|| self.detail.as_deref().unwrap_or(default_detail(self.status)))
    }

    fn cap(&self) -> String {
        self.stop_reason.map(|reason| format!(" (capped: {})", reason.label())).unwrap_or_default()
    }
}

/// What the lead reads when its own wait ran out (facts §4.5). The minutes are whole ones of the
/// subagent's time limit.
pub fn polling_timed_out_detail(timeout_seconds: u64, subagent_state: &str) -> String {
    format!(
        "Task polling timed out after {} minutes. The subagent was asked to stop and its result can no longer \
         be delivered. Status: {subagent_state}",
        timeout_seconds / 60
    )
}

/// The sentence of a status that nothing more was said of.
const fn default_detail(status: SubagentStatus) -> &'static str {
    match status {
        SubagentStatus::Completed => "Task Succeeded.",
        SubagentStatus::Failed => "Task failed.",
        SubagentStatus::Cancelled => "Task cancelled by user.",
        SubagentStatus::TimedOut => "Task timed out.",
        SubagentStatus::PollingTimedOut => "Task polling timed out.",
    }
}

/// The trimmed text within its bound; `None` when it is blank.
pub(super) fn brief(text: &str) -> Option<String> {
    let trimmed = text.trim();
    (!trimmed.is_empty()).then(|| text::head_and_tail(trimmed, BRIEF_CHARS_MAX).text)
}
