//! The environment: `REMIT__SECTION__KEY=value`.

use std::ffi::OsString;

use serde_json::Value;

use super::{error::ConfigError, file::parse_yaml};

/// How our variables begin.
const PREFIX: &str = "REMIT__";

/// A variable that sets something.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variable {
    /// Its name.
    pub(super) name: String,
    /// The key that it sets.
    pub(super) key: Vec<String>,
    /// The value.
    pub(super) value: Value,
}

/// Picks out our variables, the shorter keys first: what sets a whole section comes before what
/// sets one key in it, whatever order the environment has.
pub(super) fn read(
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Vec<Variable>, ConfigError> {
    let mut variables = Vec::new();
    for (name, value) in environment {
        let name = name.to_string_lossy().into_owned();
        let Some(key) = name.strip_prefix(PREFIX) else { continue };
        let key: Vec<_> = key.split("__").map(str::to_lowercase).collect();
        if key.iter().any(String::is_empty) {
            let problem = "names no key; write REMIT__SECTION__KEY";
            return Err(ConfigError::BadVariable { name, problem });
        }
        let Ok(text) = value.into_string() else {
            return Err(ConfigError::BadVariable { name, problem: "is not UTF-8" });
        };
        variables.push(Variable { value: parse_value(&text), key, name });
    }
    variables.sort_by(|one, other| (one.key.len(), &one.name).cmp(&(other.key.len(), &other.name)));
    Ok(variables)
}

/// Reads a YAML scalar, or a list or object in braces. Everything else is text as it stands, so
/// that `Note: reviews code` and `#1` need no quotes.
fn parse_value(text: &str) -> Value {
    let trimmed = text.trim();
    let is_inline = trimmed.starts_with(['{', '[']);
    let is_quoted = trimmed.starts_with(['"', '\'']);
    let as_text = || Value::String(text.to_owned());
    match parse_yaml(trimmed) {
        Ok(Value::Null) if matches!(trimmed, "" | "~" | "null") => Value::Null,
        Ok(value @ (Value::Bool(_) | Value::Number(_))) => value,
        Ok(value @ Value::String(_)) if is_quoted => value,
        Ok(value @ (Value::Array(_) | Value::Object(_))) if is_inline => value,
        Ok(Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_)) | Err(_) => as_text(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_scalars_inline_json_or_text() {
        for (text, expected) in [
            ("12", json!(12)),
            ("0.5", json!(0.5)),
            ("true", json!(true)),
            ("no", json!("no")),
            ("null", json!(null)),
            ("", json!(null)),
            ("\"12\"", json!("12")),
            ("\"\"", json!("")),
            ("plain text", json!("plain text")),
            ("Note: reviews code", json!("Note: reviews code")),
            ("- a", json!("- a")),
            ("#1", json!("#1")),
            ("a # b", json!("a # b")),
            ("$KEY", json!("$KEY")),
            ("127.0.0.1:8700", json!("127.0.0.1:8700")),
            ("[a, 1]", json!(["a", 1])),
            ("{\"bash\": {\"max_turns\": 2}}", json!({"bash": {"max_turns": 2}})),
            ("[unfinished", json!("[unfinished")),
        ] {
            assert_eq!(parse_value(text), expected, "{text:?}");
        }
    }

    #[test]
    fn whole_sections_come_before_keys_in_them() {
        let given = [("REMIT__A__B__C", "1"), ("OTHER", "x"), ("REMIT__A", "{}"), ("REMIT_X", "2")];
        let read = read(given.map(|(name, value)| (name.into(), value.into())).into_iter()).unwrap();
        let keys: Vec<_> = read.iter().map(|variable| variable.key.join(".")).collect();
        assert_eq!(keys, ["a", "a.b.c"]);
    }
}
