//! The rows of the ledger.

use contracts::wire::delegation as wire;
use domain::{
    card::CardHead,
    ledger::{LedgerEntry, LedgerStatus},
    receipt::ReceiptId,
    status_contract::StopReason,
};

use crate::convert::{evidence, usage};

/// A row of the ledger. Acceptance is absent where nobody has judged it.
pub(crate) fn to_wire(entry: &LedgerEntry) -> wire::Delegation {
    wire::Delegation {
        task_id: entry.task_id.to_string(),
        delegation_id: entry.delegation_id.to_string(),
        run_id: entry.run_id.to_string(),
        description: entry.description.clone(),
        subagent_type: entry.subagent_type.clone(),
        status: status(entry.status),
        stop_reason: entry.stop_reason.map(stop_reason),
        result_brief: entry.result_brief.clone(),
        result_sha256: entry.result_sha256.clone(),
        error: entry.error.clone(),
        model_name: entry.model_name.clone(),
        usage: entry.usage.map(usage::to_wire),
        citations: entry.citations.as_ref().map(evidence::citations_to_wire),
        acceptance: None,
        queued_at: entry.queued_at.map(|at| at.to_string()),
        started_at: entry.started_at.map(|at| at.to_string()),
        ended_at: entry.ended_at.map(|at| at.to_string()),
        delivered: entry.delivered,
        first_seq: entry.first_seq,
    }
}

/// The state of a delegation.
pub(crate) fn state_to_wire(head: &CardHead) -> wire::DelegationState {
    wire::DelegationState {
        delegation: to_wire(&head.entry),
        turns: head.turns,
        max_turns: head.max_turns,
        steps: head.steps,
        receipts: head.last_receipt.map_or(0, ReceiptId::number),
        last_receipt: head.last_receipt.map(|id| id.to_string()),
        last_tool: head.last_tool.clone(),
        caps: head.caps,
        seq: head.entry.last_seq,
    }
}

pub(crate) const fn status(status: LedgerStatus) -> wire::DelegationStatus {
    match status {
        LedgerStatus::Queued => wire::DelegationStatus::Queued,
        LedgerStatus::InProgress => wire::DelegationStatus::InProgress,
        LedgerStatus::Completed => wire::DelegationStatus::Completed,
        LedgerStatus::Failed => wire::DelegationStatus::Failed,
        LedgerStatus::Cancelled => wire::DelegationStatus::Cancelled,
        LedgerStatus::TimedOut => wire::DelegationStatus::TimedOut,
        LedgerStatus::PollingTimedOut => wire::DelegationStatus::PollingTimedOut,
        LedgerStatus::Refused => wire::DelegationStatus::Refused,
    }
}

pub(crate) const fn stop_reason(reason: StopReason) -> wire::StopReason {
    match reason {
        StopReason::TokenCapped => wire::StopReason::TokenCapped,
        StopReason::TurnCapped => wire::StopReason::TurnCapped,
        StopReason::LoopCapped => wire::StopReason::LoopCapped,
    }
}
