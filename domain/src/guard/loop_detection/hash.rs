//! What makes two sets of calls the same (chain facts §1.6): the tools and those arguments that
//! say what is asked for, in any order.

use std::fmt::Write as _;

use md5::{Digest as _, Md5};
use serde_json::{Map, Value};

use crate::message::{ToolArgs, ToolCall};

/// Hexadecimal digits of a hash.
const HASH_CHARS: usize = 12;
/// Lines that one bucket of a file has: reading on within it is reading the same.
const READ_BUCKET_LINES: u64 = 200;
/// The tool whose line ranges are put into buckets.
const READ_TOOL: &str = "read_file";
/// Tools of which every argument matters.
const WRITE_TOOLS: [&str; 2] = ["write_file", "str_replace"];
/// Arguments that say what is asked for, where a tool has any of them.
const SALIENT_ARGS: [&str; 7] = ["path", "url", "query", "command", "pattern", "glob", "cmd"];

/// The hash of a set of calls, the same in any order. It finds repeats and protects nothing.
pub fn call_set_hash(calls: &[ToolCall]) -> String {
    let mut keys: Vec<String> = calls.iter().map(call_key).collect();
    keys.sort_unstable();
    let set = Value::Array(keys.into_iter().map(Value::String).collect());
    let mut digest = hex::encode(Md5::digest(dump(&set)));
    digest.truncate(HASH_CHARS);
    digest
}

fn call_key(call: &ToolCall) -> String {
    let key = match &call.args {
        ToolArgs::Invalid(text) => fallback_key(text),
        ToolArgs::Object(args) if call.name == READ_TOOL => read_key(args),
        ToolArgs::Object(args) if WRITE_TOOLS.contains(&call.name.as_str()) => dump_map(args),
        ToolArgs::Object(args) => salient_key(args),
    };
    format!("{}:{key}", call.name)
}

/// What is not an object: JSON in its one form, other text as it came.
fn fallback_key(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |value| dump(&value))
}

fn read_key(args: &Map<String, Value>) -> String {
    let path = match args.get("path") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(path)) => path.clone(),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => dump(other),
    };
    let line = |name: &str| args.get(name).and_then(Value::as_i64).map(|line| line.max(1).unsigned_abs());
    let start = line("start_line").unwrap_or(1);
    let end = line("end_line").unwrap_or(start);
    let bucket = |line: u64| (line - 1) / READ_BUCKET_LINES;
    format!("{path}:{}-{}", bucket(start.min(end)), bucket(start.max(end)))
}

fn salient_key(args: &Map<String, Value>) -> String {
    let is_salient =
        |(name, value): &(&String, &Value)| SALIENT_ARGS.contains(&name.as_str()) && !value.is_null();
    let salient: Map<String, Value> =
        args.iter().filter(is_salient).map(|(name, value)| (name.clone(), value.clone())).collect();
    dump_map(if salient.is_empty() { args } else { &salient })
}

/// JSON in its one form: keys sorted, `", "` and `": "` between parts, nothing but ASCII.
fn dump(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => dump_text(text),
        Value::Array(items) => format!("[{}]", items.iter().map(dump).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => dump_map(map),
    }
}

fn dump_map(map: &Map<String, Value>) -> String {
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    entries.sort_unstable_by_key(|(name, _)| *name);
    let entry = |(name, value): (&String, &Value)| format!("{}: {}", dump_text(name), dump(value));
    format!("{{{}}}", entries.into_iter().map(entry).collect::<Vec<_>>().join(", "))
}

fn dump_text(text: &str) -> String {
    let mut dumped = String::with_capacity(text.len() + 2);
    dumped.push('"');
    for char in text.chars() {
        match char {
            '"' => dumped.push_str("\\\""),
            '\\' => dumped.push_str("\\\\"),
            '\n' => dumped.push_str("\\n"),
            '\r' => dumped.push_str("\\r"),
            '\t' => dumped.push_str("\\t"),
            '\u{8}' => dumped.push_str("\\b"),
            '\u{c}' => dumped.push_str("\\f"),
            ' '..='~' => dumped.push(char),
            other => escape(other, &mut dumped),
        }
    }
    dumped.push('"');
    dumped
}

fn escape(char: char, into: &mut String) {
    for unit in char.encode_utf16(&mut [0; 2]) {
        // Writing to a string cannot fail.
        let _written = write!(into, "\\u{unit:04x}");
    }
}
