//! Receipts.

use contracts::wire::evidence as wire;
use domain::receipt::{Receipt, ReceiptOutcome};

/// A receipt and the place of its event in the thread.
pub(crate) fn receipt_to_wire(receipt: &Receipt, seq: u64) -> wire::Receipt {
    wire::Receipt {
        id: receipt.id.to_string(),
        tool_name: receipt.tool_name.clone(),
        tool_call_id: receipt.tool_call_id.clone(),
        args_sha256: receipt.args_sha256.clone(),
        output_sha256: receipt.output_sha256.clone(),
        output_bytes: receipt.output_bytes,
        outcome: outcome(receipt.outcome),
        started_at: receipt.started_at.to_string(),
        duration_ms: receipt.duration_ms,
        seq,
    }
}

const fn outcome(outcome: ReceiptOutcome) -> wire::ReceiptOutcome {
    match outcome {
        ReceiptOutcome::Ok => wire::ReceiptOutcome::Ok,
        ReceiptOutcome::Error => wire::ReceiptOutcome::Error,
        ReceiptOutcome::Denied => wire::ReceiptOutcome::Denied,
        ReceiptOutcome::Unknown => wire::ReceiptOutcome::Unknown,
    }
}
