//! Receipts: evidence, made by the runtime and never by a model, that one tool call ended.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::{InvalidId, ToolCallId};

/// Names a receipt within its delegation: `r1`, `r2`, … in the order in which results are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ReceiptId(u32);

impl ReceiptId {
    /// The receipt with this number, from 1.
    pub const fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for ReceiptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl FromStr for ReceiptId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let number = text.strip_prefix('r').filter(|digits| !digits.starts_with(['0', '+']));
        number.and_then(|digits| digits.parse().ok()).map(Self).ok_or_else(|| InvalidId {
            kind: "receipt id",
            text: text.to_owned(),
            rule: "'r' and a number from 1, such as r3".into(),
        })
    }
}

impl TryFrom<String> for ReceiptId {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<ReceiptId> for String {
    fn from(id: ReceiptId) -> Self {
        id.to_string()
    }
}

/// What came of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptOutcome {
    /// It did what was asked.
    Ok,
    /// It failed.
    Error,
    /// It was not allowed to run.
    Denied,
    /// It was started, and nobody knows what it did.
    Unknown,
}

/// Evidence that one tool call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The provider's id of the delegation's `task` call.
    pub task_id: ToolCallId,
    /// Its name within the delegation.
    pub id: ReceiptId,
    /// The tool, as it was asked for.
    pub tool_name: String,
    /// The call.
    pub tool_call_id: String,
    /// SHA-256 of the arguments as compact JSON, or of their raw text, in hexadecimal.
    pub args_sha256: String,
    /// SHA-256 of the whole output as the agent may read it, with secrets masked and before any cut, in
    /// hexadecimal. Where the output is kept whole this names its blob.
    pub output_sha256: String,
    /// Length of what the digest covers, in bytes.
    pub output_bytes: u64,
    /// What came of it.
    pub outcome: ReceiptOutcome,
    /// When it was started.
    pub started_at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipt_ids_have_one_spelling() {
        assert_eq!("r12".parse::<ReceiptId>().unwrap().to_string(), "r12");
        for bad in ["", "r", "r0", "r01", "r+1", "R1", "1", "r1x", "r99999999999"] {
            assert!(bad.parse::<ReceiptId>().is_err(), "{bad:?}");
        }
    }
}
