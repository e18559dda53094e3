//! A line of the list of files. A name that is not UTF-8 is written as hexadecimal digits.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::chain::Hash;

/// One thing that was found in the folders of threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listed {
    /// Where it is, below the folder.
    #[serde(with = "as_text")]
    pub(super) path: PathBuf,
    /// What it is.
    pub(super) entry: Entry,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Entry {
    /// A folder. What is in it follows.
    Folder {
        /// Its permissions.
        mode: u32,
    },
    /// A file.
    File {
        /// Its permissions.
        mode: u32,
        /// Its length.
        bytes: u64,
        /// The hash of its bytes. 64 hexadecimal digits in JSON.
        #[serde(with = "crate::recorded::hex_hash")]
        blake3: Hash,
    },
    /// A symbolic link, as it stands.
    Link {
        /// What it says.
        #[serde(with = "as_text")]
        target: PathBuf,
    },
}

mod as_text {
    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Text {
        Plain(String),
        Bytes { hex: String },
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => Text::Plain(text.to_owned()),
            None => Text::Bytes { hex: hex::encode(path.as_os_str().as_bytes()) },
        }
        .serialize(serializer)
    }

    pub(super) fn deserialize<'de, De: Deserializer<'de>>(deserializer: De) -> Result<PathBuf, De::Error> {
        match Text::deserialize(deserializer)? {
            Text::Plain(text) => Ok(PathBuf::from(text)),
            Text::Bytes { hex } => {
                let bytes = hex::decode(hex).map_err(De::Error::custom)?;
                Ok(OsString::from_vec(bytes).into())
            }
        }
    }
}
