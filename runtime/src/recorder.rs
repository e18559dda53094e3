//! Where an agent's facts go: the lead's into the conversation, a subagent's into its delegation.

use domain::{
    agent::Agent,
    delegation::{DelegationCommand, ReceiptDraft},
    event::{
        Cap, Compaction, DelegationEvent, DelegationRefused, Event, GuardAction, GuardFired, GuardTag,
        ModelEvent, ModelFailed, ModelRetried, RefusalReason, RunEvent, Scope, SubagentCapped, SubagentEvent,
        ToolEvent, ToolStalled, ToolStarted,
    },
    guard::{Guarded, notes, tool_progress::Stalled},
    ids::{SubagentType, ToolCallId},
    limits::{EVENTS_PER_APPEND_MAX, NAME_CHARS_MAX, TASK_DESCRIPTION_CHARS_MAX, TOOL_CALL_ID_CHARS_MAX},
    message::{AssistantMessage, Message, ToolCall, ToolMessage},
    run::RunRejection,
    text,
};

use crate::{
    call_ids,
    journal::Fact,
    models::AgentTag,
    run_context::RunContext,
    run_owner::{Decision, Record, RecordError},
};

/// Who an agent is in its run.
#[derive(Debug, Clone)]
pub(crate) enum Seat {
    /// The lead.
    Lead,
    /// The subagent of one delegation.
    Subagent { scope: Scope, task_id: ToolCallId, subagent_type: SubagentType },
}

/// Records what one agent does.
#[derive(Clone)]
pub(crate) struct Recorder {
    pub(crate) context: RunContext,
    pub(crate) seat: Seat,
}

impl Recorder {
    /// Who the agent is to a model.
    pub(crate) fn tag(&self) -> AgentTag {
        match &self.seat {
            Seat::Lead => AgentTag::Lead,
            Seat::Subagent { subagent_type, .. } => AgentTag::Subagent(subagent_type.clone()),
        }
    }

    /// What the agent's events belong to.
    pub(crate) fn scope(&self) -> Scope {
        match &self.seat {
            Seat::Lead => self.context.run_scope(),
            Seat::Subagent { scope, .. } => scope.clone(),
        }
    }

    /// Puts a model's reply through the agent's guards, and records what they made of it: the
    /// reply, the guards that fired and the calls that they dropped.
    pub(crate) async fn reply(
        &self,
        mut reply: AssistantMessage,
        agent: &Agent,
    ) -> Result<Vec<Event>, RecordError> {
        call_ids::settle(&mut reply, || self.context.unnamed_call());
        let Guarded { reply, caps, fired, dropped } = agent.guard(reply);
        let fired = fired.into_iter().map(|(tag, action)| self.fired_fact(tag, action));
        let caps = fired.chain(caps.into_iter().map(|cap| self.cap_fact(cap)));
        let refusals =
            dropped.iter().map(|(call, reason)| self.refusal(call, *reason, notes::call_dropped(*reason)));
        match &self.seat {
            Seat::Subagent { .. } => {
                self.said_with(Message::Assistant(reply), None, caps.chain(refusals).collect()).await
            }
            Seat::Lead => {
                let reply = self.fact(Event::Model(ModelEvent::AiResponse(Message::Assistant(reply))));
                self.record_all([reply].into_iter().chain(caps).chain(refusals).collect()).await
            }
        }
    }

    /// What is recorded of a guard that holds to no limit.
    fn fired_fact(&self, tag: GuardTag, action: GuardAction) -> Fact {
        let fired = GuardFired { caller: self.tag().caller(), action };
        self.fact(Event::Model(ModelEvent::fired(tag, fired)))
    }

    /// What is recorded of a tool that brought nothing.
    pub(crate) fn stalled_fact(&self, stalled: Stalled) -> Fact {
        let caller = self.tag().caller();
        self.fact(Event::Model(ModelEvent::ToolStalled(ToolStalled { caller, stalled })))
    }

    /// What is recorded of a guard that fired.
    fn cap_fact(&self, cap: Cap) -> Fact {
        match &self.seat {
            Seat::Lead => self.fact(Event::Run(RunEvent::Capped(cap))),
            Seat::Subagent { task_id, .. } => {
                let task_id = task_id.clone();
                self.fact(Event::Subagent(SubagentEvent::Capped(SubagentCapped { task_id, cap })))
            }
        }
    }

    /// A reply can drop more calls than one append holds; what does not fit follows in further
    /// ones.
    async fn record_all(&self, facts: Vec<Fact>) -> Result<Vec<Event>, RecordError> {
        let (mut recorded, mut rest) = (Vec::with_capacity(facts.len()), facts);
        while !rest.is_empty() {
            let later = rest.split_off(rest.len().min(EVENTS_PER_APPEND_MAX));
            recorded.extend(self.record(Decision::None, rest).await?);
            rest = later;
        }
        Ok(recorded)
    }

    /// A `task` call that is not carried out gets a delegation of its own, so that the ledger
    /// shows it.
    pub(crate) fn refusal(&self, call: &ToolCall, reason: RefusalReason, message: String) -> Fact {
        let scope = self.context.new_delegation(&call.id);
        let refused = self.refused(&scope, call, reason, message);
        Fact { scope, event: Event::Delegation(DelegationEvent::Refused(refused)) }
    }

    /// What is recorded of a refused `task` call.
    pub(crate) fn refused(
        &self,
        scope: &Scope,
        call: &ToolCall,
        reason: RefusalReason,
        message: String,
    ) -> DelegationRefused {
        DelegationRefused {
            task_id: scope.task_id.clone().unwrap_or_else(|| self.context.unnamed_call()),
            description: text::prefix(call.args.text("description"), TASK_DESCRIPTION_CHARS_MAX).text,
            subagent_type: text::prefix(call.args.text("subagent_type"), NAME_CHARS_MAX).text,
            reason,
            message,
        }
    }

    /// Records a message of the conversation, with facts that are recorded together with it.
    pub(crate) async fn said_with(
        &self,
        message: Message,
        receipt: Option<ReceiptDraft>,
        mut facts: Vec<Fact>,
    ) -> Result<Vec<Event>, RecordError> {
        match &self.seat {
            Seat::Subagent { scope, .. } => {
                let command =
                    DelegationCommand::Record { message: Box::new(message), receipt: receipt.map(Box::new) };
                self.record(Decision::Delegation(scope.clone(), Box::new(command)), facts).await
            }
            Seat::Lead => {
                facts.push(self.fact(Event::Model(ModelEvent::ToolResult(message))));
                self.record(Decision::None, facts).await
            }
        }
    }

    /// Records the lead's result of a `task` call together with what it decides.
    pub(crate) async fn delivered(
        &self,
        scope: Scope,
        command: DelegationCommand,
        result: ToolMessage,
    ) -> Result<Vec<Event>, RecordError> {
        let result = self.fact(Event::Model(ModelEvent::ToolResult(Message::Tool(result))));
        self.record(Decision::Delegation(scope, Box::new(command)), vec![result]).await
    }

    /// Records that a tool is about to run.
    pub(crate) async fn tool_started(&self, started: ToolStarted) -> Result<Vec<Event>, RecordError> {
        self.note(Event::Tool(ToolEvent::Started(started))).await
    }

    /// Records that a guard fired.
    pub(crate) async fn capped(&self, cap: Cap) -> Result<Vec<Event>, RecordError> {
        match &self.seat {
            Seat::Lead => self.note(Event::Run(RunEvent::Capped(cap))).await,
            Seat::Subagent { scope, .. } => {
                let decision = Decision::Delegation(scope.clone(), Box::new(DelegationCommand::Cap(cap)));
                self.record(decision, Vec::new()).await
            }
        }
    }

    /// Records that the agent's history was compacted, or was to be.
    pub(crate) async fn compacted(&self, compaction: Compaction) -> Result<Vec<Event>, RecordError> {
        match &self.seat {
            Seat::Lead => self.note(Event::Run(RunEvent::Compacted(compaction))).await,
            Seat::Subagent { scope, .. } => {
                let command = DelegationCommand::Compact(Box::new(compaction));
                self.record(Decision::Delegation(scope.clone(), Box::new(command)), Vec::new()).await
            }
        }
    }

    /// Records that a model call failed and will be tried again; `false` when the run has no
    /// retries left, which is recorded once.
    pub(crate) async fn retried(&self, retried: ModelRetried) -> Result<bool, RecordError> {
        let decision = Decision::Retry(self.scope(), Box::new(retried));
        match self.record(decision, Vec::new()).await {
            Ok(recorded) => Ok(recorded.iter().any(is_retry)),
            Err(RecordError::Run(RunRejection::NoRetriesLeft)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Records that a model call failed for good.
    pub(crate) async fn model_failed(&self, failed: ModelFailed) -> Result<Vec<Event>, RecordError> {
        self.note(Event::Model(ModelEvent::Failed(failed))).await
    }

    async fn note(&self, event: Event) -> Result<Vec<Event>, RecordError> {
        let fact = self.fact(event);
        self.record(Decision::None, vec![fact]).await
    }

    fn fact(&self, event: Event) -> Fact {
        Fact { scope: self.scope(), event }
    }

    async fn record(&self, decision: Decision, facts: Vec<Fact>) -> Result<Vec<Event>, RecordError> {
        self.context.owner.record(Record { decision, facts }).await
    }
}

const fn is_retry(event: &Event) -> bool {
    matches!(event, Event::Model(ModelEvent::Retried(_)))
}

/// The provider's id as ours, cut to its bound; `None` for an empty one.
pub(crate) fn call_id(id: &str) -> Option<ToolCallId> {
    let bounded = text::prefix(id, TOOL_CALL_ID_CHARS_MAX).text;
    ToolCallId::new(bounded).ok()
}
