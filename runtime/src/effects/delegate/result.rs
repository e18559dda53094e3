//! What the lead is told of a delegation that is over.

use domain::{
    event::{DelegationDelivered, DelegationRequested},
    message::{ToolCall, ToolMessage, ToolStatus},
    status_contract::{self, SubagentStatus, TaskOutcome},
    tool_spec::TASK_TOOL,
};

use crate::subagent::Trail;

/// What a lead is told whose own wait ran out. The subagent's tokens count all the same.
pub(super) fn out_of_patience(request: &DelegationRequested, ended: TaskOutcome) -> TaskOutcome {
    let detail = status_contract::polling_timed_out_detail(request.timeout_seconds, ended.status.as_str());
    TaskOutcome { status: SubagentStatus::PollingTimedOut, detail: Some(detail), ..ended }
}

/// What is recorded of it.
pub(super) fn delivered(request: &DelegationRequested, outcome: &TaskOutcome) -> DelegationDelivered {
    let read = status_contract::read(&outcome.metadata());
    let brief = read.as_ref().and_then(|read| read.result.as_ref());
    DelegationDelivered {
        task_id: request.task_id.clone(),
        status: outcome.status,
        result_brief: brief.map(|brief| brief.text.clone()),
        result_sha256: brief.and_then(|brief| brief.sha256.clone()),
        error: read.as_ref().and_then(|read| read.error.clone()),
    }
}

/// The tool message that the lead sees. What ended badly says where its partial work is.
pub(super) fn result_message(call: &ToolCall, outcome: &TaskOutcome, trail: Option<&Trail>) -> ToolMessage {
    let mut content = outcome.text();
    let mut additional_kwargs = outcome.metadata();
    if let Some(trail) = trail {
        additional_kwargs.extend(trail.metadata());
        match (outcome.status, trail.citation_line()) {
            (SubagentStatus::Completed, Some(line)) => content.push_str(&format!("\n\n{line}")),
            (SubagentStatus::Completed, None) => {}
            (
                SubagentStatus::Failed
                | SubagentStatus::Cancelled
                | SubagentStatus::TimedOut
                | SubagentStatus::PollingTimedOut,
                _,
            ) => content.push_str(&trail.text()),
        }
    }
    let status = match outcome.status {
        SubagentStatus::Completed => ToolStatus::Success,
        SubagentStatus::Failed
        | SubagentStatus::Cancelled
        | SubagentStatus::TimedOut
        | SubagentStatus::PollingTimedOut => ToolStatus::Error,
    };
    ToolMessage {
        content,
        tool_call_id: call.id.clone(),
        name: TASK_TOOL.to_owned(),
        status,
        additional_kwargs,
    }
}
