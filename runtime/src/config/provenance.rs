//! Who set what.

use std::{collections::BTreeMap, fmt, path::PathBuf};

/// Who set a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provenance {
    /// Nobody did.
    Default,
    /// A file.
    File {
        /// The file.
        path: PathBuf,
    },
    /// An environment variable.
    Env {
        /// The variable.
        name: String,
    },
    /// The command line.
    Flag {
        /// The flag.
        name: String,
    },
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the default"),
            Self::File { path } => write!(f, "set in {}", path.display()),
            Self::Env { name } => write!(f, "set by the environment variable {name}"),
            Self::Flag { name } => write!(f, "set by the flag {name}"),
        }
    }
}

/// Who set each key that somebody set. The keys are those of leaves: values that are not objects.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Origins(BTreeMap<Vec<String>, Provenance>);

impl Origins {
    /// Notes who set a leaf. What was known below or above it is void: it is no longer there.
    pub(super) fn set(&mut self, key: &[String], who: &Provenance) {
        self.0.retain(|known, _| !known.starts_with(key) && !key.starts_with(known));
        self.0.insert(key.to_vec(), who.clone());
    }

    /// Who set a key: the key itself, else the list that it is in, else the first thing in it.
    pub(super) fn of(&self, key: &[String]) -> &Provenance {
        let itself_or_below =
            || self.0.range(key.to_vec()..).next().filter(|(known, _)| known.starts_with(key));
        let above = || (0..key.len()).rev().find_map(|length| self.0.get_key_value(key.get(..length)?));
        itself_or_below().or_else(above).map_or(&Provenance::Default, |(_, who)| who)
    }

    /// The same for a key in one string. Names in keys have no dots.
    pub(super) fn of_key(&self, key: &str) -> &Provenance {
        self.of(&key.split('.').map(str::to_owned).collect::<Vec<_>>())
    }
}
