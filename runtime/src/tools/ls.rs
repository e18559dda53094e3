//! `ls`: what is in a folder.

use std::{ffi::OsString, fs, path::Path};

use domain::tool_spec::{SideEffect, ToolSpec};
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Tool, ToolContext, ToolOutput,
    capture::{bound, bound_in},
    file_call::{ToolFailure, on_blocking_thread},
};

/// Entries that are listed; the rest is counted.
const ENTRIES_SHOWN_MAX: usize = 200;
/// Entries that are looked at. A folder with more is better asked with glob.
const ENTRIES_READ_MAX: usize = 100_000;

pub(super) struct Ls;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
}

impl Tool for Ls {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "ls".to_owned(),
            description: format!(
                "List a folder: one entry per line, folders with a trailing slash, files with their size in \
                 bytes after a tab. At most {ENTRIES_SHOWN_MAX} entries are shown."
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Folder, relative to the workspace (\".\" is the workspace) or under /mnt/user-data"},
                },
                "required": ["path"],
                "additionalProperties": false,
            }),
        }
    }

    fn side_effect(&self, _args: &Map<String, Value>) -> SideEffect {
        SideEffect::ReadOnly
    }

    fn run<'a>(
        &'a self,
        context: &'a ToolContext,
        args: &'a Map<String, Value>,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(on_blocking_thread("ls", context, args, list))
    }
}

fn list(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolFailure> {
    let folder = context.folders.resolve(&arguments.path)?;
    if folder.host.is_file() {
        return Err(ToolFailure::said(format!("{} is a file; use read_file", folder.shown)));
    }
    let entries = fs::read_dir(&folder.host).map_err(|error| ToolFailure::io("list", &folder, error))?;
    let mut names: Vec<OsString> = Vec::new();
    let mut not_read = 0_usize;
    for entry in entries {
        let entry = entry.map_err(|error| ToolFailure::io("list", &folder, error))?;
        if context.folders.hides(&entry.path()) {
            continue;
        }
        if names.len() < ENTRIES_READ_MAX {
            names.push(entry.file_name());
        } else {
            not_read += 1;
        }
        if context.cancel.is_cancelled() {
            return Err(ToolFailure::Cancelled);
        }
    }
    if names.is_empty() {
        return Ok(bound("(empty)", ""));
    }
    names.sort();
    let more = names.len().saturating_sub(ENTRIES_SHOWN_MAX) + not_read;
    let mut lines: Vec<String> =
        names.iter().take(ENTRIES_SHOWN_MAX).map(|name| line(context, &folder.host.join(name))).collect();
    if more > 0 {
        lines.push(format!("... {more} more entries"));
    }
    Ok(bound_in(context, &lines.join("\n"), "list a folder further down, or use glob"))
}

/// One entry. A link is described by what it leads to only where that lies inside the folders.
fn line(context: &ToolContext, path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = super::walk::one_line_name(&name);
    let is_inside = fs::canonicalize(path).is_ok_and(|real| context.folders.shown(&real).is_some());
    let found = if is_inside { fs::metadata(path) } else { fs::symlink_metadata(path) };
    match found {
        Ok(found) if found.is_dir() => format!("{name}/"),
        Ok(found) => format!("{name}\t{}", found.len()),
        // Gone between listing and looking.
        Err(_) => format!("{name}\t0"),
    }
}
