//! `read_file`: a text file, or a range of its lines.

use std::{fs::File, io::Read, path::PathBuf};

use domain::tool_spec::{SideEffect, ToolSpec};
use eventlog::{BlobError, BlobReader};
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Tool, ToolContext, ToolOutcome, ToolOutput,
    capture::{Capture, Frame, bound},
    file_call::{ToolFailure, on_blocking_thread},
    keeper, text_file,
};
use crate::sandbox::ResolvedPath;

/// How far into a file one call reads. More is work for bash.
const SCANNED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How much is read at once.
const CHUNK_BYTES: usize = 64 * 1024;

const ADVICE: &str = "read on with start_line and end_line";

pub(super) struct ReadFile;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    start_line: Option<u64>,
    end_line: Option<u64>,
}

impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read_file".to_owned(),
            description:
                "Read a UTF-8 text file, whole or from start_line to end_line (counted from 1, both \
                          included). A long text is cut in the middle; the mark says how much is missing."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "File, relative to the workspace or under /mnt/user-data"},
                    "start_line": {"type": "integer", "minimum": 1, "description": "First line; default 1"},
                    "end_line": {"type": "integer", "minimum": 1, "description": "Last line; default the end"},
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
        Box::pin(on_blocking_thread("read_file", context, args, read))
    }
}

fn read(context: &ToolContext, arguments: Arguments) -> Result<ToolOutput, ToolFailure> {
    let first = arguments.start_line.unwrap_or(1);
    let last = arguments.end_line.unwrap_or(u64::MAX);
    if first == 0 || last < first {
        return Err(ToolFailure::said(format!(
            "start_line {first} and end_line {last} are no range; lines are counted from 1"
        )));
    }
    let (mut source, path, length) = open(context, &arguments.path)?;
    let capture = Capture::within(context);
    let mut scan = Scan { first, last, line: 1, capture, ..Scan::default() };
    while scan.line <= last {
        if context.cancel.is_cancelled() {
            return Err(ToolFailure::Cancelled);
        }
        let Some(piece) = source.next_piece(&path)? else { break };
        scan.take(&piece).ok_or_else(|| text_file::not_text(&path, length))?;
        if scan.scanned > SCANNED_BYTES_MAX {
            return Err(too_large(&path, length));
        }
    }
    if !scan.undecoded.is_empty() && scan.line <= last {
        return Err(text_file::not_text(&path, length));
    }
    scan.finish(&path)
}

/// Where the text comes from.
enum Source {
    File(File),
    Kept(Box<BlobReader>),
}

impl Source {
    fn next_piece(&mut self, path: &ResolvedPath) -> Result<Option<Vec<u8>>, ToolFailure> {
        match self {
            Self::File(file) => {
                let mut piece = vec![0; CHUNK_BYTES];
                let count = file.read(&mut piece).map_err(|error| ToolFailure::io("read", path, error))?;
                piece.truncate(count);
                Ok((count > 0).then_some(piece))
            }
            Self::Kept(blob) => blob.next_piece().map_err(|error| unreadable(&path.shown, &error)),
        }
    }
}

/// Opens a file of the thread, or an output of one of its tools that was kept.
fn open(context: &ToolContext, path: &str) -> Result<(Source, ResolvedPath, u64), ToolFailure> {
    if let (Some(sha256), Some(keeper)) = (keeper::named_by(path), &context.keeper) {
        let blob = keeper.open(&sha256).map_err(|error| unreadable(path.trim(), &error))?;
        let shown = path.trim().to_owned();
        let length = blob.blob().bytes;
        return Ok((Source::Kept(Box::new(blob)), ResolvedPath { host: PathBuf::new(), shown }, length));
    }
    let path = context.folders.resolve(path)?;
    let (file, length) = text_file::open(context, &path)?;
    Ok((Source::File(file), path, length))
}

fn unreadable(path: &str, error: &BlobError) -> ToolFailure {
    ToolFailure::said(format!(
        "{path} cannot be read ({error}); call the tool again if its output is still needed"
    ))
}

fn too_large(path: &ResolvedPath, length: u64) -> ToolFailure {
    ToolFailure::said(format!(
        "{} is too large ({length} bytes; one call reads the first {SCANNED_BYTES_MAX}); read earlier lines with \
         start_line and end_line, search it with grep, or use bash",
        path.shown
    ))
}

/// Goes through a file and captures the wanted lines.
#[derive(Default)]
struct Scan {
    first: u64,
    last: u64,
    /// The line in which the next byte stands.
    line: u64,
    /// Whether that line has begun.
    has_begun: bool,
    scanned: u64,
    undecoded: Vec<u8>,
    capture: Capture,
}

impl Scan {
    /// Takes the next bytes; nothing when they are not text.
    fn take(&mut self, bytes: &[u8]) -> Option<()> {
        self.scanned += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let mut input = std::mem::take(&mut self.undecoded);
        input.extend_from_slice(bytes);
        let valid = match std::str::from_utf8(&input) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() => {
                let (valid, begun) = input.split_at(error.valid_up_to());
                self.undecoded = begun.to_vec();
                std::str::from_utf8(valid).unwrap_or_default()
            }
            Err(_) => return None,
        };
        if valid.contains('\0') {
            return None;
        }
        for piece in valid.split_inclusive('\n') {
            if self.line > self.last {
                break;
            }
            if self.line >= self.first {
                self.capture.push(piece);
            }
            self.has_begun = !piece.ends_with('\n');
            self.line += u64::from(!self.has_begun);
        }
        Some(())
    }

    fn finish(self, path: &ResolvedPath) -> Result<ToolOutput, ToolFailure> {
        let lines = if self.has_begun { self.line } else { self.line - 1 };
        if self.scanned == 0 && self.first == 1 {
            return Ok(bound("(empty)", ADVICE));
        }
        if self.first > lines {
            return Err(ToolFailure::said(format!(
                "start_line {} is after the end; {} has {lines} lines",
                self.first, path.shown
            )));
        }
        Ok(self.capture.finish(ToolOutcome::Ok, Frame { advice: ADVICE, ..Frame::default() }))
    }
}
