//! Shows the configuration that is in force, with who set what. Secrets are never shown: of a key,
//! only the name of the variable that holds it.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Config, Loaded, provenance::Provenance};

/// The key that holds a secret, wherever it stands.
pub(super) const SECRET_KEY: &str = "api_key";
/// Stands for a secret.
const HIDDEN: &str = "[secret]";

/// One value that is in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The full key.
    pub key: String,
    /// The value, without secrets.
    pub value: Value,
    /// Who set it.
    pub provenance: Provenance,
}

impl Loaded {
    /// The configuration that is in force as one tree, without secrets.
    pub fn effective(&self) -> Value {
        tree(&self.config)
    }

    /// The same, one value after the other. Lists are one value.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        self.list(&self.effective(), &mut Vec::new(), &mut entries);
        entries
    }

    fn list(&self, value: &Value, key: &mut Vec<String>, entries: &mut Vec<Entry>) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (name, value) in map {
                    key.push(name.clone());
                    self.list(value, key, entries);
                    key.pop();
                }
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => entries.push(Entry {
                key: key.join("."),
                value: value.clone(),
                provenance: self.origins.of(key).clone(),
            }),
        }
    }
}

fn tree(config: &Config) -> Value {
    let mut models: Vec<_> = config.models.iter().map(to_value).collect();
    for (shown, model) in models.iter_mut().zip(&config.models) {
        if let (Some(key), Some(shown)) = (&model.api_key, shown.get_mut(SECRET_KEY)) {
            *shown = json!(key.shown().unwrap_or(HIDDEN));
        }
        if let (Some(url), Some(shown)) = (&model.base_url, shown.get_mut("base_url")) {
            *shown = json!(shown_url(url));
        }
    }
    let mut tree = to_value(config);
    if let Some(shown) = tree.get_mut("models") {
        *shown = Value::Array(models);
    }
    tree
}

/// Every type of the configuration is plain data with text keys, which always has a JSON form.
fn to_value(data: &impl Serialize) -> Value {
    serde_json::to_value(data).unwrap_or_default()
}

/// Hides the user and password of an address.
pub(super) fn shown_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{HIDDEN}@{host}{path}"),
        None => url.to_owned(),
    }
}
