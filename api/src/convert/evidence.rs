//! Receipts, and what became of the citations of them.

use contracts::wire::evidence as wire;
use domain::{
    citation::{CheckedCitation, Citations, Overall, Verdict},
    receipt::{Receipt, ReceiptOutcome},
};
use projections::ReceiptRow;

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

/// A receipt of any delegation of a thread.
pub(crate) fn owned_to_wire(row: &ReceiptRow) -> wire::OwnedReceipt {
    wire::OwnedReceipt {
        run_id: row.run_id.as_ref().map(ToString::to_string),
        task_id: row.receipt.task_id.to_string(),
        delegation_id: row.delegation_id.to_string(),
        receipt: receipt_to_wire(&row.receipt, row.seq),
    }
}

/// What may be asked for, by its name.
pub(crate) const OUTCOMES: [(&str, ReceiptOutcome); 4] = [
    ("ok", ReceiptOutcome::Ok),
    ("error", ReceiptOutcome::Error),
    ("denied", ReceiptOutcome::Denied),
    ("unknown", ReceiptOutcome::Unknown),
];

const fn outcome(outcome: ReceiptOutcome) -> wire::ReceiptOutcome {
    match outcome {
        ReceiptOutcome::Ok => wire::ReceiptOutcome::Ok,
        ReceiptOutcome::Error => wire::ReceiptOutcome::Error,
        ReceiptOutcome::Denied => wire::ReceiptOutcome::Denied,
        ReceiptOutcome::Unknown => wire::ReceiptOutcome::Unknown,
    }
}

/// What became of a result's citations.
pub(crate) fn citations_to_wire(citations: &Citations) -> wire::Citations {
    let item = |item: &CheckedCitation| wire::Citation {
        text: item.text.clone(),
        receipt_id: item.receipt_id.to_string(),
        tool_name: item.tool_name.clone(),
        verdict: verdict(item.verdict),
    };
    wire::Citations { overall: overall(citations.overall), items: citations.items.iter().map(item).collect() }
}

const fn overall(overall: Overall) -> wire::CitationsVerdict {
    match overall {
        Overall::Verified => wire::CitationsVerdict::Verified,
        Overall::Partial => wire::CitationsVerdict::Partial,
        Overall::Unverified => wire::CitationsVerdict::Unverified,
        Overall::Off => wire::CitationsVerdict::Off,
    }
}

const fn verdict(verdict: Verdict) -> wire::CitationVerdict {
    match verdict {
        Verdict::Resolved => wire::CitationVerdict::Resolved,
        Verdict::UnknownReceipt => wire::CitationVerdict::UnknownReceipt,
        Verdict::WrongTool => wire::CitationVerdict::WrongTool,
        Verdict::Omitted => wire::CitationVerdict::Omitted,
        Verdict::CitesFailedCall => wire::CitationVerdict::CitesFailedCall,
    }
}
