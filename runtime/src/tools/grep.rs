//! `grep`: lines that match a regular expression.

use std::{fs::File, io::Read};

use domain::{
    text::prefix,
    tool_spec::{SideEffect, ToolSpec},
};
use futures::future::BoxFuture;
use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Tool, ToolContext, ToolOutput,
    capture::bound_in,
    file_call::{ToolFailure, on_blocking_thread},
    glob::PathFilter,
    text_file,
    walk::{self, WALKED_ENTRIES_MAX, WalkEnd},
};
use crate::sandbox::ResolvedPath;

/// Lines that are given when nothing is asked for.
const RESULTS_DEFAULT: usize = 100;
/// Lines that may be asked for.
const RESULTS_MAX: usize = 1_000;
/// How far into each file is searched.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How much one call searches in all files together.
const SEARCHED_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// A matching line.
const LINE_CHARS_MAX: usize = 500;

pub(super) struct Grep;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    max_results: Option<usize>,
}

impl Tool for Grep {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "grep".to_owned(),
            description: format!(
                "Search text files for a regular expression (Rust syntax; (?i) ignores case). Gives matching lines as \
                 path:line: text. Hidden files are searched, binary files and links are not. At most \
                 {RESULTS_DEFAULT} lines unless max_results says otherwise (up to {RESULTS_MAX})."
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "The regular expression"},
                    "path": {"type": "string", "description": "File or folder to search; default the workspace"},
                    "glob": {"type": "string", "description": "Only files that match, for example *.rs"},
                    "max_results": {"type": "integer", "minimum": 1, "maximum": RESULTS_MAX},
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
        Box::pin(on_blocking_thread("grep", context, args, search))
    }
}

fn search(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolFailure> {
    let results_max = arguments.max_results.unwrap_or(RESULTS_DEFAULT);
    if !(1..=RESULTS_MAX).contains(&results_max) {
        return Err(ToolFailure::said(format!("max_results must be 1 to {RESULTS_MAX}")));
    }
    let pattern = Regex::new(&arguments.pattern).map_err(|error| {
        ToolFailure::said(format!("the pattern is not a valid regular expression: {error}"))
    })?;
    let filter = arguments.glob.as_deref().map(PathFilter::new).transpose()?;
    let place = context.folders.resolve(arguments.path.as_deref().unwrap_or("."))?;
    let mut search = Search { context, pattern, results_max, lines: Vec::new(), searched: 0 };
    let end = if place.host.is_dir() {
        walk::walk(context, &place, |entry| {
            let below = entry.path().strip_prefix(&place.host).unwrap_or(entry.path());
            let is_wanted = filter.as_ref().is_none_or(|filter| filter.is_match(below));
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if let (true, true, Some(shown)) = (is_file, is_wanted, context.folders.shown(entry.path())) {
                search.look_in(&ResolvedPath { host: entry.path().to_owned(), shown });
            }
            search.is_full()
        })?
    } else {
        text_file::open(context, &place)?;
        search.look_in(&place);
        if search.is_full() { WalkEnd::Enough } else { WalkEnd::Complete }
    };
    Ok(search.finish(&arguments.pattern, end))
}

struct Search<'a> {
    context: &'a ToolContext,
    pattern: Regex,
    results_max: usize,
    /// One more than `results_max` tells that there are more.
    lines: Vec<String>,
    searched: u64,
}

impl Search<'_> {
    fn is_full(&self) -> bool {
        self.lines.len() > self.results_max
            || self.searched >= SEARCHED_BYTES_MAX
            || self.context.cancel.is_cancelled()
    }

    /// Searches one file. One that cannot be read, or is not text, has no matches.
    fn look_in(&mut self, path: &ResolvedPath) {
        let Ok((file, _)) = text_file::open(self.context, path) else { return };
        let Some(bytes) = read_text(file) else { return };
        self.searched += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let name = walk::one_line_name(&path.shown);
        let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
            if !self.pattern.is_match(&line) {
                continue;
            }
            let bounded = prefix(&line, LINE_CHARS_MAX);
            let mark = if bounded.is_truncated { " [...]" } else { "" };
            self.lines.push(format!("{name}:{}: {}{mark}", index + 1, bounded.text));
            if self.is_full() {
                return;
            }
        }
    }

    fn finish(mut self, pattern: &str, end: WalkEnd) -> ToolOutput {
        let has_more = self.lines.len() > self.results_max;
        self.lines.truncate(self.results_max);
        let note = if self.context.cancel.is_cancelled() {
            return ToolFailure::Cancelled.into();
        } else if has_more {
            Some(format!(
                "... more matches after the first {}; narrow pattern, path or glob",
                self.results_max
            ))
        } else if end == WalkEnd::TooMany {
            Some(format!("... stopped after {WALKED_ENTRIES_MAX} entries; narrow path"))
        } else if self.searched >= SEARCHED_BYTES_MAX {
            Some(format!("... stopped after {SEARCHED_BYTES_MAX} bytes; narrow path or glob"))
        } else if self.lines.is_empty() {
            Some(format!("no lines match {pattern:?}"))
        } else {
            None
        };
        self.lines.extend(note);
        bound_in(self.context, &self.lines.join("\n"), "narrow pattern, path or glob")
    }
}

/// Reads a bounded part of a file; nothing when it is binary or empty.
fn read_text(file: File) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    (!bytes.is_empty() && !bytes.contains(&0)).then_some(bytes)
}
