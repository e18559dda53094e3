//! Tool calls, put together from the fragments of a stream.
//!
//! The format says: an index on every fragment, the id and the name on the first. Servers leave out
//! any of these, or repeat them; so a fragment is placed by whatever it does say.

use std::collections::BTreeSet;

use domain::message::{ToolArgs, ToolCall};
use serde_json::{Map, Value};

use crate::models::{call_id::free_id, torn};

/// What every call costs against a reply's bound, however little it says.
const CALL_BYTES: usize = 64;

/// One fragment of a call as the provider sent it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fragment<'a> {
    index: Option<u64>,
    id: Option<&'a str>,
    name: &'a str,
    args: &'a Value,
    extra: Option<&'a Value>,
    /// A call of a reply that was not streamed is always whole.
    is_whole: bool,
}

impl<'a> Fragment<'a> {
    pub(super) fn read(fragment: &'a Value, is_whole: bool) -> Self {
        let said = |text: &&str| !text.is_empty();
        // Some servers put the function's fields beside the id.
        let function = fragment.get("function").filter(|function| function.is_object()).unwrap_or(fragment);
        Self {
            index: fragment.get("index").and_then(Value::as_u64),
            id: fragment.get("id").and_then(Value::as_str).filter(said),
            name: function.get("name").and_then(Value::as_str).unwrap_or_default(),
            args: function.get("arguments").unwrap_or(&Value::Null),
            extra: fragment.get("extra_content").filter(|extra| !extra.is_null()),
            is_whole,
        }
    }

    fn has_args(&self) -> bool {
        !matches!(self.args, Value::Null) && self.args.as_str() != Some("")
    }
}

#[derive(Debug)]
enum Args {
    Text(String),
    Whole(Map<String, Value>),
}

#[derive(Debug)]
struct Parts {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    args: Args,
    extra: Option<Value>,
    /// The chunk in which the call began.
    chunk: u64,
}

impl Parts {
    fn has_args(&self) -> bool {
        match &self.args {
            Args::Text(text) => !text.is_empty(),
            Args::Whole(_) => true,
        }
    }

    fn has_complete_args(&self) -> bool {
        match &self.args {
            Args::Text(text) => {
                !text.trim().is_empty() && matches!(ToolArgs::parse(text), ToolArgs::Object(_))
            }
            Args::Whole(_) => true,
        }
    }

    fn add_name(&mut self, name: &str) {
        if name.starts_with(&self.name) {
            name.clone_into(&mut self.name);
        } else {
            self.name.push_str(name);
        }
    }

    fn add_args(&mut self, args: &Value) {
        match (args, &mut self.args) {
            (Value::Null, _) => {}
            (Value::Object(map), _) => self.args = Args::Whole(map.clone()),
            (Value::String(piece), Args::Text(text)) => text.push_str(piece),
            (Value::String(piece), Args::Whole(_)) if piece.is_empty() => {}
            (Value::String(piece), Args::Whole(_)) => self.args = Args::Text(piece.clone()),
            (Value::Bool(_) | Value::Number(_) | Value::Array(_), _) => {
                self.args = Args::Text(args.to_string());
            }
        }
    }
}

/// What a fragment did to the reply.
#[derive(Debug, Default)]
pub(super) struct Added {
    /// The bytes that it added.
    pub(super) bytes: usize,
    /// The name of the call that it began, as far as known.
    pub(super) started: Option<String>,
}

/// The calls of one reply, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls {
    parts: Vec<Parts>,
}

impl Calls {
    pub(super) const fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds a fragment of the `chunk`th event to the call that it continues, or begins a call.
    pub(super) fn add(&mut self, fragment: Fragment<'_>, chunk: u64) -> Added {
        let mut added = Added { bytes: fragment_bytes(&fragment), started: None };
        let position = self.continued(&fragment, chunk).unwrap_or_else(|| {
            added.bytes += CALL_BYTES;
            self.begin(fragment.index, chunk)
        });
        let Some(parts) = self.parts.get_mut(position) else { return added };
        let was_nameless = parts.name.is_empty();
        if parts.id.is_none() {
            parts.id = fragment.id.map(str::to_owned);
        }
        if !fragment.name.is_empty() {
            parts.add_name(fragment.name);
            added.started = was_nameless.then(|| parts.name.clone());
        }
        parts.add_args(fragment.args);
        if let Some(extra) = fragment.extra {
            parts.extra = Some(extra.clone());
        }
        added
    }

    fn begin(&mut self, index: Option<u64>, chunk: u64) -> usize {
        let args = Args::Text(String::new());
        self.parts.push(Parts { index, id: None, name: String::new(), args, extra: None, chunk });
        self.parts.len() - 1
    }

    /// The call that a fragment continues; none when it begins one.
    fn continued(&self, fragment: &Fragment<'_>, chunk: u64) -> Option<usize> {
        if fragment.is_whole {
            return None;
        }
        let (position, latest) = self.latest_at(fragment.index)?;
        match fragment.id {
            Some(id) => self.with_id(id, fragment.index).or_else(|| {
                let may_continue = fragment.name.is_empty() && !latest.has_complete_args();
                may_continue.then_some(position)
            }),
            None => (!begins_anew(fragment, latest, chunk)).then_some(position),
        }
    }

    fn latest_at(&self, index: Option<u64>) -> Option<(usize, &Parts)> {
        let mut newest_first = self.parts.iter().enumerate().rev();
        newest_first.find(|(_, parts)| index.is_none() || parts.index.is_none() || parts.index == index)
    }

    fn with_id(&self, id: &str, index: Option<u64>) -> Option<usize> {
        self.parts.iter().rposition(|parts| {
            let is_same_place = parts.index == index || parts.index.is_none() || index.is_none();
            is_same_place && parts.id.as_deref() == Some(id)
        })
    }

    /// The calls with an id each, and what a provider wants to see again with some of them, by id.
    pub(super) fn finish(self, is_torn: bool) -> (Vec<ToolCall>, Map<String, Value>) {
        let mut taken = BTreeSet::new();
        let mut extras = Map::new();
        let mut calls = Vec::new();
        for (position, parts) in self.parts.into_iter().enumerate() {
            let id = free_id(parts.id.as_deref(), position, &taken);
            taken.insert(id.clone());
            if let Some(extra) = parts.extra {
                extras.insert(id.clone(), extra);
            }
            let args = match parts.args {
                Args::Text(text) if is_torn => ToolArgs::parse(&torn::mend(&text)),
                Args::Text(text) => ToolArgs::parse(&text),
                Args::Whole(map) => ToolArgs::Object(map),
            };
            calls.push(ToolCall { id, name: parts.name, args });
        }
        (calls, extras)
    }
}

/// Whether a fragment without an id is the beginning of a call, although a call of its index exists.
/// Only a name can begin one.
fn begins_anew(fragment: &Fragment<'_>, latest: &Parts, chunk: u64) -> bool {
    if fragment.name.is_empty() || latest.name.is_empty() {
        return false;
    }
    if fragment.index.is_none() && latest.chunk == chunk {
        return true;
    }
    if fragment.name != latest.name {
        return fragment.index.is_none() || latest.has_args();
    }
    fragment.has_args() && latest.has_complete_args()
}

fn fragment_bytes(fragment: &Fragment<'_>) -> usize {
    let args = match fragment.args {
        Value::String(piece) => piece.len(),
        Value::Null => 0,
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            fragment.args.to_string().len()
        }
    };
    let extra = fragment.extra.map_or(0, |extra| extra.to_string().len());
    args + extra + fragment.name.len() + fragment.id.map_or(0, str::len)
}
