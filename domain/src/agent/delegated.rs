//! What a lead has delegated, as its own conversation tells: what it is told again once the
//! messages about it are gone (chain facts (b)).
//!
//! Calls are read from replies, and results from the metadata of `task` results; text is never read
//! for it. An id means the newest call that has it, so that ids which a provider uses again in a
//! later turn or run do not mix two delegations up.

use crate::{
    event::EndStatus,
    ledger::LedgerStatus,
    limits::{LEDGER_DESCRIPTION_CHARS_MAX, SHOWN_DELEGATIONS_MAX},
    message::{Message, ToolCall, ToolMessage},
    status_contract::{self, StopReason, SubagentStatus},
    text,
    tool_spec::TASK_TOOL,
};

/// One `task` call and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegatedTask {
    pub(super) tool_call_id: String,
    /// What the lead called it; the prompt where it gave no name.
    pub description: String,
    /// The kind of subagent, as asked for.
    pub subagent_type: String,
    /// Where it stands.
    pub status: LedgerStatus,
    /// The guard that ended it early.
    pub stop_reason: Option<StopReason>,
    /// The brief of its result or error.
    pub brief: Option<String>,
}

/// Takes one message into the list, oldest first.
pub(super) fn observe(tasks: &mut Vec<DelegatedTask>, message: &Message) {
    match message {
        Message::Assistant(reply) => {
            let asked = reply.tool_calls.iter().filter(|call| call.name == TASK_TOOL && !call.id.is_empty());
            tasks.extend(asked.map(DelegatedTask::asked));
            let over = tasks.len().saturating_sub(SHOWN_DELEGATIONS_MAX);
            tasks.drain(..over);
        }
        Message::Tool(result) if result.name == TASK_TOOL => answer(tasks, result),
        // A run ends before the next request on its thread: what is still open then was cut off.
        Message::Human(_) => tasks.iter_mut().for_each(DelegatedTask::cut_off),
        Message::System(_) | Message::Tool(_) => {}
    }
}

fn answer(tasks: &mut [DelegatedTask], result: &ToolMessage) {
    let is_meant =
        |task: &&mut DelegatedTask| task.tool_call_id == result.tool_call_id && !task.status.is_terminal();
    if let (Some(task), Some(reading)) =
        (tasks.iter_mut().rev().find(is_meant), status_contract::read(&result.additional_kwargs))
    {
        task.status = status(reading.status);
        task.stop_reason = reading.stop_reason;
        task.brief = reading.result.map(|result| result.text).or(reading.error);
    }
}

impl DelegatedTask {
    fn asked(call: &ToolCall) -> Self {
        let name = Some(call.args.text("description")).filter(|name| !name.trim().is_empty());
        let name = name.unwrap_or_else(|| call.args.text("prompt"));
        Self {
            tool_call_id: call.id.clone(),
            description: text::prefix(name, LEDGER_DESCRIPTION_CHARS_MAX).text,
            subagent_type: call.args.text("subagent_type").to_owned(),
            status: LedgerStatus::InProgress,
            stop_reason: None,
            brief: None,
        }
    }

    fn cut_off(&mut self) {
        if !self.status.is_terminal() {
            self.status = LedgerStatus::Cancelled;
        }
    }
}

fn status(status: SubagentStatus) -> LedgerStatus {
    match status {
        SubagentStatus::Completed => EndStatus::Completed.into(),
        SubagentStatus::Failed => EndStatus::Failed.into(),
        SubagentStatus::Cancelled => EndStatus::Cancelled.into(),
        SubagentStatus::TimedOut => EndStatus::TimedOut.into(),
        SubagentStatus::PollingTimedOut => LedgerStatus::PollingTimedOut,
    }
}
