//! Where the log's master key comes from. The key itself never stands in a configuration, which is
//! copied, shown and kept in version control.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value, json};

/// Begins the short form of a file.
const FILE_FORM: &str = "file:";
/// What may be written. What was written is not repeated: it may be a key.
const FORMS: &str = "it must be {file: PATH}, {env: NAME}, file:PATH or $NAME; the key itself does not belong into the \
                     configuration";

/// Where the log's master key comes from: `log.master_key`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MasterKeySource {
    /// From the data folder, where it is made with the first opening. Nobody else is kept from
    /// reading a folder that was copied as a whole.
    #[default]
    Generated,
    /// From a file: 64 hexadecimal digits, or 32 bytes.
    File(PathBuf),
    /// From an environment variable: 64 hexadecimal digits.
    Env(String),
}

impl MasterKeySource {
    fn of_text(text: &str) -> Option<Self> {
        match text.strip_prefix('$') {
            Some(name) => Self::of_variable(name),
            None => text.strip_prefix(FILE_FORM).and_then(Self::of_file),
        }
    }

    fn of_map(map: &Map<String, Value>) -> Option<Self> {
        let mut entries = map.iter();
        let (Some((name, Value::String(value))), None) = (entries.next(), entries.next()) else {
            return None;
        };
        match name.as_str() {
            "file" => Self::of_file(value),
            "env" => Self::of_variable(value.strip_prefix('$').unwrap_or(value)),
            _ => None,
        }
    }

    fn of_file(path: &str) -> Option<Self> {
        (!path.is_empty()).then(|| Self::File(PathBuf::from(path)))
    }

    fn of_variable(name: &str) -> Option<Self> {
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        is_name.then(|| Self::Env(name.to_owned()))
    }
}

impl<'de> Deserialize<'de> for MasterKeySource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let source = match Value::deserialize(deserializer)? {
            Value::Null => Some(Self::Generated),
            Value::String(text) => Self::of_text(&text),
            Value::Object(map) => Self::of_map(&map),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
        };
        source.ok_or_else(|| D::Error::custom(FORMS))
    }
}

impl Serialize for MasterKeySource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Generated => Value::Null,
            Self::File(path) => json!({"file": path}),
            Self::Env(name) => json!({"env": name}),
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: Value, expected: Option<MasterKeySource>) {
        let read = serde_json::from_value::<MasterKeySource>(written.clone());
        match expected {
            Some(expected) => {
                let shown = serde_json::to_value(&expected).unwrap();
                assert_eq!(serde_json::from_value::<MasterKeySource>(shown).unwrap(), expected);
                assert_eq!(read.unwrap(), expected, "{written}");
            }
            None => assert_eq!(read.unwrap_err().to_string(), FORMS, "{written}"),
        }
    }

    #[test]
    fn a_source_has_a_long_and_a_short_form() {
        let file = || Some(MasterKeySource::File(PathBuf::from("/etc/remit/key")));
        let variable = || Some(MasterKeySource::Env("REMIT_KEY".to_owned()));
        check(Value::Null, Some(MasterKeySource::Generated));
        check(json!({"file": "/etc/remit/key"}), file());
        check(json!("file:/etc/remit/key"), file());
        check(json!({"env": "REMIT_KEY"}), variable());
        check(json!({"env": "$REMIT_KEY"}), variable());
        check(json!("$REMIT_KEY"), variable());
    }

    #[test]
    fn a_key_in_the_configuration_is_refused_and_not_repeated() {
        for written in [
            json!("ab".repeat(32)),
            json!(1_234),
            json!(true),
            json!(""),
            json!("$"),
            json!("$1"),
            json!("file:"),
            json!("/etc/remit/key"),
            json!({}),
            json!({"key": "ab".repeat(32)}),
            json!({"file": "k", "env": "K"}),
            json!({"file": 1}),
            json!({"env": "a b"}),
            json!(["file:k"]),
        ] {
            check(written, None);
        }
    }
}
