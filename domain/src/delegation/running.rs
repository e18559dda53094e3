//! A delegation at work: what it has done so far, and how it ends.

use super::{
    DelegationRejection,
    command::{DelegationCommand, DelegationEnding, ReceiptDraft},
};
use crate::{
    citation::{Citations, Cited},
    digest::sha256_hex,
    event::{
        CancelReason, DelegationRequested, EndStatus, Event, SubagentCapped, SubagentCompaction,
        SubagentEnded, SubagentEvent, SubagentMessage, ToolStarted,
    },
    message::{Message, ToolMessage, ToolStatus},
    receipt::{ReceiptId, ReceiptOutcome},
    step,
    usage::Usage,
};

/// A delegation at work, and what it has done so far.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningDelegation {
    /// What was asked.
    pub request: DelegationRequested,
    /// Model calls so far.
    pub turns: u32,
    /// Captured messages so far.
    pub steps: u32,
    /// Tool calls that ended so far.
    pub receipts: u32,
    /// Tokens so far.
    pub usage: Option<Usage>,
    /// The evidence so far, oldest first.
    evidence: Vec<Cited>,
    /// How much of it there was when the model replied last: what its report may cite.
    citable: usize,
    /// Tool calls that were started and have not ended.
    started: Vec<ToolStarted>,
}

impl RunningDelegation {
    pub(super) fn new(request: &DelegationRequested) -> Self {
        Self {
            request: request.clone(),
            turns: 0,
            steps: 0,
            receipts: 0,
            usage: None,
            evidence: Vec::new(),
            citable: 0,
            started: Vec::new(),
        }
    }

    pub(super) fn decide(&self, command: DelegationCommand) -> Result<Vec<Event>, DelegationRejection> {
        use DelegationCommand as C;
        match command {
            C::Record { message, receipt } => Ok(self.recorded(*message, receipt)),
            C::Cap(cap) => {
                let task_id = self.request.task_id.clone();
                Ok(vec![Event::Subagent(SubagentEvent::Capped(SubagentCapped { task_id, cap }))])
            }
            C::Compact(compaction) => {
                let task_id = self.request.task_id.clone();
                let compaction = SubagentCompaction { task_id, compaction: *compaction };
                Ok(vec![Event::Subagent(SubagentEvent::Compacted(compaction))])
            }
            C::End(ending) => Ok(self.ended(ending)),
            C::Request(_) => Err(DelegationRejection::AlreadyRequested),
            C::Queue { .. } | C::Admit { .. } | C::Refuse(_) => Err(DelegationRejection::AlreadyRunning),
            C::Deliver(_) => Err(DelegationRejection::NotEnded),
        }
    }

    pub(super) fn evolve(&mut self, event: &SubagentEvent) {
        match event {
            SubagentEvent::Message(captured) => {
                self.forget_started(&captured.message);
                let reply = captured.message.as_assistant();
                if reply.is_some() {
                    self.turns += 1;
                    self.citable = self.evidence.len();
                }
                Usage::add_to(&mut self.usage, reply.and_then(|reply| reply.usage));
            }
            SubagentEvent::Step(step) => self.steps = step.message_index,
            SubagentEvent::Receipt(receipt) => {
                self.receipts = receipt.id.number();
                self.evidence.push(Cited::from(receipt));
            }
            SubagentEvent::Compacted(compacted) => {
                Usage::add_to(&mut self.usage, compacted.compaction.usage());
            }
            SubagentEvent::Started(_) | SubagentEvent::Capped(_) | SubagentEvent::Ended(_) => {}
        }
    }

    pub(super) fn evolve_started(&mut self, started: &ToolStarted) {
        // A call that was started again after a crash is still one call.
        self.started.retain(|known| known.tool_call_id != started.tool_call_id);
        self.started.push(started.clone());
    }

    fn forget_started(&mut self, message: &Message) {
        if let Message::Tool(result) = message {
            self.started.retain(|started| started.tool_call_id.as_str() != result.tool_call_id);
        }
    }

    /// The message, what people see of it, and the evidence: recorded together or not at all.
    fn recorded(&self, message: Message, receipt: Option<Box<ReceiptDraft>>) -> Vec<Event> {
        let task_id = &self.request.task_id;
        let step = step::capture(task_id, self.steps + 1, &message);
        let receipt =
            receipt.map(|draft| draft.numbered(task_id.clone(), ReceiptId::numbered(self.receipts + 1)));
        let whole = SubagentMessage { task_id: task_id.clone(), message };
        let mut events = vec![Event::Subagent(SubagentEvent::Message(whole))];
        events.extend(step.map(|step| Event::Subagent(SubagentEvent::Step(step))));
        events.extend(receipt.map(|receipt| Event::Subagent(SubagentEvent::Receipt(receipt))));
        events
    }

    /// The end, after an account of every call that was stopped while it ran: what it did is
    /// unknown, and its receipt says so.
    pub(super) fn ended(&self, ending: DelegationEnding) -> Vec<Event> {
        let mut running = self.clone();
        let mut events = Vec::new();
        for started in &self.started {
            let (message, receipt) = stopped(started);
            let recorded = running.recorded(message, Some(Box::new(receipt)));
            for event in &recorded {
                if let Event::Subagent(event) = event {
                    running.evolve(event);
                }
            }
            events.extend(recorded);
        }
        events.push(running.end(ending));
        events
    }

    fn end(&self, ending: DelegationEnding) -> Event {
        let mut end = SubagentEnded {
            task_id: self.request.task_id.clone(),
            status: EndStatus::Completed,
            model_name: Some(self.request.model_name.clone()),
            usage: self.usage,
            result: None,
            result_truncated: false,
            result_sha256: None,
            error: None,
            error_truncated: false,
            stop_reason: None,
            cancel_reason: None,
            citations: self.citations(&ending),
            turns: self.turns,
            steps: self.steps,
            receipts: self.receipts,
        };
        end.take(ending);
        Event::Subagent(SubagentEvent::Ended(end))
    }
}

impl RunningDelegation {
    /// Only a usable result has citations to check (facts §3.10).
    fn citations(&self, ending: &DelegationEnding) -> Option<Citations> {
        let DelegationEnding::Completed { result, .. } = ending else { return None };
        if !self.request.receipts_enabled {
            return Some(Citations::OFF);
        }
        Some(Citations::check(result, self.evidence.get(..self.citable).unwrap_or_default()))
    }
}

/// What is known of a call that was stopped while it ran.
fn stopped(started: &ToolStarted) -> (Message, ReceiptDraft) {
    let name = &started.tool_name;
    let content = format!("Error: {name} was stopped while it ran, and what it did until then is unknown.");
    let receipt = ReceiptDraft {
        tool_name: name.clone(),
        tool_call_id: started.tool_call_id.to_string(),
        args_sha256: started.args_sha256.clone(),
        output_sha256: sha256_hex(content.as_bytes()),
        output_bytes: content.len() as u64,
        outcome: ReceiptOutcome::Unknown,
        started_at: started.started_at,
        // Nobody saw it end.
        duration_ms: 0,
    };
    let message = ToolMessage {
        content,
        tool_call_id: started.tool_call_id.to_string(),
        name: name.clone(),
        status: ToolStatus::Error,
        ..ToolMessage::default()
    };
    (Message::Tool(message), receipt)
}

impl SubagentEnded {
    fn take(&mut self, ending: DelegationEnding) {
        match ending {
            DelegationEnding::Completed { result, stop_reason } => {
                self.stop_reason = stop_reason;
                self.result_sha256 = Some(sha256_hex(result.as_bytes()));
                let bounded = step::bounded_end_text(&result);
                (self.result, self.result_truncated) = (Some(bounded.text), bounded.is_truncated);
            }
            DelegationEnding::Failed { error, stop_reason } => {
                self.stop_reason = stop_reason;
                self.fail(EndStatus::Failed, &error);
            }
            DelegationEnding::Cancelled(reason) => {
                self.cancel_reason = Some(reason);
                self.fail(EndStatus::Cancelled, cancelled_text(reason));
            }
            DelegationEnding::TimedOut { error } => self.fail(EndStatus::TimedOut, &error),
        }
    }

    fn fail(&mut self, status: EndStatus, error: &str) {
        self.status = status;
        let bounded = step::bounded_end_text(error);
        (self.error, self.error_truncated) = (Some(bounded.text), bounded.is_truncated);
    }
}

/// A cancelled run was cancelled by somebody, too (facts §3.6).
const fn cancelled_text(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::CancelledByUser | CancelReason::ParentInterrupted => "Cancelled by user",
        CancelReason::ParentEnded => "Cancelled because its run ended",
    }
}
