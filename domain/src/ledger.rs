//! The ledger: what has been delegated, and what came of it. One entry per delegation.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    citation::Citations,
    event::{DelegationEvent, EndStatus, Event, Logged, SubagentEnded, SubagentEvent},
    ids::{DelegationId, RunId, ToolCallId},
    limits::{BRIEF_CHARS_MAX, LEDGER_DESCRIPTION_CHARS_MAX},
    status_contract::{StopReason, SubagentStatus},
    text,
    usage::Usage,
};

/// Where a delegation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerStatus {
    /// Accepted; waits for a slot.
    Queued,
    /// At work.
    InProgress,
    /// A usable answer.
    Completed,
    /// Something went wrong.
    Failed,
    /// Stopped from outside.
    Cancelled,
    /// Out of time.
    TimedOut,
    /// The lead's own wait ran out.
    PollingTimedOut,
    /// Never begun.
    Refused,
}

impl LedgerStatus {
    /// Whether it can still change.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Queued | Self::InProgress => false,
            Self::Completed
            | Self::Failed
            | Self::Cancelled
            | Self::TimedOut
            | Self::PollingTimedOut
            | Self::Refused => true,
        }
    }

    /// The name in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::PollingTimedOut => "polling_timed_out",
            Self::Refused => "refused",
        }
    }
}

impl From<EndStatus> for LedgerStatus {
    fn from(status: EndStatus) -> Self {
        match status {
            EndStatus::Completed => Self::Completed,
            EndStatus::Failed => Self::Failed,
            EndStatus::Cancelled => Self::Cancelled,
            EndStatus::TimedOut => Self::TimedOut,
        }
    }
}

/// One delegation in the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// The provider's id of the `task` call; may repeat across runs.
    pub task_id: ToolCallId,
    /// The key.
    pub delegation_id: DelegationId,
    /// The run whose lead asked.
    pub run_id: RunId,
    /// What the lead calls it; the prompt where it gave no name.
    pub description: String,
    /// The kind of subagent, as asked for.
    pub subagent_type: String,
    /// Where it stands.
    pub status: LedgerStatus,
    /// The guard that ended it early.
    pub stop_reason: Option<StopReason>,
    /// The brief of the result.
    pub result_brief: Option<String>,
    /// SHA-256 of the whole result, in hexadecimal.
    pub result_sha256: Option<String>,
    /// What went wrong, or why it was refused.
    pub error: Option<String>,
    /// Its model.
    pub model_name: Option<String>,
    /// Its tokens, where reported.
    pub usage: Option<Usage>,
    /// What became of the citations of its result.
    #[serde(default)]
    pub citations: Option<Citations>,
    /// When the lead asked.
    pub requested_at: Timestamp,
    /// When it began to wait.
    pub queued_at: Option<Timestamp>,
    /// When it began to work.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Whether the lead has its answer.
    pub delivered: bool,
    /// The `seq` of the first event about it: the ledger's order.
    pub first_seq: u64,
    /// The `seq` of the newest event about it.
    pub last_seq: u64,
}

impl LedgerEntry {
    /// The entry after an event of its delegation. Events that say nothing to the ledger leave it
    /// as it was; a terminal status never goes back.
    pub fn fold(entry: Option<Self>, logged: &Logged) -> Option<Self> {
        match &logged.event {
            Event::Delegation(event) => Self::fold_delegation(entry, logged, event),
            Event::Subagent(event) => entry.map(|entry| entry.with_subagent(logged, event)),
            Event::Thread(_)
            | Event::Run(_)
            | Event::Model(_)
            | Event::Tool(_)
            | Event::Registry(_)
            | Event::Foreign(_) => entry,
        }
    }

    fn fold_delegation(entry: Option<Self>, logged: &Logged, event: &DelegationEvent) -> Option<Self> {
        let mut entry = match (entry, event) {
            (Some(entry), _) => entry,
            (None, DelegationEvent::Requested(request)) => {
                let name =
                    if request.description.is_empty() { &request.prompt } else { &request.description };
                let mut entry = Self::first(logged, &request.task_id, name, request.subagent_type.as_str())?;
                entry.model_name = Some(request.model_name.clone());
                entry
            }
            (None, DelegationEvent::Refused(refused)) => {
                Self::first(logged, &refused.task_id, &refused.description, &refused.subagent_type)?
            }
            (
                None,
                DelegationEvent::Queued(_) | DelegationEvent::Admitted(_) | DelegationEvent::Delivered(_),
            ) => {
                return None;
            }
        };
        entry.last_seq = logged.seq;
        entry.take_delegation(logged, event);
        Some(entry)
    }

    fn first(logged: &Logged, task_id: &ToolCallId, name: &str, subagent_type: &str) -> Option<Self> {
        Some(Self {
            task_id: task_id.clone(),
            delegation_id: logged.scope.delegation_id?,
            run_id: logged.scope.run_id.clone()?,
            description: text::prefix(name, LEDGER_DESCRIPTION_CHARS_MAX).text,
            subagent_type: subagent_type.to_owned(),
            status: LedgerStatus::Queued,
            stop_reason: None,
            result_brief: None,
            result_sha256: None,
            error: None,
            model_name: None,
            usage: None,
            citations: None,
            requested_at: logged.recorded_at,
            queued_at: None,
            started_at: None,
            ended_at: None,
            delivered: false,
            first_seq: logged.seq,
            last_seq: logged.seq,
        })
    }

    fn take_delegation(&mut self, logged: &Logged, event: &DelegationEvent) {
        match event {
            DelegationEvent::Requested(_) => {}
            DelegationEvent::Queued(_) => self.queued_at = Some(logged.recorded_at),
            DelegationEvent::Admitted(_) if self.status == LedgerStatus::Queued => {
                self.status = LedgerStatus::InProgress;
                self.started_at = Some(logged.recorded_at);
            }
            DelegationEvent::Admitted(_) => {}
            DelegationEvent::Refused(refused) if !self.status.is_terminal() => {
                self.status = LedgerStatus::Refused;
                self.error = Some(refused.message.clone());
                self.ended_at = Some(logged.recorded_at);
            }
            DelegationEvent::Refused(_) => {}
            DelegationEvent::Delivered(delivered) => {
                self.delivered = true;
                if delivered.status == SubagentStatus::PollingTimedOut {
                    self.status = LedgerStatus::PollingTimedOut;
                    self.error.clone_from(&delivered.error);
                }
            }
        }
    }

    fn with_subagent(mut self, logged: &Logged, event: &SubagentEvent) -> Self {
        self.last_seq = logged.seq;
        match event {
            SubagentEvent::Ended(end) if !self.status.is_terminal() => self.take_end(logged, end),
            SubagentEvent::Message(captured) => {
                Usage::add_to(&mut self.usage, captured.message.as_assistant().and_then(|reply| reply.usage));
            }
            SubagentEvent::Compacted(compacted) => {
                Usage::add_to(&mut self.usage, compacted.compaction.usage());
            }
            SubagentEvent::Ended(_)
            | SubagentEvent::Started(_)
            | SubagentEvent::Step(_)
            | SubagentEvent::Receipt(_)
            | SubagentEvent::Capped(_) => {}
        }
        self
    }

    fn take_end(&mut self, logged: &Logged, end: &SubagentEnded) {
        let brief = |text: &String| text::head_and_tail(text.trim(), BRIEF_CHARS_MAX).text;
        self.status = end.status.into();
        self.stop_reason = end.stop_reason;
        self.result_brief = end.result.as_ref().map(brief);
        self.result_sha256.clone_from(&end.result_sha256);
        self.error = end.error.as_ref().map(brief);
        self.usage = Usage::latest(self.usage, end.usage);
        self.citations.clone_from(&end.citations);
        self.ended_at = Some(logged.recorded_at);
    }
}

#[cfg(test)]
mod tests;
