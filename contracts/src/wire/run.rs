//! Runs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{object, usage::Usage};

/// The body of `POST /threads/{t}/runs`, `/runs/stream` and `/runs/wait`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateRun {
    /// The lead agent; absent means `lead`, the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assistant_id: Option<String>,
    /// What to work on; absent only where a run is continued.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object::optional")]
    pub input: Option<RunInput>,
    /// How to work.
    #[serde(default, deserialize_with = "object::one")]
    pub config: RunConfig,
    /// The keys of `config.configurable` in the place where some clients put them.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object::optional")]
    pub context: Option<Configurable>,
    /// What the client wants to find again.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// What to do when a run is at work on the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multitask_strategy: Option<MultitaskStrategy>,
    /// What a stream shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_mode: Option<StreamModes>,
    /// What becomes of the run when the client goes away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
}

/// What to work on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunInput {
    /// The conversation's new messages.
    #[serde(deserialize_with = "object::several")]
    pub messages: Vec<InputMessage>,
}

/// A message from a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputMessage {
    /// Who speaks: `user` or `human`; other roles are refused.
    #[serde(alias = "type")]
    pub role: String,
    /// Text, or a list of text blocks and of `image_url` blocks whose address is a data URL.
    pub content: Value,
    /// The client's own id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// How to work.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// The keys that a client may set.
    #[serde(default, deserialize_with = "object::one")]
    pub configurable: Configurable,
}

/// The keys that a client may set for a run. Keys that are not listed are kept apart; identity keys
/// and keys that begin with `__` among them are never obeyed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Configurable {
    /// The lead's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// Whether the lead has the `task` tool; absent means yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_enabled: Option<bool>,
    /// Delegations per response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent_subagents: Option<i64>,
    /// Delegations per run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total_subagents: Option<i64>,
    /// The only types that may be delegated to; an empty list allows none. Null and absent allow all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_subagents: Option<Vec<String>>,
    /// Everything else that the client sent.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// What to do when a run is already at work on the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MultitaskStrategy {
    /// Refuse the new run.
    Reject,
    /// Cancel the old run, keep what it did.
    Interrupt,
    /// Cancel the old run and take back what it did.
    Rollback,
    /// Wait for the old run.
    Enqueue,
}

/// One mode or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a mode or a list of modes")]
pub enum StreamModes {
    /// One mode.
    One(String),
    /// Several modes.
    Many(Vec<String>),
}

/// What becomes of a run when its client goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// It is cancelled.
    Cancel,
    /// It goes on.
    Continue,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The run.
    pub run_id: String,
    /// Its thread.
    pub thread_id: String,
    /// The lead agent.
    pub assistant_id: String,
    /// Where it stands.
    pub status: RunStatus,
    /// Why it ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The lead's last words, once it returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The lead's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// Tokens of the lead, its subagents and summaries of their histories so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Tokens of its subagents alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_usage: Option<Usage>,
    /// The lead's turns so far.
    pub turns: u32,
    /// Delegations that were requested so far.
    pub delegations: u32,
    /// What the client wants to find again.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// When it was asked for.
    pub created_at: String,
    /// When its last event was recorded.
    pub updated_at: String,
    /// Its last event's place in the thread.
    pub seq: u64,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Asked for, not yet begun.
    Pending,
    /// At work.
    Running,
    /// Returned.
    Success,
    /// Failed.
    Error,
    /// Cancelled from outside.
    Interrupted,
    /// Ran out of time.
    Timeout,
}
