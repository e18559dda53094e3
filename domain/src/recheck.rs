//! Whether what was recorded is what the agents ask for: the outcomes of a thread are folded through
//! them, and before each the effect that led to it must be the one that the agent asks for next.
//!
//! What comes from outside is taken as it is: a cancel, a time-out, a failure that struck an agent at
//! work, and what a guard took out of a reply, because replies are recorded after the guards.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    agent::{Agent, AgentEvent, AgentRole, Conclusion, Conversation, Effect},
    event::{
        Cap, CapAction, CapAxis, Compacted, Compaction, CompactionUnit, DelegationEvent, EndStatus, Event,
        Logged, ModelEvent, RunEvent, RunSettings, RunStatus, RunStopReason, SubagentEnded, SubagentEvent,
        ToolEvent,
    },
    guard::GuardLimits,
    ids::{DelegationId, RunId},
    limits::TOOL_CALL_ID_CHARS_MAX,
    message::Message,
    text,
};

/// Text of a result in a difference is cut to this.
const SHOWN_CHARS_MAX: usize = 80;

/// Folds a thread's events, and compares. Begin with the thread's first event.
#[derive(Debug, Default)]
pub struct Recheck {
    /// The conversation of the runs that have ended.
    earlier: Conversation,
    ended: BTreeSet<RunId>,
    open: BTreeMap<RunId, OpenRun>,
    checked: Rechecked,
}

/// What was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rechecked {
    /// Runs.
    pub runs: u64,
    /// Delegations that were requested.
    pub delegations: u64,
    /// Recorded outcomes whose effect is the one that was asked for.
    pub effects: u64,
}

/// A recorded outcome of an effect that nobody asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("seq {seq}, position {position}: {recorded} was recorded, where the {who} asks to {asked}")]
pub struct Difference {
    /// Where in the thread.
    pub seq: u64,
    /// Where in the log.
    pub position: u64,
    /// The run.
    pub run_id: RunId,
    /// The delegation, where it is a subagent's.
    pub delegation_id: Option<DelegationId>,
    /// Whose effect it is.
    pub who: &'static str,
    /// What was recorded.
    pub recorded: String,
    /// What the agent asks for there.
    pub asked: String,
}

#[derive(Debug)]
struct OpenRun {
    settings: Box<RunSettings>,
    lead: Agent,
    /// What happened to the conversation.
    said: Vec<AgentEvent>,
    subagents: BTreeMap<DelegationId, Agent>,
}

/// What an event says that an agent did.
#[derive(Debug)]
enum Deed<'a> {
    AskedModel,
    Answered(&'a str),
    Started(&'a str),
    Delegated(&'a str),
    UsedUpTurns(&'a Cap),
    Compacted(&'a Compaction),
    Completed { text: &'a str, is_cut: bool },
    Failed { error: &'a str },
    Stopped(Option<RunStopReason>),
}

impl Recheck {
    /// Compares one event, and folds it.
    pub fn take(&mut self, logged: &Logged) -> Result<(), Box<Difference>> {
        let Some(run_id) = logged.scope.run_id.clone().filter(|run_id| !self.ended.contains(run_id)) else {
            return Ok(());
        };
        if let Event::Run(RunEvent::Started(settings)) = &logged.event {
            self.checked.runs += 1;
            let run = OpenRun::new(settings, self.earlier.clone());
            self.open.insert(run_id.clone(), run);
        }
        // Runs that somebody else recorded have no start of ours.
        let Some(run) = self.open.get_mut(&run_id) else { return Ok(()) };
        self.checked.effects += run.compare(&run_id, logged)?;
        self.checked.delegations += u64::from(run.fold(logged));
        if let Event::Run(RunEvent::StatusChanged(changed)) = &logged.event
            && changed.status.is_terminal()
        {
            let over = self.open.remove(&run_id).map(|run| run.said);
            over.into_iter().flatten().for_each(|event| self.earlier.take(event));
            self.ended.insert(run_id);
        }
        Ok(())
    }

    /// What was compared so far.
    pub const fn checked(&self) -> Rechecked {
        self.checked
    }
}

impl OpenRun {
    fn new(settings: &RunSettings, earlier: Conversation) -> Self {
        let lead = Agent::new(AgentRole::Lead, settings.max_turns, earlier)
            .guarded_by(GuardLimits::of_lead(settings));
        Self { settings: Box::new(settings.clone()), lead, said: Vec::new(), subagents: BTreeMap::new() }
    }

    /// How many effects were compared.
    fn compare(&self, run_id: &RunId, logged: &Logged) -> Result<u64, Box<Difference>> {
        let lead = Deed::of_lead(logged).map(|deed| (deed, &self.lead, None));
        let delegation_id = logged.scope.delegation_id;
        let subagent = delegation_id.and_then(|id| self.subagents.get(&id));
        let subagent = subagent
            .and_then(|agent| Deed::of_subagent(&logged.event).map(|deed| (deed, agent, delegation_id)));
        let mut compared = 0;
        for (deed, agent, delegation_id) in lead.into_iter().chain(subagent) {
            deed.compare(agent).map_err(|asked| {
                Box::new(Difference {
                    seq: logged.seq,
                    position: logged.position,
                    run_id: run_id.clone(),
                    delegation_id,
                    who: if delegation_id.is_some() { "subagent" } else { "lead" },
                    recorded: deed.described(),
                    asked,
                })
            })?;
            compared += 1;
        }
        Ok(compared)
    }

    /// Whether a delegation was requested.
    fn fold(&mut self, logged: &Logged) -> bool {
        if is_of_lead(logged) {
            let event = AgentEvent::of_lead(&logged.event);
            if let Some(event @ (AgentEvent::Said(_) | AgentEvent::Compacted(_))) = &event {
                self.said.push(event.clone());
            }
            event.into_iter().for_each(|event| self.lead.evolve(event));
        }
        let Some(id) = logged.scope.delegation_id else { return false };
        if let Some(agent) = self.subagents.get_mut(&id) {
            AgentEvent::of_subagent(&logged.event).into_iter().for_each(|event| agent.evolve(event));
        }
        let Event::Delegation(DelegationEvent::Requested(request)) = &logged.event else { return false };
        let limits = GuardLimits::of_subagent(&self.settings, request);
        let agent =
            Agent::new(AgentRole::Subagent, request.max_turns, Conversation::default()).guarded_by(limits);
        self.subagents.insert(id, agent);
        true
    }
}

/// A tool that a subagent started is not the lead's; a delegation that was requested is.
fn is_of_lead(logged: &Logged) -> bool {
    logged.scope.delegation_id.is_none()
        || matches!(logged.event, Event::Delegation(_) | Event::Model(ModelEvent::ToolResult(_)))
}

impl<'a> Deed<'a> {
    fn of_lead(logged: &'a Logged) -> Option<Self> {
        if !is_of_lead(logged) {
            return None;
        }
        match &logged.event {
            Event::Model(ModelEvent::AiResponse(_) | ModelEvent::Failed(_) | ModelEvent::Retried(_)) => {
                Some(Self::AskedModel)
            }
            Event::Model(ModelEvent::ToolResult(Message::Tool(result))) => {
                Some(Self::Answered(&result.tool_call_id))
            }
            Event::Tool(ToolEvent::Started(started)) => Some(Self::Started(started.tool_call_id.as_str())),
            Event::Delegation(DelegationEvent::Requested(request)) => {
                Some(Self::Delegated(request.task_id.as_str()))
            }
            Event::Run(RunEvent::Capped(cap)) => Self::of_cap(cap),
            Event::Run(RunEvent::Compacted(compaction)) => Some(Self::Compacted(compaction)),
            Event::Run(RunEvent::Ended(ended)) => {
                Some(Self::Completed { text: &ended.result, is_cut: ended.result_truncated })
            }
            Event::Run(RunEvent::Failed(failed)) => Some(Self::Failed { error: &failed.error }),
            Event::Run(RunEvent::StatusChanged(changed)) if changed.status == RunStatus::Success => {
                Some(Self::Stopped(changed.stop_reason))
            }
            Event::Run(RunEvent::Started(_) | RunEvent::StatusChanged(_))
            | Event::Model(
                ModelEvent::HumanInput(_)
                | ModelEvent::ToolResult(_)
                | ModelEvent::AnswerMissing(_)
                | ModelEvent::AnswerCut(_)
                | ModelEvent::ToolStalled(_),
            )
            | Event::Delegation(
                DelegationEvent::Refused(_)
                | DelegationEvent::Queued(_)
                | DelegationEvent::Admitted(_)
                | DelegationEvent::Resumed(_)
                | DelegationEvent::Delivered(_),
            )
            | Event::Thread(_)
            | Event::Subagent(_)
            | Event::Registry(_)
            | Event::Foreign(_) => None,
        }
    }

    fn of_subagent(event: &'a Event) -> Option<Self> {
        match event {
            Event::Subagent(SubagentEvent::Message(captured)) => match &captured.message {
                Message::Assistant(_) => Some(Self::AskedModel),
                Message::Tool(result) => Some(Self::Answered(&result.tool_call_id)),
                Message::System(_) | Message::Human(_) => None,
            },
            Event::Subagent(SubagentEvent::Capped(capped)) => Self::of_cap(&capped.cap),
            Event::Subagent(SubagentEvent::Compacted(compacted)) => {
                Some(Self::Compacted(&compacted.compaction))
            }
            Event::Subagent(SubagentEvent::Ended(end)) => Self::of_end(end),
            Event::Model(ModelEvent::Failed(_) | ModelEvent::Retried(_)) => Some(Self::AskedModel),
            Event::Tool(ToolEvent::Started(started)) => Some(Self::Started(started.tool_call_id.as_str())),
            Event::Subagent(
                SubagentEvent::Started(_) | SubagentEvent::Step(_) | SubagentEvent::Receipt(_),
            )
            | Event::Model(
                ModelEvent::HumanInput(_)
                | ModelEvent::AiResponse(_)
                | ModelEvent::ToolResult(_)
                | ModelEvent::AnswerMissing(_)
                | ModelEvent::AnswerCut(_)
                | ModelEvent::ToolStalled(_),
            )
            | Event::Thread(_)
            | Event::Run(_)
            | Event::Delegation(_)
            | Event::Registry(_)
            | Event::Foreign(_) => None,
        }
    }

    /// Other caps are recorded with the reply that they are about.
    fn of_cap(cap: &'a Cap) -> Option<Self> {
        (cap.axis == CapAxis::Turns && cap.action == CapAction::Stop).then_some(Self::UsedUpTurns(cap))
    }

    fn of_end(end: &'a SubagentEnded) -> Option<Self> {
        match end.status {
            EndStatus::Completed => Some(Self::Completed {
                text: end.result.as_deref().unwrap_or_default(),
                is_cut: end.result_truncated,
            }),
            EndStatus::Failed => Some(Self::Failed { error: end.error.as_deref().unwrap_or_default() }),
            EndStatus::Cancelled | EndStatus::TimedOut => None,
        }
    }

    /// Whether this is what the agent asks for next; if not, what is.
    fn compare(&self, agent: &Agent) -> Result<(), String> {
        let effect = agent.next_effect();
        let is_asked_for = match (self, &effect) {
            (Self::AskedModel, Effect::CallModel) => true,
            (Self::AskedModel, Effect::Compact(plan)) => is_estimate(plan.trigger.unit),
            (Self::Compacted(compaction), Effect::CallModel) => is_estimate(compaction.trigger.unit),
            (Self::Compacted(compaction), Effect::Compact(plan)) => {
                let is_planned =
                    |done: &Compacted| done.kept == plan.kept && done.protected == plan.protected;
                !plan.is_exact || compaction.compacted().is_none_or(is_planned)
            }
            (Self::Answered(id) | Self::Started(id) | Self::Delegated(id), Effect::RunTools(calls)) => {
                calls.iter().any(|pending| is_call(&pending.call.id, id))
            }
            (Self::UsedUpTurns(cap), _) => agent.turn_cap().as_ref() == Some(cap),
            (Self::Completed { text, is_cut }, Effect::Finish(Conclusion::Completed { text: whole, .. })) => {
                is_text(whole, text, *is_cut)
            }
            (Self::Failed { error }, Effect::Finish(Conclusion::Failed { error: whole, .. })) => {
                whole == error || whole.starts_with(error)
            }
            // Something outside failed while the agent was at work.
            (Self::Failed { .. }, _) => true,
            (Self::Stopped(reason), _) => agent.run_stop_reason() == *reason,
            (
                Self::AskedModel
                | Self::Answered(_)
                | Self::Started(_)
                | Self::Delegated(_)
                | Self::Compacted(_)
                | Self::Completed { .. },
                Effect::Compact(_) | Effect::CallModel | Effect::RunTools(_) | Effect::Finish(_),
            ) => false,
        };
        if is_asked_for { Ok(()) } else { Err(asked(agent, &effect)) }
    }

    fn described(&self) -> String {
        match self {
            Self::AskedModel => "a call of the model".to_owned(),
            Self::Answered(id) => format!("the result of the call {id}"),
            Self::Started(id) => format!("the start of the call {id}"),
            Self::Delegated(id) => format!("a delegation for the call {id}"),
            Self::UsedUpTurns(cap) => format!("that {} of {} turns are used up", cap.used, cap.budget),
            Self::Compacted(compaction) => format!("a compaction of {} messages", compaction.messages_before),
            Self::Completed { text, .. } => format!("the result {:?}", shown(text)),
            Self::Failed { error } => format!("the error {:?}", shown(error)),
            Self::Stopped(reason) => format!("the stop reason {}", reason_text(*reason)),
        }
    }
}

/// Tokens are estimated from texts, and secrets in a recorded text are masked: what is folded again
/// may be a little shorter or longer than what the agent had.
const fn is_estimate(unit: CompactionUnit) -> bool {
    match unit {
        CompactionUnit::Messages => false,
        CompactionUnit::Tokens | CompactionUnit::Fraction => true,
    }
}

/// Where an id is recorded on its own it is cut to its bound.
fn is_call(id: &str, recorded: &str) -> bool {
    id == recorded || text::prefix(id, TOOL_CALL_ID_CHARS_MAX).text == recorded
}

fn is_text(whole: &str, recorded: &str, is_cut: bool) -> bool {
    if is_cut { whole.len() > recorded.len() && whole.starts_with(recorded) } else { whole == recorded }
}

fn asked(agent: &Agent, effect: &Effect) -> String {
    if agent.turn_cap().is_some() {
        return "record that its turns are used up".to_owned();
    }
    match effect {
        Effect::Compact(plan) => format!("compact the history and keep {} messages", plan.kept),
        Effect::CallModel => "call the model".to_owned(),
        Effect::RunTools(calls) => {
            let calls = calls.iter().map(|pending| format!("{} ({})", pending.call.id, pending.call.name));
            format!("run the calls {}", calls.collect::<Vec<_>>().join(", "))
        }
        Effect::Finish(Conclusion::Completed { text, .. }) => {
            let reason = agent.run_stop_reason();
            format!("finish with {:?} (stop reason {})", shown(text), reason_text(reason))
        }
        Effect::Finish(Conclusion::Failed { error, .. }) => format!("fail with {:?}", shown(error)),
    }
}

fn shown(text: &str) -> String {
    text::prefix(&text::one_line(text), SHOWN_CHARS_MAX).text
}

fn reason_text(reason: Option<RunStopReason>) -> String {
    reason.map_or_else(|| "none".to_owned(), |reason| format!("{reason:?}"))
}
