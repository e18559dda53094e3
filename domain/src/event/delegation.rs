//! A delegation on its way from the `task` call to the delivered result.

use serde::{Deserialize, Serialize};

use super::family::family;
use crate::{
    definition::TokenBudget,
    ids::{SubagentType, ToolCallId},
    status_contract::SubagentStatus,
};

family! {
    /// A delegation on its way. What the subagent does meanwhile is in the subagent family.
    pub enum DelegationEvent {
        /// The lead asked, and the request was accepted.
        Requested(DelegationRequested) = "delegation.requested" in Delegation,
        /// The request was refused; no model was called for it.
        Refused(DelegationRefused) = "delegation.refused" in Delegation,
        /// All slots are taken; it waits.
        Queued(DelegationQueued) = "delegation.queued" in Delegation,
        /// It has a slot.
        Admitted(DelegationAdmitted) = "delegation.admitted" in Delegation,
        /// The server was started again, and it goes on: in the queue or at work.
        Resumed(DelegationResumed) = "delegation.resumed" in Delegation,
        /// The lead has its answer.
        Delivered(DelegationDelivered) = "delegation.delivered" in Delegation,
    }
}

/// The lead asked, and the request was accepted. Everything that the subagent will obey is here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DelegationRequested {
    /// The provider's id of the `task` call.
    pub task_id: ToolCallId,
    /// What the lead calls it, for people.
    pub description: String,
    /// What the subagent is told.
    pub prompt: String,
    /// The kind of subagent.
    pub subagent_type: SubagentType,
    /// Its model.
    pub model_name: String,
    /// Its turns.
    pub max_turns: u32,
    /// Its wall-clock limit from admission, in seconds.
    pub timeout_seconds: u64,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// Whether its report is held against receipts.
    #[serde(default)]
    pub receipts_enabled: bool,
    /// What must hold for the work to be accepted; empty when the lead named nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance_criteria: Vec<String>,
    /// Its token budget; absent where none is enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<Box<TokenBudget>>,
}

/// Why a delegation was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// There is no such subagent type.
    UnknownType,
    /// The type exists, and this run may not delegate to it.
    NotAllowed,
    /// Shell commands cannot be run safely here.
    BashDisabled,
    /// The call's arguments do not make a delegation.
    InvalidArguments,
    /// One response asked for more than may run at once.
    PerResponseLimit,
    /// The run has used up its delegations.
    PerRunLimit,
    /// A subagent asked; only a lead may.
    Depth,
    /// Too many delegations wait already.
    QueueFull,
    /// It waited too long for a slot.
    QueueTimeout,
}

impl RefusalReason {
    /// The name in the record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownType => "unknown_type",
            Self::NotAllowed => "not_allowed",
            Self::BashDisabled => "bash_disabled",
            Self::InvalidArguments => "invalid_arguments",
            Self::PerResponseLimit => "per_response_limit",
            Self::PerRunLimit => "per_run_limit",
            Self::Depth => "depth",
            Self::QueueFull => "queue_full",
            Self::QueueTimeout => "queue_timeout",
        }
    }
}

/// The request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationRefused {
    /// The provider's id of the `task` call.
    pub task_id: ToolCallId,
    /// What the lead called it; empty where the arguments did not say.
    #[serde(default)]
    pub description: String,
    /// What was asked for; empty where the arguments did not say.
    #[serde(default)]
    pub subagent_type: String,
    /// Why.
    pub reason: RefusalReason,
    /// What the lead is told.
    pub message: String,
}

/// All slots are taken; it waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationQueued {
    /// The provider's id of the `task` call.
    pub task_id: ToolCallId,
    /// Its place in the queue, from 1.
    pub place: u32,
}

/// It has a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationAdmitted {
    /// The provider's id of the `task` call.
    pub task_id: ToolCallId,
    /// How long it waited, in milliseconds.
    pub waited_ms: u64,
}

/// The server was started again, and the delegation goes on where it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationResumed {
    /// The provider's id of the `task` call.
    pub task_id: ToolCallId,
    /// How much of its limit is used up, in milliseconds: of the wait for a slot while it is in the
    /// queue, of its own time once it is at work. The time in which no server was there is not counted.
    pub spent_ms: u64,
}

/// The lead has its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationDelivered {
    /// The provider's id of the `task` call.
    pub task_id: ToolCallId,
    /// What the lead was told of it: differs from the subagent's own end when the lead's wait ran
    /// out first.
    pub status: SubagentStatus,
    /// The brief of the result, where there is one (facts §9.3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_brief: Option<String>,
    /// SHA-256 of the whole result, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_sha256: Option<String>,
    /// The brief of the error, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
