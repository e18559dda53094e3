//! The arguments of the `task` tool (facts §4.1).

use domain::limits::PROMPT_CHARS_MAX;
use serde::Deserialize;
use serde_json::{Map, Value};

/// What the lead asks for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskArgs {
    /// What it calls the task, for people.
    pub(crate) description: String,
    /// What the subagent is told.
    pub(crate) prompt: String,
    /// The kind of subagent, by exact name.
    pub(crate) subagent_type: String,
    /// What must hold for the work to be accepted.
    #[serde(default)]
    pub(crate) acceptance_criteria: Vec<String>,
}

/// Checks the arguments; the error says which one and what to do.
pub(crate) fn parse(args: &Map<String, Value>) -> Result<TaskArgs, String> {
    let parsed: TaskArgs = serde_json::from_value(Value::Object(args.clone())).map_err(|error| {
        format!("invalid arguments ({error}); task takes description, prompt and subagent_type, and may take acceptance_criteria")
    })?;
    let length = parsed.prompt.chars().count();
    if parsed.prompt.trim().is_empty() {
        return Err("the prompt is empty; say what the subagent is to do".to_owned());
    }
    if length > PROMPT_CHARS_MAX {
        return Err(format!(
            "the prompt has {length} characters, and at most {PROMPT_CHARS_MAX} fit; write long material to a file and name it"
        ));
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(args: Value, expected: Result<(), &str>) {
        let Value::Object(args) = args else { panic!("not an object") };
        let parsed = parse(&args).map(drop);
        match (parsed, expected) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (parsed, expected) => panic!("{parsed:?}, not {expected:?}"),
        }
    }

    #[test]
    fn a_task_names_itself_its_prompt_and_its_type() {
        let good = json!({"description": "d", "prompt": "p", "subagent_type": "bash"});
        check(good, Ok(()));
        check(json!({"description": "d", "prompt": "p"}), Err("missing field `subagent_type`"));
        check(json!({"description": "d", "prompt": 1, "subagent_type": "x"}), Err("invalid type: integer"));
        check(json!({"description": "d", "prompt": " ", "subagent_type": "x"}), Err("the prompt is empty"));
        check(
            json!({"description": "d", "prompt": "p", "subagent_type": "x", "model": "m"}),
            Err("unknown field `model`"),
        );
        let long = "p".repeat(PROMPT_CHARS_MAX + 1);
        check(json!({"description": "d", "prompt": long, "subagent_type": "x"}), Err("at most 200000 fit"));
    }
}
