//! The lines of an export. Their form is fixed: whoever reads one writes it again and compares, so
//! that no byte of it can be changed unseen.
//!
//! ```text
//! events.jsonl   the event as one JSON object, then `previous_hash`. Content or metadata that was
//!                given with line breaks has spaces in their place, and its exact text behind it as
//!                `content_text` or `metadata_text`: the hash covers that.
//! hashes         `+` (the event is in the export) or `-` (it is withheld), 64 hexadecimal digits
//! ```

use serde::Deserialize;

use crate::{chain::Hash, json::Json, recorded::RecordedEvent};

/// One line of `hashes`, with its end.
pub(super) const ENTRY_BYTES: usize = 66;

/// An event with what is before it in its stream.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) event: RecordedEvent,
    pub(super) previous_hash: Hash,
}

/// What stands in a line beside the event.
#[derive(Deserialize)]
struct Beside {
    #[serde(with = "crate::recorded::hex_hash")]
    previous_hash: Hash,
    #[serde(default)]
    content_text: Option<String>,
    #[serde(default)]
    metadata_text: Option<String>,
}

const BREAKS: [char; 2] = ['\n', '\r'];

/// The line of an event, with its end.
pub(super) fn compose(event: &RecordedEvent, previous_hash: &Hash) -> Result<String, serde_json::Error> {
    let has_breaks = |json: &Json| json.get().contains(BREAKS);
    let exact = [("content_text", &event.content), ("metadata_text", &event.metadata)];
    let shown;
    let shown = if exact.iter().any(|(_, json)| has_breaks(json)) {
        shown = RecordedEvent {
            content: on_one_line(&event.content),
            metadata: on_one_line(&event.metadata),
            ..event.clone()
        };
        &shown
    } else {
        event
    };
    let mut text = serde_json::to_string(shown)?;
    text.pop();
    for (name, json) in exact.iter().filter(|(_, json)| has_breaks(json)) {
        text.push_str(&format!(",\"{name}\":{}", serde_json::to_string(json.get())?));
    }
    text.push_str(&format!(",\"previous_hash\":\"{}\"}}\n", hex::encode(previous_hash)));
    Ok(text)
}

/// In JSON line breaks can only stand between tokens, where a space means the same.
fn on_one_line(json: &Json) -> Json {
    Json::from_stored(&json.get().replace(BREAKS, " "))
}

/// Reads a line, with its end. The error says what is wrong with it.
pub(super) fn parse(line: &[u8]) -> Result<Line, String> {
    let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    let text = text.strip_suffix('\n').ok_or("it is cut")?;
    let mut event: RecordedEvent = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let beside: Beside = serde_json::from_str(text).map_err(|error| error.to_string())?;
    for (exact, json) in
        [(beside.content_text, &mut event.content), (beside.metadata_text, &mut event.metadata)]
    {
        if let Some(exact) = exact {
            *json = Json::parse(&exact).map_err(|error| error.to_string())?;
        }
    }
    let read = Line { event, previous_hash: beside.previous_hash };
    let again = compose(&read.event, &read.previous_hash).map_err(|error| error.to_string())?;
    if again.as_bytes() == line { Ok(read) } else { Err("its text is not as it was written".to_owned()) }
}

/// One position of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Whether the event is in the export.
    pub(super) is_here: bool,
    pub(super) hash: Hash,
}

impl Entry {
    pub(super) fn compose(&self) -> String {
        format!("{}{}\n", if self.is_here { '+' } else { '-' }, hex::encode(self.hash))
    }

    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let (mark, rest) = line.split_first()?;
        let is_here = match mark {
            b'+' => true,
            b'-' => false,
            _ => return None,
        };
        let mut hash = [0; 32];
        hex::decode_to_slice(rest.strip_suffix(b"\n")?, &mut hash).ok()?;
        let entry = Self { is_here, hash };
        // Digits have one case.
        (entry.compose().as_bytes() == line).then_some(entry)
    }
}
