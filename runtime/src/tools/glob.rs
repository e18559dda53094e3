//! `glob`: files whose path matches a pattern.

use domain::tool_spec::{SideEffect, ToolSpec};
use futures::future::BoxFuture;
use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Tool, ToolContext, ToolOutput,
    capture::{bound, bound_in},
    file_call::{ToolFailure, on_blocking_thread},
    walk::{self, WALKED_ENTRIES_MAX, WalkEnd},
};

/// Paths that are listed; the rest is counted.
const PATHS_SHOWN_MAX: usize = 500;

pub(super) struct Glob;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
}

impl Tool for Glob {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "glob".to_owned(),
            description:
                "Find files by a pattern such as *.rs, src/**/*.py or data/{a,b}*.csv. A pattern without a \
                          slash matches names at any depth. Gives one path per line, sorted."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "The pattern, relative to path"},
                    "path": {"type": "string", "description": "Folder to search; default the workspace"},
                },
                "required": ["pattern"],
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
        Box::pin(on_blocking_thread("glob", context, args, find))
    }
}

fn find(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolFailure> {
    let filter = PathFilter::new(&arguments.pattern)?;
    let folder = context.folders.resolve(arguments.path.as_deref().unwrap_or("."))?;
    if !folder.host.is_dir() {
        return Err(ToolFailure::said(format!("{} is not a folder; name a folder in path", folder.shown)));
    }
    let mut paths = Vec::new();
    let mut more = 0_usize;
    let end = walk::walk(context, &folder, |entry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let below = entry.path().strip_prefix(&folder.host).unwrap_or(entry.path());
        if !is_folder && filter.is_match(below) {
            if paths.len() < PATHS_SHOWN_MAX {
                let shown = context.folders.shown(entry.path()).unwrap_or_default();
                paths.push(walk::one_line_name(&shown));
            } else {
                more += 1;
            }
        }
        false
    })?;
    if paths.is_empty() && end == WalkEnd::Complete {
        return Ok(bound(&format!("no files match {:?} in {}", arguments.pattern, folder.shown), ""));
    }
    paths.sort();
    if more > 0 {
        paths.push(format!("... {more} more paths; narrow the pattern"));
    }
    if end == WalkEnd::TooMany {
        paths.push(format!(
            "... stopped after {WALKED_ENTRIES_MAX} entries; name a folder further down in path"
        ));
    }
    Ok(bound_in(context, &paths.join("\n"), "narrow the pattern"))
}

/// A pattern over paths below a folder; without a slash it looks at the name alone.
pub(super) struct PathFilter {
    matcher: GlobMatcher,
    by_name: bool,
}

impl PathFilter {
    pub(super) fn new(pattern: &str) -> Result<Self, ToolFailure> {
        let matcher = GlobBuilder::new(pattern.strip_prefix("./").unwrap_or(pattern))
            .literal_separator(true)
            .build()
            .map_err(|error| ToolFailure::said(format!("the glob pattern is not valid: {error}")))?
            .compile_matcher();
        Ok(Self { matcher, by_name: !pattern.contains('/') })
    }

    pub(super) fn is_match(&self, below: &std::path::Path) -> bool {
        match below.file_name() {
            Some(name) if self.by_name => self.matcher.is_match(name),
            Some(_) | None => self.matcher.is_match(below),
        }
    }
}
