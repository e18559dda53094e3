//! Ledger entries and cards from a plain list of events (facts §9.3, §9.6 and §11.2; chain facts (b)).

use domain::{
    card::{Card, CardHead},
    event::{
        CompactionOutcome, DelegationDelivered, DelegationEvent, DelegationRefused, DelegationRequested,
        EndStatus, Event, Logged, SubagentEnded, SubagentEvent,
    },
    ids::{DelegationId, RunId},
    ledger::{LedgerEntry, LedgerStatus},
    message::AssistantMessage,
    status_contract::SubagentStatus,
    usage::Usage,
};

use super::{chars, is_of_run, spent};
use crate::TaskRef;

pub(super) fn ledger(facts: &[&Logged], run: Option<&RunId>) -> Vec<LedgerEntry> {
    let entry = |id| Some(Told::of(facts, id)?.entry());
    delegations(facts, run).into_iter().filter_map(entry).collect()
}

/// Of several with one name the newest is meant.
pub(super) fn card(facts: &[&Logged], run: &RunId, task: &TaskRef) -> Option<Card> {
    let ids = delegations(facts, Some(run)).into_iter().rev();
    let mut newest_first = ids.filter_map(|id| Some(Told::of(facts, id)?.card()));
    newest_first.find(|card| match task {
        TaskRef::TaskId(task_id) => card.head.entry.task_id == *task_id,
        TaskRef::DelegationId(id) => card.head.entry.delegation_id == *id,
    })
}

/// The delegations in the order in which they first appear.
fn delegations(facts: &[&Logged], run: Option<&RunId>) -> Vec<DelegationId> {
    let mut seen = Vec::new();
    for fact in facts {
        if let Some(id) = fact.scope.delegation_id
            && run.is_none_or(|run| is_of_run(fact, run))
            && !seen.contains(&id)
        {
            seen.push(id);
        }
    }
    seen
}

/// What was recorded of one delegation that says anything to people.
struct Told<'a> {
    facts: Vec<&'a Logged>,
    first: &'a Logged,
    request: Option<&'a DelegationRequested>,
    refused: Option<(&'a Logged, &'a DelegationRefused)>,
    /// The first one: later ones change nothing.
    end: Option<(&'a Logged, &'a SubagentEnded)>,
    delivered: Option<&'a DelegationDelivered>,
}

impl<'a> Told<'a> {
    fn of(facts: &[&'a Logged], id: DelegationId) -> Option<Self> {
        let is_about = |fact: &&&Logged| {
            fact.scope.delegation_id == Some(id)
                && matches!(fact.event, Event::Delegation(_) | Event::Subagent(_))
        };
        let facts: Vec<_> = facts.iter().filter(is_about).copied().collect();
        let first = *facts.first()?;
        let mut told = Told { facts, first, request: None, refused: None, end: None, delivered: None };
        for fact in &told.facts {
            match &fact.event {
                Event::Delegation(DelegationEvent::Requested(request)) => told.request = Some(request),
                Event::Delegation(DelegationEvent::Refused(refused)) => told.refused = Some((fact, refused)),
                Event::Delegation(DelegationEvent::Delivered(delivered)) => told.delivered = Some(delivered),
                Event::Subagent(SubagentEvent::Ended(end)) => {
                    told.end.get_or_insert((fact, end));
                }
                _ => {}
            }
        }
        Some(told)
    }

    fn admitted(&self) -> Option<&Logged> {
        let is_it = |fact: &&&Logged| matches!(fact.event, Event::Delegation(DelegationEvent::Admitted(_)));
        self.facts.iter().find(is_it).copied()
    }

    fn polling_timed_out(&self) -> Option<&DelegationDelivered> {
        self.delivered.filter(|delivered| delivered.status == SubagentStatus::PollingTimedOut)
    }

    /// A terminal status never goes back; the lead's own wait may run out on one that has ended.
    fn status(&self) -> LedgerStatus {
        if self.polling_timed_out().is_some() {
            return LedgerStatus::PollingTimedOut;
        }
        match (self.refused, self.end) {
            (Some(_), _) => LedgerStatus::Refused,
            (None, Some((_, end))) => match end.status {
                EndStatus::Completed => LedgerStatus::Completed,
                EndStatus::Failed => LedgerStatus::Failed,
                EndStatus::Cancelled => LedgerStatus::Cancelled,
                EndStatus::TimedOut => LedgerStatus::TimedOut,
            },
            (None, None) if self.admitted().is_some() => LedgerStatus::InProgress,
            (None, None) => LedgerStatus::Queued,
        }
    }

    fn error(&self) -> Option<String> {
        if let Some(delivered) = self.polling_timed_out() {
            return delivered.error.clone();
        }
        if let Some((_, refused)) = self.refused {
            return Some(refused.message.clone());
        }
        self.end.and_then(|(_, end)| end.error.as_deref().map(brief))
    }

    /// Named by its request, or by its refusal where there was no request.
    fn named(&self) -> (String, String, Option<String>) {
        if let Some(request) = self.request {
            let name = if request.description.is_empty() { &request.prompt } else { &request.description };
            let model = Some(request.model_name.clone());
            return (chars(name, 200), request.subagent_type.to_string(), model);
        }
        let (_, refused) = self.refused.expect("a delegation begins with its request or its refusal");
        (chars(&refused.description, 200), refused.subagent_type.clone(), None)
    }

    /// Usage is cumulative: an end that says less than the replies add up to came late.
    fn usage(&self) -> Option<Usage> {
        let replies = spent(&self.facts, |_| true);
        let end = self.end.and_then(|(_, end)| end.usage);
        match (replies, end) {
            (Some(replies), Some(end)) if end.total_tokens < replies.total_tokens => Some(replies),
            (replies, None) => replies,
            (_, Some(end)) => Some(end),
        }
    }

    fn entry(&self) -> LedgerEntry {
        let (description, subagent_type, model_name) = self.named();
        let at = |fact: &Logged| fact.recorded_at;
        let queued = self
            .facts
            .iter()
            .find(|fact| matches!(fact.event, Event::Delegation(DelegationEvent::Queued(_))));
        let end = self.end.map(|(_, end)| end);
        LedgerEntry {
            task_id: self.task_id(),
            delegation_id: self.first.scope.delegation_id.unwrap(),
            run_id: self.first.scope.run_id.clone().unwrap(),
            description,
            subagent_type,
            status: self.status(),
            stop_reason: end.and_then(|end| end.stop_reason),
            result_brief: end.and_then(|end| end.result.as_deref()).map(brief),
            result_sha256: end.and_then(|end| end.result_sha256.clone()),
            error: self.error(),
            model_name,
            usage: self.usage(),
            citations: end.and_then(|end| end.citations.clone()),
            requested_at: at(self.first),
            queued_at: queued.map(|fact| at(fact)),
            started_at: self.admitted().map(at),
            ended_at: self.refused.map(|(fact, _)| at(fact)).or(self.end.map(|(fact, _)| at(fact))),
            delivered: self.delivered.is_some(),
            first_seq: self.first.seq,
            last_seq: self.facts.last().unwrap().seq,
        }
    }

    fn task_id(&self) -> domain::ids::ToolCallId {
        let asked = self.request.map(|request| &request.task_id);
        asked.or(self.refused.map(|(_, refused)| &refused.task_id)).unwrap().clone()
    }

    fn replies(&self) -> Vec<&AssistantMessage> {
        let reply = |fact: &&'a Logged| match &fact.event {
            Event::Subagent(SubagentEvent::Message(captured)) => captured.message.as_assistant(),
            _ => None,
        };
        self.facts.iter().filter_map(reply).collect()
    }

    fn card(&self) -> Card {
        let (mut steps, mut receipts, mut caps, mut compactions) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for fact in &self.facts {
            match &fact.event {
                Event::Subagent(SubagentEvent::Step(step)) => {
                    steps.retain(|known: &domain::event::Step| known.message_index != step.message_index);
                    steps.push(step.clone());
                    steps.sort_by_key(|step| step.message_index);
                }
                Event::Subagent(SubagentEvent::Receipt(receipt)) => {
                    receipts.push((receipt.clone(), fact.seq));
                }
                Event::Subagent(SubagentEvent::Capped(capped)) => {
                    caps.push((capped.cap.clone(), fact.recorded_at, fact.seq));
                }
                Event::Subagent(SubagentEvent::Compacted(compacted)) => {
                    let outcome = &compacted.compaction.outcome;
                    compactions += u32::from(matches!(outcome, CompactionOutcome::Compacted(_)));
                }
                _ => {}
            }
        }
        let calls = self.replies().into_iter().flat_map(|reply| &reply.tool_calls);
        let head = CardHead {
            entry: self.entry(),
            prompt: self.request.map(|request| request.prompt.clone()).unwrap_or_default(),
            turns: u32::try_from(self.replies().len()).unwrap(),
            max_turns: self.request.map_or(0, |request| request.max_turns),
            result: self.end.and_then(|(_, end)| end.result.clone()),
            last_tool: calls.last().map(|call| call.name.clone()),
            steps: steps.last().map_or(0, |step| step.message_index),
            last_receipt: receipts.iter().map(|(receipt, _)| receipt.id).max(),
            caps: u32::try_from(caps.len()).unwrap(),
            compactions,
        };
        Card { head, steps, receipts, caps }
    }
}

/// At most 2,000 characters: two thirds of them from the beginning, and the end.
fn brief(text: &str) -> String {
    let text: Vec<char> = text.trim().chars().collect();
    if text.len() <= 2_000 {
        return text.into_iter().collect();
    }
    let head: String = text[..1_333].iter().collect();
    let tail: String = text[text.len() - 662..].iter().collect();
    format!("{head}\n...\n{tail}")
}
