//! The run event stream: what a record looks like, and what each event type promises.

use std::{collections::BTreeMap, sync::LazyLock};

use jsonschema::{Draft, ValidationError, Validator};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The contract as it is committed; the wording in it is for people.
const CONTRACT_JSON: &str = include_str!("../run_event_stream_contract.json");

static CONTRACT: LazyLock<RunEventStream> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the file is compiled in, and the tests below read it")]
    RunEventStream::read(CONTRACT_JSON).expect("the committed run event stream contract can be read")
});

/// The contract, with its schemas compiled once per process.
pub fn run_event_stream() -> &'static RunEventStream {
    &CONTRACT
}

/// The run event stream contract.
#[derive(Debug)]
pub struct RunEventStream {
    version: u32,
    categories: BTreeMap<String, String>,
    events: BTreeMap<String, EventContract>,
    record: Validator,
}

/// What one event type promises.
#[derive(Debug)]
pub struct EventContract {
    /// What kind of reader it is for.
    pub category: String,
    /// Whether the name and payload are shared with other recorders of this stream.
    pub is_frozen: bool,
    /// Whether Remit records it itself; else it is carried as somebody ingested it.
    pub is_written: bool,
    /// What it says, for people.
    pub description: String,
    /// Matches the types that this entry stands for, where it stands for more than one.
    pattern: Option<Validator>,
    content: Validator,
    metadata: Validator,
}

/// A record that does not keep the contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event type {event_type:?}, at {}: {problem}", if .pointer.is_empty() { "/" } else { .pointer })]
pub struct Violation {
    /// The record's type; empty when it has none.
    pub event_type: String,
    /// Where in the record, as a JSON pointer; empty for the record itself.
    pub pointer: String,
    /// What is wrong there, without quoting the value.
    pub problem: String,
}

impl RunEventStream {
    /// The version of the contract.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Every entry with its name, in the order of the names. An entry for several types has its
    /// template as name: `middleware:{tag}`.
    pub fn types(&self) -> impl Iterator<Item = (&str, &EventContract)> {
        self.events.iter().map(|(name, event)| (name.as_str(), event))
    }

    /// Every category with what it is for, in the order of the names.
    pub fn categories(&self) -> impl Iterator<Item = (&str, &str)> {
        self.categories.iter().map(|(name, sentence)| (name.as_str(), sentence.as_str()))
    }

    /// The category of a type; `None` for a type that the contract does not know.
    pub fn category_of(&self, event_type: &str) -> Option<&str> {
        self.event(event_type).map(|event| event.category.as_str())
    }

    /// Checks a record: its envelope, then content and metadata against its type. A type that the
    /// contract does not know passes with any content, because consumers ignore it.
    pub fn validate(&self, record: &Value) -> Result<(), Violation> {
        let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default();
        let event_type = text("event_type");
        check(&self.record, record, event_type, "")?;
        let Some(event) = self.event(event_type) else { return Ok(()) };
        if text("category") != event.category {
            return Err(Violation {
                event_type: event_type.to_owned(),
                pointer: "/category".to_owned(),
                problem: format!("the category of this type is {:?}", event.category),
            });
        }
        let part = |key: &str| record.get(key).unwrap_or(&Value::Null);
        check(&event.content, part("content"), event_type, "/content")?;
        check(&event.metadata, part("metadata"), event_type, "/metadata")
    }

    fn event(&self, event_type: &str) -> Option<&EventContract> {
        self.events.get(event_type).filter(|event| event.pattern.is_none()).or_else(|| {
            let name = Value::from(event_type);
            self.events
                .values()
                .find(|event| event.pattern.as_ref().is_some_and(|pattern| pattern.is_valid(&name)))
        })
    }
}

fn check(schema: &Validator, value: &Value, event_type: &str, prefix: &str) -> Result<(), Violation> {
    schema.validate(value).map_err(|error| Violation {
        event_type: event_type.to_owned(),
        pointer: format!("{prefix}{}", error.instance_path().as_str()),
        problem: error.masked().to_string(),
    })
}

/// The file, before its schemas are compiled.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "title")]
    _title: String,
    version: u32,
    #[serde(rename = "json_schema")]
    _json_schema: String,
    #[serde(rename = "rules")]
    _rules: Vec<String>,
    record: Value,
    categories: BTreeMap<String, String>,
    events: BTreeMap<String, EventDocument>,
    #[serde(rename = "$defs")]
    defs: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventDocument {
    category: String,
    frozen: bool,
    written: bool,
    description: String,
    pattern: Option<String>,
    content: Value,
    metadata: Value,
}

#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("reading the contract")]
    Json(#[from] serde_json::Error),
    #[error("compiling a schema of the contract")]
    Schema(#[from] Box<ValidationError<'static>>),
}

impl RunEventStream {
    fn read(json: &str) -> Result<Self, ReadError> {
        let document: Document = serde_json::from_str(json)?;
        let defs = &document.defs;
        let mut events = BTreeMap::new();
        for (name, event) in document.events {
            events.insert(name, EventContract::read(event, defs)?);
        }
        Ok(Self {
            version: document.version,
            categories: document.categories,
            events,
            record: compile(document.record, defs)?,
        })
    }
}

impl EventContract {
    fn read(event: EventDocument, defs: &Value) -> Result<Self, ReadError> {
        let pattern =
            |pattern| Value::Object(Map::from_iter([("pattern".to_owned(), Value::String(pattern))]));
        Ok(Self {
            category: event.category,
            is_frozen: event.frozen,
            is_written: event.written,
            description: event.description,
            pattern: event.pattern.map(|text| compile(pattern(text), defs)).transpose()?,
            content: compile(event.content, defs)?,
            metadata: compile(event.metadata, defs)?,
        })
    }
}

/// Compiles one schema with the document's shared definitions beside it. Dates are checked, and
/// nothing is ever fetched.
fn compile(mut schema: Value, defs: &Value) -> Result<Validator, ReadError> {
    if let Value::Object(fields) = &mut schema {
        fields.insert("$defs".to_owned(), defs.clone());
    }
    let options =
        jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true).offline();
    Ok(options.build(&schema).map_err(Box::new)?)
}

#[cfg(test)]
mod tests;
