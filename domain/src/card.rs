//! The card: one delegation as a person looks at it, live or replayed.
//!
//! A card is a small head that changes with every event, and parts that are only ever added: its
//! steps, receipts and caps. A view stores them apart, so that a long card stays cheap to extend.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    event::{Cap, DelegationEvent, Event, Logged, Step, SubagentEvent},
    ledger::LedgerEntry,
    receipt::{Receipt, ReceiptId},
};

/// What changes with every event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CardHead {
    /// What the ledger says of the delegation.
    pub entry: LedgerEntry,
    /// What the subagent was told; empty when the delegation was refused before that.
    pub prompt: String,
    /// Model calls so far.
    pub turns: u32,
    /// Its turn limit; 0 when the delegation was refused.
    pub max_turns: u32,
    /// The whole result or error, cut to the bound of an end; a terminal status has one of them.
    pub result: Option<String>,
    /// The last tool that was asked for.
    pub last_tool: Option<String>,
    /// The highest `message_index` so far: how many messages were captured.
    pub steps: u32,
    /// The newest receipt; they are numbered without a gap.
    pub last_receipt: Option<ReceiptId>,
    /// Guards that fired.
    pub caps: u32,
    /// How often its history was compacted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub compactions: u32,
}

/// What is only ever added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", content = "of", rename_all = "snake_case")]
pub enum CardPart {
    /// A captured message.
    Step(Step),
    /// Evidence of a tool call.
    Receipt {
        /// The evidence.
        receipt: Receipt,
        /// Its event's `seq`.
        seq: u64,
    },
    /// A guard that fired.
    Cap {
        /// What fired.
        cap: Cap,
        /// When.
        at: Timestamp,
        /// Its event's `seq`.
        seq: u64,
    },
}

/// One delegation, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// What changes with every event.
    pub head: CardHead,
    /// Captured messages, by `message_index`.
    pub steps: Vec<Step>,
    /// Evidence with its `seq`, in the order in which it was recorded.
    pub receipts: Vec<(Receipt, u64)>,
    /// Guards that fired, with when and their `seq`.
    pub caps: Vec<(Cap, Timestamp, u64)>,
}

/// Rows from before compactions were counted stay as they are.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl CardHead {
    /// The head after an event of its delegation. The first ending stands.
    pub fn fold(head: Option<Self>, logged: &Logged) -> Option<Self> {
        let is_over = head.as_ref().is_some_and(|head| head.entry.status.is_terminal());
        let mut folded = match head {
            Some(mut head) => {
                head.entry = LedgerEntry::fold(Some(head.entry), logged)?;
                head
            }
            None => Self::new(LedgerEntry::fold(None, logged)?),
        };
        if !(is_over && matches!(logged.event, Event::Subagent(SubagentEvent::Ended(_)))) {
            folded.take_event(&logged.event);
        }
        Some(folded)
    }

    const fn new(entry: LedgerEntry) -> Self {
        Self {
            entry,
            prompt: String::new(),
            turns: 0,
            max_turns: 0,
            result: None,
            last_tool: None,
            steps: 0,
            last_receipt: None,
            caps: 0,
            compactions: 0,
        }
    }

    fn take_event(&mut self, event: &Event) {
        match event {
            Event::Delegation(DelegationEvent::Requested(request)) => {
                self.prompt.clone_from(&request.prompt);
                self.max_turns = request.max_turns;
            }
            Event::Subagent(SubagentEvent::Message(captured)) => {
                if let Some(reply) = captured.message.as_assistant() {
                    self.turns += 1;
                    self.last_tool =
                        reply.tool_calls.last().map(|call| call.name.clone()).or(self.last_tool.take());
                }
            }
            Event::Subagent(SubagentEvent::Step(step)) => self.steps = self.steps.max(step.message_index),
            Event::Subagent(SubagentEvent::Receipt(receipt)) => {
                self.last_receipt = self.last_receipt.max(Some(receipt.id));
            }
            Event::Subagent(SubagentEvent::Capped(_)) => self.caps += 1,
            Event::Subagent(SubagentEvent::Compacted(compacted)) => {
                self.compactions += u32::from(compacted.compaction.compacted().is_some());
            }
            Event::Subagent(SubagentEvent::Ended(end)) => self.result.clone_from(&end.result),
            Event::Delegation(
                DelegationEvent::Refused(_)
                | DelegationEvent::Queued(_)
                | DelegationEvent::Admitted(_)
                | DelegationEvent::Delivered(_),
            )
            | Event::Subagent(SubagentEvent::Started(_))
            | Event::Thread(_)
            | Event::Run(_)
            | Event::Model(_)
            | Event::Tool(_)
            | Event::Registry(_)
            | Event::Foreign(_) => {}
        }
    }
}

impl CardPart {
    /// The part that an event adds, if it adds one.
    pub fn of(logged: &Logged) -> Option<Self> {
        let Event::Subagent(event) = &logged.event else { return None };
        match event {
            SubagentEvent::Step(step) => Some(Self::Step(step.clone())),
            SubagentEvent::Receipt(receipt) => {
                Some(Self::Receipt { receipt: receipt.clone(), seq: logged.seq })
            }
            SubagentEvent::Capped(capped) => {
                Some(Self::Cap { cap: capped.cap.clone(), at: logged.recorded_at, seq: logged.seq })
            }
            SubagentEvent::Started(_)
            | SubagentEvent::Message(_)
            | SubagentEvent::Compacted(_)
            | SubagentEvent::Ended(_) => None,
        }
    }
}

impl Card {
    /// Puts a card together. Steps merge by `message_index`, the later one wins (facts §11.2).
    pub fn assemble(head: CardHead, parts: impl IntoIterator<Item = CardPart>) -> Self {
        let mut card = Self { head, steps: Vec::new(), receipts: Vec::new(), caps: Vec::new() };
        for part in parts {
            card.add(part);
        }
        card
    }

    /// The card that a delegation's events make, in the order of their `seq`.
    pub fn of_events<'a>(events: impl IntoIterator<Item = &'a Logged>) -> Option<Self> {
        let (mut head, mut parts) = (None, Vec::new());
        for logged in events {
            head = CardHead::fold(head, logged);
            parts.extend(CardPart::of(logged));
        }
        head.map(|head| Self::assemble(head, parts))
    }

    fn add(&mut self, part: CardPart) {
        match part {
            CardPart::Step(step) => {
                match self.steps.binary_search_by_key(&step.message_index, |known| known.message_index) {
                    Ok(at) => self.steps.splice(at..=at, [step]).for_each(drop),
                    Err(at) => self.steps.insert(at, step),
                }
            }
            CardPart::Receipt { receipt, seq } => self.receipts.push((receipt, seq)),
            CardPart::Cap { cap, at, seq } => self.caps.push((cap, at, seq)),
        }
    }
}

#[cfg(test)]
mod tests;
