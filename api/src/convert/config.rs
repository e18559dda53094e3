//! The configuration that is in force.

use contracts::wire::config::{Configuration, SetBy, Setting};
use domain::redaction::Redactor;
use runtime::config::{Entry, Provenance};
use serde_json::Value;

pub(crate) fn to_wire(entries: &[Entry]) -> Configuration {
    Configuration { settings: entries.iter().map(setting).collect() }
}

fn setting(entry: &Entry) -> Setting {
    let (set_by, name) = match &entry.provenance {
        Provenance::Default => (SetBy::Default, None),
        Provenance::File { path } => (SetBy::File, Some(path.display().to_string())),
        Provenance::Env { name } => (SetBy::Env, Some(name.clone())),
        Provenance::Flag { name } => (SetBy::Flag, Some(name.clone())),
    };
    Setting { key: entry.key.clone(), value: masked(&entry.value), set_by, name }
}

/// Keys of models are masked where they are known to be keys. What else looks like a secret, in the body
/// that a model is asked with for instance, is masked as in events.
fn masked(value: &Value) -> Value {
    let redacted = Redactor::standard().redact_json(&value.to_string());
    redacted.and_then(|redacted| serde_json::from_str(&redacted.text).ok()).unwrap_or_else(|| value.clone())
}
