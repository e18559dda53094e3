//! The one file: which one it is, and what is in it.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use domain::limits::CONFIG_FILE_BYTES_MAX;
use serde_json::{Map, Value};

use super::{error::ConfigError, plain_words::plain_words};

/// The names that are looked for in the working folder.
const NAMES: [&str; 3] = ["remit.yaml", "remit.yml", "remit.toml"];

/// A file that was read.
pub(super) struct ReadFile {
    /// Its path, as it was found.
    pub(super) path: PathBuf,
    /// What is in it: an object.
    pub(super) tree: Value,
}

/// Reads the named file, which must exist, or the only one that is in the folder.
pub(super) fn read(explicit: Option<&Path>, working_dir: &Path) -> Result<Option<ReadFile>, ConfigError> {
    if let Some(path) = explicit {
        let text = read_text(&working_dir.join(path))
            .and_then(|text| text.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge)));
        return Ok(Some(parse(path, text.map_err(|error| unreadable(path, error))?)?));
    }
    let mut found: Option<(PathBuf, String)> = None;
    for name in NAMES {
        let path = working_dir.join(name);
        match read_text(&path) {
            Ok(None) => return Err(ConfigError::TooLarge { path }),
            Ok(Some(text)) => {
                if let Some((first, _)) = found {
                    return Err(ConfigError::Ambiguous { first, second: path });
                }
                found = Some((path, text));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&path, error)),
        }
    }
    found.map(|(path, text)| parse(&path, text)).transpose()
}

/// `None` when the file is too large.
fn read_text(path: &Path) -> io::Result<Option<String>> {
    let mut text = String::new();
    let read = File::open(path)?.take(CONFIG_FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    Ok(u64::try_from(read).is_ok_and(|read| read <= CONFIG_FILE_BYTES_MAX).then_some(text))
}

fn unreadable(path: &Path, source: io::Error) -> ConfigError {
    let path = path.to_owned();
    if source.kind() == io::ErrorKind::FileTooLarge {
        return ConfigError::TooLarge { path };
    }
    ConfigError::Unreadable { path, source }
}

fn parse(path: &Path, text: String) -> Result<ReadFile, ConfigError> {
    let malformed = |format, source| ConfigError::Malformed { path: path.to_owned(), format, source };
    let extension = path.extension().and_then(|extension| extension.to_str());
    let tree = match extension {
        Some("yaml" | "yml") => parse_yaml(&text).map_err(|error| malformed("YAML", error.into()))?,
        Some("toml") => parse_toml(&text).map_err(|error| malformed("TOML", error.into()))?,
        Some(_) | None => return Err(ConfigError::UnknownFormat { path: path.to_owned() }),
    };
    match tree {
        Value::Object(_) => Ok(ReadFile { path: path.to_owned(), tree }),
        Value::Null => Ok(ReadFile { path: path.to_owned(), tree: Value::Object(Map::new()) }),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(ConfigError::NotKeysAndValues { path: path.to_owned() })
        }
    }
}

/// Reads YAML, and so JSON, within the parser's budgets. Errors quote no lines, because a line may be a
/// secret.
pub fn parse_yaml(text: &str) -> Result<Value, YamlError> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        YamlError { line, problem: yaml_problem(&error) }
    })
}

/// Text that is no YAML. YAML's own errors speak to programmers; this speaks to whoever wrote the file.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct YamlError {
    line: u64,
    problem: String,
}

fn yaml_problem(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    if matches!(error, Error::NullIntoString { .. }) {
        return "a key is empty; write a name before the colon".to_owned();
    }
    if matches!(error, Error::DuplicateMappingKey { .. }) {
        return "a key stands twice in its place; keep one of the two".to_owned();
    }
    let text = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
    // The place, which is said before it, follows the problem.
    plain_words(text.split(" at line ").next().unwrap_or_default().trim_start_matches("error: "))
}

/// TOML's own errors quote the line, which may be a secret; this says where it is instead.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
struct TomlError {
    line: usize,
    problem: String,
}

fn parse_toml(text: &str) -> Result<Value, TomlError> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = 1 + text.bytes().take(start).filter(|byte| *byte == b'\n').count();
        TomlError { line, problem: plain_words(error.message()) }
    })
}
