//! What may be asked of a delegation.

use jiff::Timestamp;

use crate::{
    event::{CancelReason, Cap, Compaction, DelegationDelivered, DelegationRefused, DelegationRequested},
    ids::ToolCallId,
    message::Message,
    receipt::{Receipt, ReceiptId, ReceiptOutcome},
    status_contract::StopReason,
};

/// What may be asked of a delegation.
#[derive(Debug, Clone, PartialEq)]
pub enum DelegationCommand {
    /// Accept the lead's call.
    Request(Box<DelegationRequested>),
    /// Refuse the lead's call, before anything is done for it.
    Refuse(DelegationRefused),
    /// Put it in the queue.
    Queue {
        /// Its place, from 1.
        place: u32,
    },
    /// Give it a slot and begin.
    Admit {
        /// How long it waited, in milliseconds.
        waited_ms: u64,
    },
    /// Take one message of the subagent, with the evidence of the tool call that it answers.
    Record {
        /// The message, whole.
        message: Box<Message>,
        /// The evidence, for a tool's result.
        receipt: Option<Box<ReceiptDraft>>,
    },
    /// A guard fired.
    Cap(Cap),
    /// Its history was compacted, or was to be.
    Compact(Box<Compaction>),
    /// End it. The first ending wins.
    End(DelegationEnding),
    /// The lead has its answer.
    Deliver(DelegationDelivered),
}

/// A receipt before it has its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptDraft {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_call_id: String,
    /// SHA-256 of the arguments, in hexadecimal.
    pub args_sha256: String,
    /// SHA-256 of the whole output, in hexadecimal.
    pub output_sha256: String,
    /// Length of the whole output in bytes.
    pub output_bytes: u64,
    /// What came of it.
    pub outcome: ReceiptOutcome,
    /// When it was started.
    pub started_at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// How a delegation ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DelegationEnding {
    /// The subagent gave a usable answer.
    Completed {
        /// The answer, whole.
        result: String,
        /// The guard that made it stop early.
        stop_reason: Option<StopReason>,
    },
    /// Something went wrong.
    Failed {
        /// What.
        error: String,
        /// The guard that ended it.
        stop_reason: Option<StopReason>,
    },
    /// Somebody stopped it.
    Cancelled(CancelReason),
    /// It ran out of time.
    TimedOut {
        /// What the lead is told.
        error: String,
    },
}

impl ReceiptDraft {
    pub(super) fn numbered(self, task_id: ToolCallId, id: ReceiptId) -> Receipt {
        Receipt {
            task_id,
            id,
            tool_name: self.tool_name,
            tool_call_id: self.tool_call_id,
            args_sha256: self.args_sha256,
            output_sha256: self.output_sha256,
            output_bytes: self.output_bytes,
            outcome: self.outcome,
            started_at: self.started_at,
            duration_ms: self.duration_ms,
        }
    }
}
