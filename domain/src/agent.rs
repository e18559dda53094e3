//! The agent, lead or sub: recorded history in, next effect out.
//!
//! It does no I/O and knows no provider, so the same history asks for the same effect whether it
//! has just happened, is resumed after a crash, or is replayed to check a recording.

mod conclusion;
mod conversation;
mod delegated;
mod history;
mod transcript;

use std::collections::BTreeMap;

pub use self::{
    conclusion::Conclusion, conversation::Conversation, delegated::DelegatedTask, history::AgentEvent,
};
use crate::{
    compaction::{CompactionPlan, CompactionRules},
    event::{Cap, CapAction, CapAxis, RefusalReason, RunStopReason},
    guard::{self, GuardLimits, Guarded, Guards, notes, tool_progress::Stalled},
    message::{AssistantMessage, Message, ToolCall, ToolMessage},
    prompt::{DURABLE_CONTEXT_CONTRACT, durable_context},
    sanitise,
    tool_spec::TASK_TOOL,
};

/// Who an agent is, which decides what of its conversation is whose words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentRole {
    /// Talks to a person and may delegate.
    Lead,
    /// Works for a lead and may not delegate.
    Subagent,
}

/// What to do next in the world.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Replace the older part of the conversation by a summary, and record what came of it.
    Compact(Box<CompactionPlan>),
    /// Ask the model, with [`Agent::request`].
    CallModel,
    /// Run these calls of the last reply; their results are recorded in this order.
    RunTools(Vec<PendingCall>),
    /// Nothing is left to do.
    Finish(Conclusion),
}

/// A tool call without a result.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingCall {
    /// The call.
    pub call: ToolCall,
    /// Whether it was started before, so that nobody knows what it did.
    pub was_started: bool,
}

/// An agent, as far as its history tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    role: AgentRole,
    max_turns: u32,
    /// What the framework tells it.
    system: Vec<String>,
    /// What was said, in earlier runs of the thread too.
    conversation: Conversation,
    /// Model calls of this run or delegation.
    turns: u32,
    /// Delegations that this run has requested.
    delegations: u32,
    /// Calls of the last reply that were started.
    started: Vec<String>,
    /// Calls of the last reply that were dropped: the model is told, until a reply shows that it
    /// was.
    dropped: BTreeMap<RefusalReason, u32>,
    caps: Vec<Cap>,
    compaction: Option<CompactionRules>,
    /// Whether a compaction was carried out, or failed, since the last reply: it is tried once
    /// before each.
    is_compaction_tried: bool,
    guards: Guards,
}

impl Agent {
    /// An agent at the beginning of a run or delegation. `earlier` is the conversation before it,
    /// of which no guard counts anything.
    pub fn new(role: AgentRole, max_turns: u32, earlier: Conversation) -> Self {
        Self {
            role,
            max_turns,
            system: Vec::new(),
            conversation: earlier,
            turns: 0,
            delegations: 0,
            started: Vec::new(),
            dropped: BTreeMap::new(),
            caps: Vec::new(),
            compaction: None,
            is_compaction_tried: false,
            guards: Guards::default(),
        }
    }

    /// The same agent, held to these limits.
    #[must_use]
    pub fn guarded_by(self, limits: GuardLimits) -> Self {
        Self { compaction: limits.compaction.clone(), guards: Guards::new(limits), ..self }
    }

    /// Takes one recorded fact into the state.
    pub fn evolve(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Said(message) => {
                if message.as_assistant().is_some() {
                    self.turns += 1;
                    self.started.clear();
                    self.dropped.clear();
                    self.is_compaction_tried = false;
                }
                self.guards.observe(&message);
                match *message {
                    Message::System(system) => self.system.push(system.content),
                    message @ (Message::Human(_) | Message::Assistant(_) | Message::Tool(_)) => {
                        self.conversation.say(message);
                    }
                }
            }
            AgentEvent::Delegated => self.delegations += 1,
            AgentEvent::ToolStarted(tool_call_id) => self.started.push(tool_call_id),
            AgentEvent::CallDropped(reason) => *self.dropped.entry(reason).or_default() += 1,
            AgentEvent::Capped(cap) => self.caps.push(cap),
            AgentEvent::Compacted(compaction) => {
                self.is_compaction_tried = true;
                self.conversation.compact(&compaction);
            }
        }
    }

    /// What to do next.
    pub fn next_effect(&self) -> Effect {
        let pending = self.pending_calls();
        if !pending.is_empty() {
            return Effect::RunTools(pending);
        }
        if self.is_answered() || self.is_out_of_turns() {
            return Effect::Finish(conclusion::conclude(self));
        }
        self.compaction_plan().map_or(Effect::CallModel, |plan| Effect::Compact(Box::new(plan)))
    }

    /// The cap to record before finishing, when the turns are what ended the work.
    pub fn turn_cap(&self) -> Option<Cap> {
        let is_capped = self.is_out_of_turns() && !self.is_answered() && self.pending_calls().is_empty();
        let is_recorded =
            self.caps.iter().any(|cap| cap.axis == CapAxis::Turns && cap.action == CapAction::Stop);
        (is_capped && !is_recorded).then_some(Cap {
            axis: CapAxis::Turns,
            action: CapAction::Stop,
            used: u64::from(self.turns),
            budget: u64::from(self.max_turns),
        })
    }

    /// The conversation as the model is to see it: one leading system message, which strict
    /// providers ask for, what a compacted conversation was about, user turns framed, results of
    /// subagents neutralised.
    pub fn request(&self) -> Vec<Message> {
        let durable = self.durable_context();
        let contract = durable.is_some().then(|| DURABLE_CONTEXT_CONTRACT.to_owned());
        let notes = self.dropped.iter().map(|(reason, count)| notes::calls_dropped(*reason, *count));
        let notes = notes.chain(self.guards.notes());
        let system: Vec<String> = self.system.iter().cloned().chain(contract).chain(notes).collect();
        let spoken = self.messages().iter().map(shown_to_model);
        let spoken = transcript::repaired(spoken.collect());
        let leading = (!system.is_empty()).then(|| Message::system(system.join("\n\n")));
        leading.into_iter().chain(durable.map(Message::human)).chain(spoken).collect()
    }

    /// What is to be told again because it no longer stands in the conversation; nothing before
    /// that is compacted for the first time (chain facts §1.3).
    fn durable_context(&self) -> Option<String> {
        let summary = self.conversation.summary()?;
        let delegated = match self.role {
            AgentRole::Lead => self.conversation.delegated(),
            AgentRole::Subagent => &[],
        };
        durable_context(Some(summary), delegated)
    }

    /// What to do about a conversation that is too long, once before each call of the model.
    fn compaction_plan(&self) -> Option<CompactionPlan> {
        let rules = self.compaction.as_ref().filter(|_| !self.is_compaction_tried)?;
        let reported = self.last_reply().and_then(|reply| reply.usage).map(|usage| usage.total_tokens);
        rules.plan(&self.conversation, reported)
    }

    /// A reply that is not yet recorded, after the guards.
    pub fn guard(&self, reply: AssistantMessage) -> Guarded {
        self.guards.apply(reply, self.delegations)
    }

    /// What stands in place of the result of a call that the guards do not let run.
    pub fn refuse_call(&self, call: &ToolCall) -> Option<String> {
        self.guards.refuse(call)
    }

    /// What the guards say of a tool's result that is not yet recorded.
    pub fn guard_result(&self, result: &ToolMessage) -> Option<Stalled> {
        self.guards.returned(result)
    }

    /// Model calls so far.
    pub const fn turns(&self) -> u32 {
        self.turns
    }

    /// Delegations that this run has requested so far; refused ones do not count.
    pub const fn delegations(&self) -> u32 {
        self.delegations
    }

    /// Whether the agent has been told what to do.
    pub fn is_briefed(&self) -> bool {
        !self.messages().is_empty()
    }

    /// The guards that fired so far.
    pub fn caps(&self) -> &[Cap] {
        &self.caps
    }

    /// Who the agent is.
    pub const fn role(&self) -> AgentRole {
        self.role
    }

    /// Why a lead stopped early, as far as its caps tell; the last one stands (chain facts §0). Where
    /// none ended anything, an answer may have been cut.
    pub fn run_stop_reason(&self) -> Option<RunStopReason> {
        let is_cut = || {
            let is_checked = self.guards.last_words().are_for_a_person() && self.is_answered();
            (is_checked && self.last_reply().is_some_and(guard::is_cut))
                .then_some(RunStopReason::ModelLengthCapped)
        };
        self.capped_reason().or_else(is_cut)
    }

    fn capped_reason(&self) -> Option<RunStopReason> {
        self.caps.iter().rev().find(|cap| cap.action == CapAction::Stop).and_then(|cap| match cap.axis {
            CapAxis::Turns => Some(RunStopReason::TurnCapped),
            CapAxis::Tokens => Some(RunStopReason::TokenCapped),
            CapAxis::Loop => Some(RunStopReason::LoopCapped),
            CapAxis::Delegations => Some(RunStopReason::SubagentLimitCapped),
            CapAxis::Safety => Some(RunStopReason::SafetyCapped),
            CapAxis::Time | CapAxis::Depth | CapAxis::Retries => None,
        })
    }

    /// The last reply of this run or delegation, if there was one.
    fn last_reply(&self) -> Option<&AssistantMessage> {
        (self.turns > 0).then(|| self.messages().iter().rev().find_map(Message::as_assistant)).flatten()
    }

    /// Whether the last word is a reply that asks for nothing, and that nobody asks for again.
    fn is_answered(&self) -> bool {
        let last = self.messages().last().and_then(Message::as_assistant);
        self.turns > 0
            && !self.guards.is_asking_again()
            && last.is_some_and(|reply| reply.tool_calls.is_empty())
    }

    fn messages(&self) -> &[Message] {
        self.conversation.messages()
    }

    const fn is_out_of_turns(&self) -> bool {
        self.turns >= self.max_turns
    }

    /// The calls of the last reply that have no result yet, in call order. Ids pair calls and
    /// results within one turn only, because providers reuse them; a repeated id inside a turn is
    /// consumed first in, first out (chain facts §2.6).
    fn pending_calls(&self) -> Vec<PendingCall> {
        let Some(reply) = self.last_reply() else { return Vec::new() };
        let mut answered: Vec<&str> = self.messages().iter().rev().map_while(tool_call_id).collect();
        let mut started: Vec<&str> = self.started.iter().map(String::as_str).collect();
        let is_open = |call: &&ToolCall| !take(&mut answered, &call.id);
        let open: Vec<&ToolCall> = reply.tool_calls.iter().filter(is_open).collect();
        let pending =
            |call: &ToolCall| PendingCall { was_started: take(&mut started, &call.id), call: call.clone() };
        open.into_iter().map(pending).collect()
    }
}

/// Removes one occurrence and says whether there was one.
fn take(ids: &mut Vec<&str>, id: &str) -> bool {
    ids.iter().position(|other| *other == id).map(|at| ids.swap_remove(at)).is_some()
}

fn tool_call_id(message: &Message) -> Option<&str> {
    match message {
        Message::Tool(result) => Some(&result.tool_call_id),
        Message::System(_) | Message::Human(_) | Message::Assistant(_) => None,
    }
}

/// Text that people or subagents influence loses what could pass for the framework's own words.
fn shown_to_model(message: &Message) -> Message {
    let mut shown = message.clone();
    match &mut shown {
        Message::Human(human) => human.content = sanitise::frame(&human.content),
        Message::Tool(result) if result.name == TASK_TOOL => {
            result.content = sanitise::neutralise(&result.content);
        }
        Message::System(_) | Message::Assistant(_) | Message::Tool(_) => {}
    }
    shown
}

#[cfg(test)]
mod tests;
