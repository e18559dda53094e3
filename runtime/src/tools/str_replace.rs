//! `str_replace`: exchanges an exact piece of a file's text.

use domain::tool_spec::{SideEffect, ToolSpec};
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Tool, ToolContext, ToolOutput,
    capture::bound,
    file_call::{ToolFailure, on_blocking_thread},
    text_file,
};

pub(super) struct StrReplace;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    old_str: String,
    new_str: String,
    #[serde(default)]
    replace_all: Option<bool>,
}

impl Tool for StrReplace {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "str_replace".to_owned(),
            description:
                "Replace an exact text in a file. old_str must occur exactly once, white space and line \
                          breaks included; with replace_all every occurrence is replaced."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "File, relative to the workspace or under /mnt/user-data"},
                    "old_str": {"type": "string", "description": "The text as it stands in the file"},
                    "new_str": {"type": "string", "description": "The text that takes its place"},
                    "replace_all": {"type": "boolean", "description": "Replace every occurrence; default false"},
                },
                "required": ["path", "old_str", "new_str"],
                "additionalProperties": false,
            }),
        }
    }

    fn side_effect(&self, _args: &Map<String, Value>) -> SideEffect {
        SideEffect::Effectful
    }

    fn run<'a>(
        &'a self,
        context: &'a ToolContext,
        args: &'a Map<String, Value>,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(on_blocking_thread("str_replace", context, args, replace))
    }
}

fn replace(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolFailure> {
    let Arguments { path, old_str, new_str, replace_all } = arguments;
    if old_str.is_empty() {
        return Err(ToolFailure::said("old_str is empty; give the text that is to be replaced"));
    }
    let path = context.folders.resolve(&path)?;
    let text = text_file::read(context, &path)?;
    let count = text.matches(&old_str).count();
    match (count, replace_all == Some(true)) {
        (0, _) => {
            return Err(ToolFailure::said(format!(
                "old_str does not occur in {}; read the file and give the text exactly as it stands there",
                path.shown
            )));
        }
        (1, _) | (_, true) => {}
        (_, false) => {
            return Err(ToolFailure::said(format!(
                "old_str occurs {count} times in {}; give more of the text around it, or set replace_all",
                path.shown
            )));
        }
    }
    text_file::replace(context, &path, &text.replace(&old_str, &new_str))?;
    let noun = if count == 1 { "occurrence" } else { "occurrences" };
    Ok(bound(&format!("replaced {count} {noun} in {}", path.shown), ""))
}
