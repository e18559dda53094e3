//! The catalogue: every event that Remit records, one enum per family.
//!
//! An event is a past-tense fact with its own data. Its type, its category and the fields of its
//! content are fixed here and in `contracts/run_event_stream_contract.json`; once written, none of
//! them changes its meaning. A fold lists every variant, so that a new one breaks the build of
//! everything that has to decide about it.

mod compaction;
mod delegation;
mod family;
mod foreign;
mod model;
mod registry;
mod run;
mod subagent;
mod thread;
mod tool;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::{
    compaction::{
        Compacted, Compaction, CompactionOutcome, CompactionTrigger, CompactionUnit, SubagentCompaction,
        SummaryFailure,
    },
    delegation::{
        DelegationAdmitted, DelegationDelivered, DelegationEvent, DelegationQueued, DelegationRefused,
        DelegationRequested, DelegationResumed, RefusalReason,
    },
    foreign::ForeignEvent,
    model::{
        CALLER_KEY, GuardAction, GuardFired, GuardTag, LEAD_CALLER, ModelEvent, ModelFailed, ModelRetried,
        SUMMARY_CALLER, ToolStalled,
    },
    registry::{
        DefinitionCreated, DefinitionRolledBack, DefinitionSwitched, DefinitionUpdated, ErasureReason,
        ErasureRepeated, ErasureRequested, RegistryEvent, RunErased, ThreadErased,
    },
    run::{
        Cap, CapAction, CapAxis, RunEnded, RunEvent, RunFailed, RunSettings, RunStatus, RunStatusChanged,
        RunStopReason,
    },
    subagent::{
        CancelReason, CapturedCall, EndStatus, Step, StepBody, SubagentCapped, SubagentEnded, SubagentEvent,
        SubagentMessage, SubagentStarted,
    },
    thread::{ThreadCreated, ThreadEvent},
    tool::{ToolEvent, ToolStarted},
};
use crate::{
    ids::{DelegationId, RunId, ThreadId, ToolCallId, UserId},
    kept_output,
};

/// What kind of reader an event is for (facts §7.4). Feeds and pages filter by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// What the context of a model call was made of.
    Context,
    /// A delegation on its way: requested, queued, admitted, refused, delivered.
    Delegation,
    /// A run that failed.
    Error,
    /// The conversation itself: the only category that message feeds show.
    Message,
    /// A guard that did something.
    Middleware,
    /// What a run returned.
    Outputs,
    /// What happened beside the threads: erasures.
    Registry,
    /// The life of a run.
    Run,
    /// What a subagent did; stays out of message feeds.
    Subagent,
    /// The life of a thread.
    Thread,
    /// What a lead's or subagent's tools are about to do.
    Tool,
    /// How a run went, for people who debug it.
    Trace,
    /// What changed in the workspace.
    Workspace,
}

impl Category {
    /// Every category, in the order of their names.
    pub const ALL: [Self; 13] = [
        Self::Context,
        Self::Delegation,
        Self::Error,
        Self::Message,
        Self::Middleware,
        Self::Outputs,
        Self::Registry,
        Self::Run,
        Self::Subagent,
        Self::Thread,
        Self::Tool,
        Self::Trace,
        Self::Workspace,
    ];

    /// The name in the record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Delegation => "delegation",
            Self::Error => "error",
            Self::Message => "message",
            Self::Middleware => "middleware",
            Self::Outputs => "outputs",
            Self::Registry => "registry",
            Self::Run => "run",
            Self::Subagent => "subagent",
            Self::Thread => "thread",
            Self::Tool => "tool",
            Self::Trace => "trace",
            Self::Workspace => "workspace",
        }
    }
}

/// What an event belongs to below its thread.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scope {
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The provider's id of the `task` call; may repeat across runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<ToolCallId>,
    /// Our id of the delegation; never repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation_id: Option<DelegationId>,
}

/// An event with what its envelope says of it: what every fold reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Logged {
    /// Place in the whole log, from 1.
    pub position: u64,
    /// Place in the thread, from 1 and without a gap.
    pub seq: u64,
    /// The thread.
    pub thread_id: ThreadId,
    /// Whose thread it is.
    pub owner: UserId,
    /// The run, task and delegation.
    pub scope: Scope,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// What the record says where that may differ from what its type promises: of a typed fact that
    /// somebody else recorded. `None` for our own facts, and for foreign ones, which say it themselves.
    pub labels: Option<Box<Labels>>,
    /// The fact.
    pub event: Event,
}

/// What a record that somebody else made says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    /// Its category.
    pub category: String,
    /// Who made the model call that it is about.
    pub caller: Option<String>,
}

impl Logged {
    /// The category of the record.
    pub fn category(&self) -> &str {
        self.labels.as_ref().map_or_else(|| self.event.category(), |labels| &labels.category)
    }

    /// Whether somebody else recorded it: it has the shape of one of our facts, and is none. Only what
    /// we recorded ourselves says what our runs, threads and guards did.
    pub const fn is_of_others(&self) -> bool {
        self.labels.is_some() || matches!(self.event, Event::Foreign(_))
    }

    /// Who made the model call that the record is about, where it says so.
    pub fn caller(&self) -> Option<&str> {
        match (&self.labels, &self.event) {
            (Some(labels), _) => labels.caller.as_deref(),
            (None, Event::Model(event)) => event.caller(),
            (None, Event::Foreign(event)) => event.metadata.get(CALLER_KEY).and_then(Value::as_str),
            (
                None,
                Event::Thread(_)
                | Event::Run(_)
                | Event::Tool(_)
                | Event::Delegation(_)
                | Event::Subagent(_)
                | Event::Registry(_),
            ) => None,
        }
    }
}

/// Content that does not have the shape which its event type promises.
#[derive(Debug, thiserror::Error)]
#[error("reading the content of a {event_type} event")]
pub struct UnreadableContent {
    /// The type that the record named.
    pub event_type: String,
    /// What was wrong with the content.
    #[source]
    pub source: serde_json::Error,
}

/// One recorded fact.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The life of a thread.
    Thread(ThreadEvent),
    /// The life of a run.
    Run(RunEvent),
    /// The lead's conversation, and what model calls met with.
    Model(ModelEvent),
    /// What tools are about to do.
    Tool(ToolEvent),
    /// A delegation on its way.
    Delegation(DelegationEvent),
    /// What a subagent did.
    Subagent(SubagentEvent),
    /// What happened beside the threads. It is in the registry, which no thread's fold reads.
    Registry(RegistryEvent),
    /// A fact that somebody else recorded; carried, shown and exported as it is.
    Foreign(ForeignEvent),
}

impl Event {
    /// The version of the content's fields that today's code writes.
    pub const SCHEMA_VERSION: u16 = 1;

    /// The name in the record.
    pub fn event_type(&self) -> &str {
        match self {
            Self::Thread(event) => event.event_type(),
            Self::Run(event) => event.event_type(),
            Self::Model(event) => event.event_type(),
            Self::Tool(event) => event.event_type(),
            Self::Delegation(event) => event.event_type(),
            Self::Subagent(event) => event.event_type(),
            Self::Registry(event) => event.event_type(),
            Self::Foreign(event) => &event.event_type,
        }
    }

    /// The category in the record.
    pub fn category(&self) -> &str {
        match self {
            Self::Thread(event) => event.category().as_str(),
            Self::Run(event) => event.category().as_str(),
            Self::Model(event) => event.category().as_str(),
            Self::Tool(event) => event.category().as_str(),
            Self::Delegation(event) => event.category().as_str(),
            Self::Subagent(event) => event.category().as_str(),
            Self::Registry(event) => event.category().as_str(),
            Self::Foreign(event) => &event.category,
        }
    }

    /// The content, as it is stored.
    pub fn content(&self) -> Result<Value, serde_json::Error> {
        match self {
            Self::Thread(event) => event.content(),
            Self::Run(event) => event.content(),
            Self::Model(event) => event.content(),
            Self::Tool(event) => event.content(),
            Self::Delegation(event) => event.content(),
            Self::Subagent(event) => event.content(),
            Self::Registry(event) => event.content(),
            Self::Foreign(event) => Ok(event.content.clone()),
        }
    }

    /// The metadata, as it is stored: what readers filter by without reading the content.
    pub fn metadata(&self) -> Map<String, Value> {
        let mut metadata = match self {
            Self::Run(event) => event.metadata(),
            Self::Model(event) => event.metadata(),
            Self::Subagent(event) => event.metadata(),
            Self::Thread(_) | Self::Tool(_) | Self::Delegation(_) | Self::Registry(_) => Map::new(),
            Self::Foreign(event) => event.metadata.clone(),
        };
        kept_output::list(self, &mut metadata);
        metadata
    }

    /// Every type in the catalogue with its category, in the order of the families.
    pub fn catalogue() -> Vec<(&'static str, Category)> {
        [
            ThreadEvent::TYPES,
            RunEvent::TYPES,
            ModelEvent::TYPES,
            ToolEvent::TYPES,
            DelegationEvent::TYPES,
            SubagentEvent::TYPES,
            RegistryEvent::TYPES,
        ]
        .concat()
    }

    /// Reads content that Remit wrote. `None` for a type that is not in the catalogue.
    pub fn parse(event_type: &str, content: &str) -> Option<Result<Self, UnreadableContent>> {
        let parsed = None
            .or_else(|| ThreadEvent::parse(event_type, content).map(|read| read.map(Self::Thread)))
            .or_else(|| RunEvent::parse(event_type, content).map(|read| read.map(Self::Run)))
            .or_else(|| ModelEvent::parse(event_type, content).map(|read| read.map(Self::Model)))
            .or_else(|| ToolEvent::parse(event_type, content).map(|read| read.map(Self::Tool)))
            .or_else(|| DelegationEvent::parse(event_type, content).map(|read| read.map(Self::Delegation)))
            .or_else(|| SubagentEvent::parse(event_type, content).map(|read| read.map(Self::Subagent)))
            .or_else(|| RegistryEvent::parse(event_type, content).map(|read| read.map(Self::Registry)))?;
        Some(parsed.map_err(|source| UnreadableContent { event_type: event_type.to_owned(), source }))
    }
}

#[cfg(test)]
mod tests;
