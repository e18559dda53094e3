//! Why a configuration was not accepted.

use std::{error::Error as StdError, fmt, io, path::PathBuf};

use domain::limits::CONFIG_FILE_BYTES_MAX;

use super::provenance::Provenance;

/// Why a configuration was not accepted. Messages never show secrets.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("reading the configuration file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is larger than any configuration is.
    #[error("the configuration file {} is larger than {CONFIG_FILE_BYTES_MAX} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// There are several files, and no saying which one counts.
    #[error("both {} and {} are here: keep one, or name one with --config", first.display(), second.display())]
    Ambiguous {
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// The file's name does not say what it is.
    #[error("the configuration file {} must end in .yaml, .yml or .toml", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// The file is not what its name says.
    #[error("reading {} as {format}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// YAML or TOML.
        format: &'static str,
        /// Where and why.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The file holds a list or a single value.
    #[error("the configuration file {} must hold keys and values", path.display())]
    NotKeysAndValues {
        /// The file.
        path: PathBuf,
    },
    /// A variable that begins like ours and cannot be a key.
    #[error("the environment variable {name} {problem}")]
    BadVariable {
        /// The variable.
        name: String,
        /// What is wrong and what to do.
        problem: &'static str,
    },
    /// A key that does not exist.
    #[error("unknown key {key}{}: known here are {} ({set_by})", suggestion(.nearest.as_deref()), .known.join(", "))]
    UnknownKey {
        /// The full key.
        key: String,
        /// What was probably meant.
        nearest: Option<String>,
        /// The keys that exist in its place.
        known: Vec<String>,
        /// Who set it.
        set_by: Provenance,
    },
    /// A section that nothing obeys yet.
    #[error("{key} is not supported yet: take the section out ({set_by})")]
    NotSupported {
        /// The section.
        key: String,
        /// Who set it.
        set_by: Provenance,
    },
    /// A value of the wrong type, or a missing one.
    #[error("{key}: {problem} ({set_by})")]
    Mistyped {
        /// The full key.
        key: String,
        /// What is wrong.
        problem: String,
        /// Who set it.
        set_by: Provenance,
    },
    /// Values outside their ranges, all of them.
    #[error("{0}")]
    OutOfRange(Problems),
}

/// Values outside their ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

/// A value outside its range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The full key.
    pub key: String,
    /// The value.
    pub value: String,
    /// What would have been accepted.
    pub allowed: String,
    /// Who set it.
    pub set_by: Provenance,
}

impl From<Problems> for ConfigError {
    fn from(problems: Problems) -> Self {
        Self::OutOfRange(problems)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, allowed, set_by } = self;
        write!(f, "{key} is {value}: it must be {allowed} ({set_by})")
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|name| format!(", did you mean {name}?")).unwrap_or_default()
}
