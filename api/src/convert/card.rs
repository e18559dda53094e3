//! The card.

use contracts::wire::card as wire;
use domain::{
    card::Card,
    event::{Cap, CapturedCall, Step, StepBody},
};

use crate::convert::{cap, delegation, evidence, usage};

/// The card as a person looks at it.
pub(crate) fn to_wire(card: Card) -> wire::Card {
    let Card { head, steps, receipts, caps } = card;
    let entry = head.entry;
    wire::Card {
        task_id: entry.task_id.to_string(),
        delegation_id: entry.delegation_id.to_string(),
        status: delegation::status(entry.status),
        description: entry.description,
        prompt: Some(head.prompt).filter(|prompt| !prompt.is_empty()),
        subagent_type: entry.subagent_type,
        model_name: entry.model_name,
        usage: entry.usage.map(usage::to_wire),
        turns: head.turns,
        compactions: head.compactions,
        steps: steps.into_iter().map(step).collect(),
        caps: caps.iter().map(|(cap, _, seq)| cap_to_wire(cap, *seq)).collect(),
        receipts: receipts.iter().map(|(receipt, seq)| evidence::receipt_to_wire(receipt, *seq)).collect(),
        citations: entry.citations.as_ref().map(evidence::citations_to_wire),
        acceptance: Vec::new(),
        result: head.result,
        error: entry.error,
        stop_reason: entry.stop_reason.map(delegation::stop_reason),
        seq: entry.last_seq,
    }
}

fn step(step: Step) -> wire::CardStep {
    let (kind, tool_calls, tool_name) = match step.body {
        StepBody::Ai { tool_calls } => {
            (wire::StepKind::Ai, Some(tool_calls.into_iter().map(call).collect()), None)
        }
        StepBody::Tool { tool_name } => (wire::StepKind::Tool, None, Some(tool_name)),
    };
    wire::CardStep {
        message_index: step.message_index,
        kind,
        text: step.text,
        truncated: step.truncated,
        tool_calls,
        tool_name,
    }
}

fn call(call: CapturedCall) -> wire::CardCall {
    wire::CardCall { name: call.name, args: call.args, args_truncated: call.args_truncated }
}

fn cap_to_wire(fired: &Cap, seq: u64) -> wire::CardCap {
    wire::CardCap {
        axis: cap::axis(fired.axis).to_owned(),
        action: cap::action(fired.action).to_owned(),
        used: fired.used,
        budget: fired.budget,
        seq,
    }
}
