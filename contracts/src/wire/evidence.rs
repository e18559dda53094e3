//! What a subagent claimed beside what happened: receipts, citations, acceptance.

use serde::{Deserialize, Serialize};

/// Evidence that one tool call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Its name within the delegation: `r1`.
    pub id: String,
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_call_id: String,
    /// SHA-256 of the arguments, in hexadecimal.
    pub args_sha256: String,
    /// SHA-256 of the whole output, in hexadecimal.
    pub output_sha256: String,
    /// Length of the whole output.
    pub output_bytes: u64,
    /// What came of it.
    pub outcome: ReceiptOutcome,
    /// When it started.
    pub started_at: String,
    /// How long it took.
    pub duration_ms: u64,
    /// Place of its event in the thread.
    pub seq: u64,
}

/// A receipt with the delegation that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedReceipt {
    /// The run.
    pub run_id: Option<String>,
    /// The provider's id of the `task` call.
    pub task_id: String,
    /// The delegation.
    pub delegation_id: String,
    /// The evidence.
    #[serde(flatten)]
    pub receipt: Receipt,
}

/// What came of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// Whether what a result cites did happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citations {
    /// All citations together.
    pub overall: CitationsVerdict,
    /// Each citation.
    pub items: Vec<Citation>,
}

/// All citations of a result together. Verified means that the calls happened, not that the claims
/// are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CitationsVerdict {
    /// There are some, and all of them resolve.
    Verified,
    /// Some resolve.
    Partial,
    /// None resolves, or there are none.
    Unverified,
    /// Receipts are switched off.
    Off,
}

/// One citation of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    /// The citation as it was written: `[r3 bash]`.
    pub text: String,
    /// The receipt that it names.
    pub receipt_id: String,
    /// The tool that it names.
    pub tool_name: String,
    /// Whether it resolves.
    pub verdict: CitationVerdict,
}

/// Whether a citation resolves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CitationVerdict {
    /// The call happened.
    Resolved,
    /// There is no such receipt.
    UnknownReceipt,
    /// The receipt is another tool's.
    WrongTool,
    /// The receipt is not among those that count for this result.
    Omitted,
    /// The call happened and failed.
    CitesFailedCall,
}

/// Whether one acceptance criterion holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acceptance {
    /// The criterion.
    pub criterion: String,
    /// The runtime's verdict.
    pub verdict: AcceptanceVerdict,
    /// What the verdict rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// The runtime's verdict on one acceptance criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AcceptanceVerdict {
    /// It holds.
    Met,
    /// It does not.
    Unmet,
    /// It is prose.
    NotCheckable,
    /// Checking it failed.
    Error,
}
