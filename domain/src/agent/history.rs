//! What an agent takes from the log.

use crate::{
    event::{
        Cap, CapAxis, Compaction, DelegationEvent, Event, ModelEvent, RefusalReason, RunEvent, SubagentEvent,
        ToolEvent,
    },
    message::Message,
};

/// One recorded fact, as the agent that it concerns sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// A message was added to the conversation.
    Said(Box<Message>),
    /// A delegation of this run was requested.
    Delegated,
    /// A tool call of the last reply was started.
    ToolStarted(String),
    /// A call of the last reply was dropped before the reply was recorded.
    CallDropped(RefusalReason),
    /// A guard fired.
    Capped(Cap),
    /// The older part of the conversation was to be replaced by a summary.
    Compacted(Box<Compaction>),
}

impl AgentEvent {
    /// A message was added to the conversation.
    pub fn said(message: Message) -> Self {
        Self::Said(Box::new(message))
    }

    /// What a lead takes from an event of its run. Of its delegations it takes only that they were
    /// requested or dropped.
    pub fn of_lead(event: &Event) -> Option<Self> {
        match event {
            Event::Model(
                ModelEvent::HumanInput(message)
                | ModelEvent::AiResponse(message)
                | ModelEvent::ToolResult(message),
            ) => Some(Self::said(message.clone())),
            Event::Run(RunEvent::Started(settings)) => {
                Some(Self::said(Message::system(&*settings.system_prompt)))
            }
            // Retries are the whole run's: that they are used up ended no work of the lead.
            Event::Run(RunEvent::Capped(cap)) => {
                (cap.axis != CapAxis::Retries).then(|| Self::Capped(cap.clone()))
            }
            Event::Run(RunEvent::Compacted(compaction)) => {
                Some(Self::Compacted(Box::new(compaction.clone())))
            }
            Event::Tool(ToolEvent::Started(started)) => {
                Some(Self::ToolStarted(started.tool_call_id.to_string()))
            }
            Event::Delegation(DelegationEvent::Requested(_)) => Some(Self::Delegated),
            Event::Delegation(DelegationEvent::Refused(refused)) => match refused.reason {
                RefusalReason::PerResponseLimit | RefusalReason::PerRunLimit => {
                    Some(Self::CallDropped(refused.reason))
                }
                // These calls stay in the reply and get an error result of their own.
                RefusalReason::UnknownType
                | RefusalReason::NotAllowed
                | RefusalReason::BashDisabled
                | RefusalReason::InvalidArguments
                | RefusalReason::Depth
                | RefusalReason::QueueFull
                | RefusalReason::QueueTimeout => None,
            },
            Event::Run(RunEvent::StatusChanged(_) | RunEvent::Ended(_) | RunEvent::Failed(_))
            | Event::Model(
                ModelEvent::Failed(_)
                | ModelEvent::Retried(_)
                | ModelEvent::AnswerMissing(_)
                | ModelEvent::AnswerCut(_)
                | ModelEvent::ToolStalled(_),
            )
            | Event::Delegation(
                DelegationEvent::Queued(_)
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

    /// What a subagent takes from an event of its delegation.
    pub fn of_subagent(event: &Event) -> Option<Self> {
        match event {
            Event::Subagent(SubagentEvent::Message(captured)) => Some(Self::said(captured.message.clone())),
            Event::Subagent(SubagentEvent::Capped(capped)) => Some(Self::Capped(capped.cap.clone())),
            Event::Subagent(SubagentEvent::Compacted(compacted)) => {
                Some(Self::Compacted(Box::new(compacted.compaction.clone())))
            }
            Event::Tool(ToolEvent::Started(started)) => {
                Some(Self::ToolStarted(started.tool_call_id.to_string()))
            }
            Event::Subagent(
                SubagentEvent::Started(_)
                | SubagentEvent::Step(_)
                | SubagentEvent::Receipt(_)
                | SubagentEvent::Ended(_),
            )
            | Event::Thread(_)
            | Event::Run(_)
            | Event::Model(_)
            | Event::Delegation(_)
            | Event::Registry(_)
            | Event::Foreign(_) => None,
        }
    }
}
