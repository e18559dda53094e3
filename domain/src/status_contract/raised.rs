//! What a model is told when a tool did not return but broke.

use serde_json::{Map, Value};

use super::{SubagentStatus, TaskOutcome};
use crate::{limits::ERROR_DETAIL_CHARS_MAX, tool_spec::TASK_TOOL};

/// Ends a detail that was cut.
const CUT_MARK: &str = "...";

/// The message that takes the place of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct RaisedMessage {
    /// What the model reads.
    pub text: String,
    /// The status contract's metadata for `task`; empty for any other tool (facts §4.2).
    pub metadata: Map<String, Value>,
}

/// Words the failure of a tool that broke: the kind of error, its detail within its bound, and
/// what the model can do now.
pub fn raised_message(tool_name: &str, error_kind: &str, detail: &str) -> RaisedMessage {
    let failure = sentence(format!("{error_kind}: {}", bounded(detail.trim())));
    if tool_name == TASK_TOOL {
        let outcome = TaskOutcome::new(SubagentStatus::Failed, Some(failure.clone()));
        let advice = "Carry on with what you have, or do this part yourself.";
        return RaisedMessage { text: format!("{} {advice}", outcome.text()), metadata: outcome.metadata() };
    }
    let advice = "Carry on with what you have, or choose another tool.";
    let text = format!("Error: the tool {tool_name:?} broke with {failure} {advice}");
    RaisedMessage { text, metadata: Map::new() }
}

fn sentence(text: String) -> String {
    if text.ends_with(['.', '!', '?']) { text } else { text + "." }
}

fn bounded(detail: &str) -> String {
    if detail.chars().count() <= ERROR_DETAIL_CHARS_MAX {
        return detail.to_owned();
    }
    let kept: String = detail.chars().take(ERROR_DETAIL_CHARS_MAX - CUT_MARK.len()).collect();
    kept + CUT_MARK
}
