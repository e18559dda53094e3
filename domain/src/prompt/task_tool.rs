//! The `task` tool, as a lead's model sees it.

use serde_json::json;

use super::routing::ROUTING_POLICY;
use crate::{
    limits::{ACCEPTANCE_CRITERIA_MAX, ACCEPTANCE_CRITERION_CHARS_MAX},
    tool_spec::{TASK_TOOL, ToolSpec},
};

/// The tool by which a lead delegates to one of the types (facts §4.1).
pub fn task_tool(types: &[&str]) -> ToolSpec {
    let text = |description: String| json!({"type": "string", "description": description});
    let parameters = json!({
        "type": "object",
        "properties": {
            "description": text("Three to five words that name the task, for people who watch.".to_owned()),
            "prompt": text(PROMPT.to_owned()),
            "subagent_type": text(format!("The type of subagent: {}.", types.join(", "))),
            "acceptance_criteria": {"type": "array", "items": {"type": "string"}, "description": criteria_text()},
        },
        "required": ["description", "prompt", "subagent_type"],
        "additionalProperties": false,
    });
    ToolSpec { name: TASK_TOOL.to_owned(), description: format!("{PURPOSE} {ROUTING_POLICY}"), parameters }
}

const PURPOSE: &str = "\
Hands a task to a subagent, which works on it with a context of its own, and returns its report when it has ended. \
There is nothing to poll.";

const PROMPT: &str = "\
The whole task, for a reader who knows nothing of this conversation: the aim, the paths and facts that matter, what may \
not be touched, and what the report has to hold.";

fn criteria_text() -> String {
    format!(
        "What has to hold for the work to be accepted; at most {ACCEPTANCE_CRITERIA_MAX}, each at most \
         {ACCEPTANCE_CRITERION_CHARS_MAX} characters. {CRITERIA_USE}"
    )
}

const CRITERIA_USE: &str = "They are passed on to the subagent; judge its report by them yourself.";
