//! Every kind of id, in one registry.
//!
//! An id is a type, so that a run's id cannot stand where a thread's is expected, and its only
//! constructors check it, so that everything behind the edge may trust it.

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::limits::{NAME_CHARS_MAX, THREAD_ID_CHARS_MAX, TOOL_CALL_ID_CHARS_MAX, USER_ID_CHARS_MAX};

/// Text that is not a well-formed id of the kind that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {kind} {}: it must be {rule}", shown(.text))]
pub struct InvalidId {
    /// The kind of id, in the words of the interface: `thread_id`.
    pub kind: &'static str,
    /// What was given.
    pub text: String,
    /// What would have been accepted.
    pub rule: Cow<'static, str>,
}

/// Quotes the text, shortened, so that a hostile id cannot flood a log line.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    format!("{short:?}")
}

/// Text ids that come from outside: the alphabet and length are checked once, here.
macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident($kind:literal, $rule:expr, $is_valid:expr);)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks the text and makes an id of it.
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
                let text = text.into();
                let is_valid: fn(&str) -> bool = $is_valid;
                if is_valid(&text) {
                    Ok(Self(text))
                } else {
                    Err(InvalidId { kind: $kind, text, rule: $rule.into() })
                }
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    )*};
}

/// Ids that Remit makes itself: UUID v7, so that they sort by the time they were made.
macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident($kind:literal);)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID that the id source made or the log holds.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The UUID itself.
            pub const fn as_uuid(&self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Uuid::try_parse(text)
                    .map(Self)
                    .map_err(|_| InvalidId { kind: $kind, text: text.into(), rule: "a UUID".into() })
            }
        }
    )*};
}

text_ids! {
    /// Names a thread: a durable conversation, and the stream of its events.
    ThreadId("thread_id", "1 to 64 letters, digits, '_' or '-'", is_plain);
    /// Names one invocation of a lead agent on a thread.
    RunId("run_id", "1 to 64 letters, digits, '_' or '-'", is_plain);
    /// The provider's id of one tool call; may repeat across runs, so it never keys anything alone.
    ToolCallId("tool_call_id", "1 to 256 characters", |text| is_within(text, TOOL_CALL_ID_CHARS_MAX));
    /// Names the owner of a thread.
    UserId("user_id", "1 to 128 characters", |text| is_within(text, USER_ID_CHARS_MAX));
    /// Names a subagent type, such as `general-purpose`.
    SubagentType("subagent_type", "1 to 64 letters, digits, '_' or '-'", |text| {
        is_plain(text) && text.chars().count() <= NAME_CHARS_MAX
    });
}

uuid_ids! {
    /// Names one recorded event.
    EventId("event_id");
    /// Names one delegation: the key of everything about it.
    DelegationId("delegation_id");
    /// Names one erasure.
    ErasureId("erasure_id");
    /// Names a piece of work on the whole log, such as a backup.
    JobId("job_id");
}

/// Stands for a run where its id must not: 32 hexadecimal digits that the log makes of the thread's
/// and the run's id. Whoever knows the ids makes the same of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunHash([u8; 16]);

impl RunHash {
    /// Wraps a hash that the log has made.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The hash itself.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for RunHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl FromStr for RunHash {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let is_hash = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hash);
        let rule = Cow::Borrowed("32 hexadecimal digits");
        let invalid = || InvalidId { kind: "run_hash", text: text.into(), rule };
        number.map(|number| Self(number.to_be_bytes())).ok_or_else(invalid)
    }
}

impl TryFrom<String> for RunHash {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<RunHash> for String {
    fn from(hash: RunHash) -> Self {
        hash.to_string()
    }
}

impl UserId {
    /// The owner of threads that nobody in particular started.
    pub fn unowned() -> Self {
        Self("default".to_owned())
    }
}

fn is_plain(text: &str) -> bool {
    (1..=THREAD_ID_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn is_within(text: &str, chars_max: usize) -> bool {
    // There are never more characters than bytes, and few texts are long enough to be counted.
    !text.is_empty() && (text.len() <= chars_max || text.chars().count() <= chars_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, is_valid: bool) {
        assert_eq!(ThreadId::new(text).is_ok(), is_valid, "thread id {text:?}");
        assert_eq!(RunId::new(text).is_ok(), is_valid, "run id {text:?}");
    }

    // Facts §12 line 105: thread ids "", dotted, ../x and 65 characters are refused.
    #[test]
    fn thread_and_run_ids_hold_to_their_alphabet() {
        check("t", true);
        check("Thread_1-x", true);
        check(&"a".repeat(64), true);
        check(&"a".repeat(65), false);
        check("", false);
        check("a.b", false);
        check("../x", false);
        check("a/b", false);
        check("é", false);
        check("a\u{0}", false);
    }

    #[test]
    fn an_error_names_the_kind_and_the_rule_and_stays_short() {
        let error = ThreadId::new("x".repeat(5_000)).unwrap_err().to_string();
        assert!(error.starts_with("invalid thread_id \"xxx"), "{error}");
        assert!(error.ends_with("it must be 1 to 64 letters, digits, '_' or '-'"), "{error}");
        assert!(error.len() < 200, "{error}");
    }

    #[test]
    fn the_hash_of_a_run_is_read_back() {
        let hash = RunHash::from_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(hash.to_string(), "000102030405060708090a0b0c0d0eff");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        for bad in ["", "00", "000102030405060708090a0b0c0d0eff0", "+00102030405060708090a0b0c0d0eff"] {
            assert!(bad.parse::<RunHash>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_check_themselves_when_they_come_out_of_json() {
        assert!(serde_json::from_str::<ThreadId>("\"ok\"").is_ok());
        assert!(serde_json::from_str::<ThreadId>("\"not ok\"").is_err());
        assert!(serde_json::from_str::<DelegationId>("\"nonsense\"").is_err());
    }
}
