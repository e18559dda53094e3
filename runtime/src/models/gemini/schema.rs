//! Schemas of arguments in the part of JSON Schema that Gemini takes: whatever it does not know makes
//! it refuse the whole request. What is left out here is still checked when the tool is called.

use std::cell::Cell;

use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// Schemas in schemas, references included. A schema that refers to itself ends here.
const DEPTH_MAX: usize = 16;
/// Schemas in all: a schema that refers to itself twice would double with every level.
const SCHEMAS_MAX: usize = 1_000;
/// Keywords that are passed on as they are.
const PLAIN_KEYWORDS: &[&str] = &[
    "title",
    "description",
    "nullable",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "pattern",
];
/// The formats that are known; others are refused.
const FORMATS: &[&str] = &["date-time", "enum", "float", "double", "int32", "int64"];

/// The schema of a function's parameters; `None` for a function without any, which must have none.
pub(super) fn parameters(schema: &Value) -> Option<Value> {
    let kept = Schemas { root: schema, left: Cell::new(SCHEMAS_MAX) }.kept(schema, 0);
    let has_properties =
        kept.get("properties").and_then(Value::as_object).is_some_and(|some| !some.is_empty());
    has_properties.then_some(kept)
}

/// Schemas, with the whole that references are about.
struct Schemas<'a> {
    root: &'a Value,
    /// Schemas that may still be kept.
    left: Cell<usize>,
}

impl<'a> Schemas<'a> {
    fn kept(&self, schema: &'a Value, depth: usize) -> Value {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        let may_go_on = depth < DEPTH_MAX && left > 0;
        let Some(schema) = self.resolved(schema, depth).as_object().filter(|_| may_go_on) else {
            return json!({"type": "object"});
        };
        let mut kept = Map::new();
        for &keyword in PLAIN_KEYWORDS {
            if let Some(value) = schema.get(keyword) {
                kept.insert(keyword.into(), value.clone());
            }
        }
        self.keep_type(schema, &mut kept, depth);
        self.keep_choices(schema, &mut kept, depth);
        keep_values(schema, &mut kept);
        self.keep_properties(schema, &mut kept, depth);
        if kept.get("type").and_then(Value::as_str) == Some("array") {
            let items = schema.get("items").filter(|items| items.is_object());
            let items = items.map_or_else(|| json!({"type": "string"}), |items| self.kept(items, depth + 1));
            kept.insert("items".into(), items);
        }
        if !kept.contains_key("type") && !kept.contains_key("anyOf") {
            kept.insert("type".into(), "string".into());
        }
        kept.into()
    }

    /// What a reference within the schema stands for. A choice of one, and all of one, are that one.
    fn resolved(&self, schema: &'a Value, depth: usize) -> &'a Value {
        let mut schema = schema;
        for _ in depth..DEPTH_MAX {
            let reference = schema.get("$ref").and_then(Value::as_str);
            let only = ["allOf", "anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array());
            schema = match (reference.and_then(|reference| reference.strip_prefix('#')), only) {
                (Some(pointer), _) => match self.root.pointer(pointer) {
                    Some(found) => found,
                    None => return schema,
                },
                (None, Some(list)) if list.len() == 1 && schema.get("type").is_none() => match list.first() {
                    Some(found) => found,
                    None => return schema,
                },
                (None, Some(_) | None) => return schema,
            };
        }
        schema
    }

    /// One type, and whether there may be nothing; of several types, a choice.
    fn keep_type(&self, schema: &'a Map<String, Value>, kept: &mut Map<String, Value>, depth: usize) {
        let mut types: Vec<&str> = match schema.get("type") {
            Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
        };
        let count = types.len();
        types.retain(|one| *one != "null");
        if types.len() < count {
            kept.insert("nullable".into(), true.into());
        }
        match types.as_slice() {
            [] if schema.contains_key("properties") => drop(kept.insert("type".into(), "object".into())),
            [] if schema.contains_key("items") => drop(kept.insert("type".into(), "array".into())),
            [] => {}
            [one] => drop(kept.insert("type".into(), (*one).into())),
            several => {
                let choice = |one: &&str| self.kept_as(schema, one, depth);
                kept.insert("anyOf".into(), several.iter().map(choice).collect());
            }
        }
    }

    /// The schema as one of its several types.
    fn kept_as(&self, schema: &'a Map<String, Value>, one: &str, depth: usize) -> Value {
        match (one, schema.get("items")) {
            ("array", Some(items)) => json!({"type": one, "items": self.kept(items, depth + 1)}),
            ("array", None) => json!({"type": one, "items": {"type": "string"}}),
            _ => json!({"type": one}),
        }
    }

    fn keep_choices(&self, schema: &'a Map<String, Value>, kept: &mut Map<String, Value>, depth: usize) {
        let Some(list) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array()) else {
            return;
        };
        let (nulls, choices): (Vec<_>, Vec<_>) =
            list.iter().partition(|choice| choice.get("type").and_then(Value::as_str) == Some("null"));
        if !nulls.is_empty() {
            kept.insert("nullable".into(), true.into());
        }
        match choices.as_slice() {
            [one] => {
                if let Value::Object(fields) = self.kept(one, depth + 1) {
                    for (key, value) in fields {
                        kept.entry(key).or_insert(value);
                    }
                }
            }
            several => {
                let choices = several.iter().map(|choice| self.kept(choice, depth + 1));
                kept.insert("anyOf".into(), choices.collect());
                // A type beside a choice is refused.
                kept.remove("type");
            }
        }
    }

    fn keep_properties(&self, schema: &'a Map<String, Value>, kept: &mut Map<String, Value>, depth: usize) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        // An object without properties must not say so.
        if properties.is_empty() {
            return;
        }
        let known = properties.iter().map(|(name, schema)| (name.clone(), self.kept(schema, depth + 1)));
        kept.insert("properties".into(), Value::Object(known.collect()));
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let is_known = |name: &&Value| name.as_str().is_some_and(|name| properties.contains_key(name));
        let required: Vec<Value> = required.filter(is_known).cloned().collect();
        if !required.is_empty() {
            kept.insert("required".into(), required.into());
        }
    }
}

/// A list of values is known for texts only; one value is a list of one.
fn keep_values(schema: &Map<String, Value>, kept: &mut Map<String, Value>) {
    let format = schema.get("format").and_then(Value::as_str).filter(|format| FORMATS.contains(format));
    if let Some(format) = format {
        kept.insert("format".into(), format.into());
    }
    let values: Vec<Value> = match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) => values.clone(),
        (_, Some(value)) => vec![value.clone()],
        (
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_))
            | None,
            None,
        ) => {
            return;
        }
    };
    if values.iter().any(Value::is_null) {
        kept.insert("nullable".into(), true.into());
    }
    let texts: Vec<Value> = values.iter().filter(|value| value.is_string()).cloned().collect();
    let is_all = texts.len() == values.iter().filter(|value| !value.is_null()).count();
    if is_all && !texts.is_empty() {
        kept.insert("type".into(), "string".into());
        kept.insert("enum".into(), texts.into());
    }
}
