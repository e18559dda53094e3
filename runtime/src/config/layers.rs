//! Lays layer over layer, and reads the result.
//!
//! Objects are merged key by key; everything else, lists too, is replaced as a whole. The defaults
//! are not laid down here: they are what the types say, so that a value that somebody wrote can be
//! told from the same value that nobody wrote.

use serde_json::{Map, Value};
use serde_path_to_error::{Path, Segment};

use super::{
    Config,
    check::problems_of,
    effective::{SECRET_KEY, shown_url},
    error::{ConfigError, Problem, Problems},
    nearest::nearest,
    plain_words::plain_words,
    provenance::{Origins, Provenance},
};

/// Sections that the interface has and that nothing obeys yet. To accept them would be to pretend.
const NOT_SUPPORTED: [&str; 5] = ["auth", "guardrails", "mcp", "skills", "tool_search"];

/// What has been laid down so far.
#[derive(Default)]
pub(super) struct Layers {
    tree: Map<String, Value>,
    origins: Origins,
}

impl Layers {
    /// Lays a value over what is at its key; the empty key is the whole tree.
    pub(super) fn lay(&mut self, key: &[String], value: Value, who: &Provenance) {
        let nested = key
            .iter()
            .rev()
            .fold(value, |value, name| Value::Object(Map::from_iter([(name.clone(), value)])));
        if let Value::Object(entries) = nested {
            merge(&mut self.tree, entries, &mut Vec::new(), who, &mut self.origins);
        }
    }

    /// Reads the configuration, and checks every value against its range.
    pub(super) fn finish(mut self) -> Result<(Config, Origins), ConfigError> {
        self.refuse_unsupported()?;
        self.normalise();
        let origins = self.origins;
        let config: Config = serde_path_to_error::deserialize(Value::Object(self.tree))
            .map_err(|error| unreadable(error.path(), &error.inner().to_string(), &origins))?;
        let problems: Vec<_> = problems_of(&config)
            .into_iter()
            .map(|problem| Problem {
                set_by: origins.of_key(&problem.key).clone(),
                value: shown_url(&problem.value),
                key: problem.key,
                allowed: problem.allowed,
            })
            .collect();
        if problems.is_empty() { Ok((config, origins)) } else { Err(Problems(problems).into()) }
    }

    fn refuse_unsupported(&self) -> Result<(), ConfigError> {
        match NOT_SUPPORTED.into_iter().find(|section| self.tree.contains_key(*section)) {
            Some(section) => Err(ConfigError::NotSupported {
                key: section.to_owned(),
                set_by: self.origins.of_key(section).clone(),
            }),
            None => Ok(()),
        }
    }

    /// A section whose lines are all commented out is `null` in YAML, and means its defaults. One
    /// trigger may stand without its list.
    fn normalise(&mut self) {
        self.tree.retain(|_, section| !section.is_null());
        if let Some(trigger) =
            self.tree.get_mut("summarization").and_then(|section| section.get_mut("trigger"))
        {
            match trigger {
                Value::Object(_) => *trigger = Value::Array(vec![trigger.take()]),
                Value::Null => *trigger = Value::Array(Vec::new()),
                Value::Array(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
    }
}

fn merge(
    into: &mut Map<String, Value>,
    layer: Map<String, Value>,
    key: &mut Vec<String>,
    who: &Provenance,
    origins: &mut Origins,
) {
    for (name, value) in layer {
        key.push(name.clone());
        match value {
            Value::Object(entries) => {
                let below = into.entry(name).or_insert_with(|| Value::Object(Map::new()));
                if !below.is_object() {
                    *below = Value::Object(Map::new());
                    origins.set(key, who);
                }
                if let Value::Object(below) = below {
                    if entries.is_empty() && below.is_empty() {
                        origins.set(key, who);
                    }
                    merge(below, entries, key, who, origins);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                origins.set(key, who);
                into.insert(name, value);
            }
        }
        key.pop();
    }
}

/// Makes an error of what the types said: an unknown key with what could have been meant, or a
/// value of the wrong type.
fn unreadable(path: &Path, problem: &str, origins: &Origins) -> ConfigError {
    let mut names = Vec::new();
    for segment in path {
        match segment {
            Segment::Map { key } => names.push(key.clone()),
            Segment::Seq { .. } | Segment::Enum { .. } | Segment::Unknown => break,
        }
    }
    if let Some((unknown, known)) = unknown_field(problem) {
        let parent = parent_of(path, unknown);
        let key = if parent.is_empty() { unknown.to_owned() } else { format!("{parent}.{unknown}") };
        if names.last().is_none_or(|last| last != unknown) && !key.contains('[') {
            names.push(unknown.to_owned());
        }
        let nearest = nearest(unknown, &known).map(str::to_owned);
        let known = known.into_iter().map(str::to_owned).collect();
        return ConfigError::UnknownKey { key, nearest, known, set_by: origins.of(&names).clone() };
    }
    let key = path.to_string();
    let is_secret = key.rsplit('.').next() == Some(SECRET_KEY);
    let problem = if is_secret { "it must be text".to_owned() } else { plain_words(problem) };
    ConfigError::Mistyped { key, problem, set_by: origins.of(&names).clone() }
}

/// Where an unknown key stands, whether or not the path already ends with it.
fn parent_of(path: &Path, unknown: &str) -> String {
    let path = path.to_string();
    let parent = path.strip_suffix(unknown).map(|parent| parent.strip_suffix('.').unwrap_or(parent));
    parent.map_or_else(|| path.trim_matches('.').to_owned(), str::to_owned)
}

/// Takes serde's "unknown field" message apart: what was given and what is known, each in
/// backquotes.
fn unknown_field(problem: &str) -> Option<(&str, Vec<&str>)> {
    let mut quoted = problem.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    Some((quoted.next()?, quoted.collect()))
}
