//! `write_file`: makes, replaces or extends a file.

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

pub(super) struct WriteFile;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
    #[serde(default)]
    append: Option<bool>,
}

impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write_file".to_owned(),
            description:
                "Write text to a file, replacing what was in it, or add to its end with append. Missing \
                          folders are made."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "File, relative to the workspace or under /mnt/user-data"},
                    "content": {"type": "string", "description": "The text, exactly as it is to be stored"},
                    "append": {"type": "boolean", "description": "Add to the end instead of replacing; default false"},
                },
                "required": ["path", "content"],
                "additionalProperties": false,
            }),
        }
    }

    /// Replacing twice is replacing once; adding twice is not.
    fn side_effect(&self, args: &Map<String, Value>) -> SideEffect {
        match args.get("append") {
            None | Some(Value::Null | Value::Bool(false)) => SideEffect::Idempotent,
            Some(
                Value::Bool(true) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_),
            ) => SideEffect::Effectful,
        }
    }

    fn run<'a>(
        &'a self,
        context: &'a ToolContext,
        args: &'a Map<String, Value>,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(on_blocking_thread("write_file", context, args, write))
    }
}

fn write(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolFailure> {
    let path = context.folders.resolve(&arguments.path)?;
    let length = arguments.content.len();
    let did = if arguments.append == Some(true) {
        text_file::append(context, &path, &arguments.content)?;
        "appended"
    } else {
        text_file::replace(context, &path, &arguments.content)?;
        "wrote"
    };
    Ok(bound(&format!("{did} {length} bytes to {}", path.shown), ""))
}
