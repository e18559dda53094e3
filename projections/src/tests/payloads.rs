//! What is said and done in the histories.

use domain::{
    delegation::{DelegationCommand, DelegationEnding, ReceiptDraft},
    event::{
        CancelReason, Cap, CapAction, CapAxis, DelegationDelivered, DelegationRefused, DelegationRequested,
        RefusalReason, RunSettings, RunStopReason,
    },
    ids::{RunId, SubagentType, ToolCallId},
    message::{AssistantMessage, Message, ToolArgs, ToolCall, ToolMessage},
    receipt::ReceiptOutcome,
    run::RunEnding,
    status_contract::{StopReason, SubagentStatus},
    usage::Usage,
};
use jiff::Timestamp;
use serde_json::{Map, json};

pub(super) fn settings(run_id: &RunId, variant: u8) -> RunSettings {
    RunSettings {
        run_id: run_id.clone(),
        assistant_id: "lead".into(),
        model_name: format!("model-{}", variant % 2),
        subagent_enabled: true,
        max_concurrent_subagents: 3,
        max_total_subagents: 6,
        allowed_subagents: (variant.is_multiple_of(3)).then(|| vec!["bash".into()]),
        max_turns: 100,
        tools: vec!["task".into()],
        system_prompt: "lead".into(),
        subagents: None,
        managed_subagents: None,
        summarization_enabled: false,
        token_budget: None,
        loop_detection: None,
        tool_progress: None,
        model_retries_max: None,
        checks_last_words: true,
        summarization: None,
        metadata: Map::from_iter([("variant".to_owned(), json!(variant))]),
    }
}

fn usage(variant: u8) -> Option<Usage> {
    (!variant.is_multiple_of(3)).then(|| Usage::new(u64::from(variant), 7))
}

pub(super) fn reply(variant: u8) -> Message {
    let call = ToolCall {
        id: format!("x{variant}"),
        name: if variant.is_multiple_of(2) { "ls".into() } else { "bash".into() },
        args: ToolArgs::parse("{\"path\":\".\"}"),
    };
    Message::Assistant(AssistantMessage {
        content: format!("said {variant}"),
        tool_calls: (!variant.is_multiple_of(4)).then_some(call).into_iter().collect(),
        usage: usage(variant),
        ..AssistantMessage::default()
    })
}

pub(super) fn cap(variant: u8) -> Cap {
    let action = if variant.is_multiple_of(2) { CapAction::Warn } else { CapAction::Stop };
    Cap { axis: CapAxis::Tokens, action, used: u64::from(variant), budget: 200 }
}

pub(super) fn recorded(variant: u8) -> DelegationCommand {
    let tool = ToolMessage { tool_call_id: "x".into(), name: "ls".into(), ..ToolMessage::default() };
    let receipt = ReceiptDraft {
        tool_name: "ls".into(),
        tool_call_id: "x".into(),
        args_sha256: "a".into(),
        output_sha256: "b".into(),
        output_bytes: u64::from(variant),
        outcome: ReceiptOutcome::Ok,
        started_at: Timestamp::UNIX_EPOCH,
        duration_ms: 3,
    };
    let (message, receipt) = match variant % 5 {
        0 => (Message::human("go on"), None),
        1 | 2 => (Message::Tool(tool), Some(Box::new(receipt))),
        _ => (reply(variant), None),
    };
    DelegationCommand::Record { message: Box::new(message), receipt }
}

pub(super) fn delegation_ending(variant: u8) -> DelegationEnding {
    match variant % 5 {
        0 => DelegationEnding::Failed {
            error: "it broke ".repeat(usize::from(variant) * 5),
            stop_reason: None,
        },
        1 => DelegationEnding::Cancelled(CancelReason::ParentEnded),
        2 => DelegationEnding::TimedOut { error: "out of time".into() },
        // Short, longer than its brief, and longer than what an end may hold.
        _ => {
            let result = format!(" found\u{e9} [r1 {}]", "x".repeat(usize::from(variant) * 40));
            let stop_reason = (variant.is_multiple_of(2)).then_some(StopReason::TurnCapped);
            DelegationEnding::Completed { result, stop_reason }
        }
    }
}

pub(super) fn run_ending(variant: u8) -> RunEnding {
    let stop_reason = (variant.is_multiple_of(2)).then_some(RunStopReason::TurnCapped);
    match variant % 4 {
        0 => RunEnding::Interrupted,
        1 => RunEnding::Failed { error: "the model is gone".into(), stop_reason },
        _ => RunEnding::Returned { result: "x".repeat(usize::from(variant) * 50), stop_reason },
    }
}

pub(super) fn request(task_id: ToolCallId, variant: u8) -> DelegationRequested {
    DelegationRequested {
        task_id,
        description: if variant.is_multiple_of(2) { String::new() } else { "look".into() },
        prompt: format!("look around {variant}"),
        subagent_type: SubagentType::new("general-purpose").unwrap(),
        model_name: "offline".into(),
        max_turns: 150,
        timeout_seconds: 1_800,
        tools: vec!["ls".into()],
        acceptance_criteria: Vec::new(),
        token_budget: None,
        receipts_enabled: true,
    }
}

pub(super) fn refusal(task_id: ToolCallId, reason: RefusalReason) -> DelegationRefused {
    let (description, subagent_type) = ("look".into(), "nobody".into());
    DelegationRefused { task_id, description, subagent_type, reason, message: "no".into() }
}

pub(super) fn delivery(task_id: ToolCallId, variant: u8) -> DelegationDelivered {
    let status =
        if variant.is_multiple_of(3) { SubagentStatus::PollingTimedOut } else { SubagentStatus::Completed };
    DelegationDelivered { task_id, status, result_brief: None, result_sha256: None, error: Some("e".into()) }
}
