//! Names of streams. What the events in a stream mean is not known here.

use std::{fmt, str::FromStr};

use domain::ids::ThreadId;
use serde::{Deserialize, Serialize};

/// What stands before a thread's id in the text form.
const THREAD_PREFIX: &str = "thread/";
/// The text form of the registry.
const REGISTRY: &str = "registry";

/// Names one stream. The text form is stored: never change it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum StreamId {
    /// `registry`: definitions, keys and erasures.
    Registry,
    /// `thread/{id}`: one durable conversation.
    Thread(ThreadId),
}

/// Text that names no stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid stream {}: it must be `registry` or `thread/` and a thread id", shown(.text))]
pub struct InvalidStreamId {
    /// What was given.
    pub text: String,
}

/// Quotes the text, shortened, so that hostile text cannot flood a log line.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    format!("{short:?}")
}

impl StreamId {
    /// The text form, in two parts.
    pub(crate) fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Thread(id) => (THREAD_PREFIX, id.as_str()),
            Self::Registry => (REGISTRY, ""),
        }
    }

    /// The thread that the stream belongs to, if it is a thread's.
    pub fn thread_id(&self) -> Option<&ThreadId> {
        match self {
            Self::Thread(id) => Some(id),
            Self::Registry => None,
        }
    }
}

impl From<ThreadId> for StreamId {
    fn from(id: ThreadId) -> Self {
        Self::Thread(id)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(id) => write!(f, "{THREAD_PREFIX}{id}"),
            Self::Registry => f.write_str(REGISTRY),
        }
    }
}

impl FromStr for StreamId {
    type Err = InvalidStreamId;
    fn from_str(text: &str) -> Result<Self, InvalidStreamId> {
        if text == REGISTRY {
            return Ok(Self::Registry);
        }
        text.strip_prefix(THREAD_PREFIX)
            .and_then(|id| ThreadId::new(id).ok())
            .map(Self::Thread)
            .ok_or_else(|| InvalidStreamId { text: text.to_owned() })
    }
}

impl TryFrom<String> for StreamId {
    type Error = InvalidStreamId;
    fn try_from(text: String) -> Result<Self, InvalidStreamId> {
        text.parse()
    }
}

impl From<StreamId> for String {
    fn from(id: StreamId) -> Self {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, is_valid: bool) {
        match text.parse::<StreamId>() {
            Ok(id) => assert!(is_valid && id.to_string() == text, "{text:?} gave {id:?}"),
            Err(error) => assert!(!is_valid, "{error}"),
        }
    }

    #[test]
    fn the_text_form_is_read_back() {
        check("registry", true);
        check("thread/t-1", true);
        check(&format!("thread/{}", "a".repeat(64)), true);
        check("thread/", false);
        check("thread/a/b", false);
        check("thread", false);
        check("Registry", false);
        check("batch/b", false);
        check("", false);
    }
}
