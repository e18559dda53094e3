//! Models: what answers an agent's messages, and the rules for asking again.
//!
//! A model knows messages and tools. It must not know runs, threads, events or delegations: who
//! asks is a tag, and what came back is a value.

use std::sync::Arc;

use domain::{
    event::SUMMARY_CALLER,
    ids::SubagentType,
    message::{AssistantMessage, Message},
};
use futures::future::BoxFuture;

mod answer;
mod anthropic;
mod call_gate;
mod call_id;
pub(crate) mod circuit;
mod classify;
pub mod configured;
mod conversation;
mod dialect;
pub mod error;
mod fault;
mod gemini;
mod http;
mod key;
mod layout;
pub mod offline;
mod openai;
pub mod probe;
mod refusal;
pub mod retry;
pub mod settings;
pub mod sse;
mod torn;

pub use circuit::CircuitPolicy;
pub use configured::{Models, UnknownModel};
pub use domain::tool_spec::ToolSpec;
pub use error::{ModelError, ModelErrorKind};
pub use key::SecretSource;
pub use offline::OfflineModel;
pub use retry::{GaveUp, Pauses, Retries, RetryNotice, RetryPolicy, call_with_retries};
pub use settings::{ModelSettings, Provider, Secret, SettingsError};

/// One question to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The conversation so far, oldest first.
    pub messages: Vec<Message>,
    /// The tools that the model may call: the same with every request of an agent.
    pub tools: Arc<[ToolSpec]>,
    /// Who asks.
    pub agent: AgentTag,
}

/// Who asks a model: tokens are counted under this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentTag {
    /// The agent that the caller talks to.
    Lead,
    /// An agent that the lead delegated to.
    Subagent(SubagentType),
    /// What sums up the older part of an agent's history.
    Summary,
}

impl AgentTag {
    /// The caller of a usage record: `lead_agent`, `subagent:NAME` or `middleware:summarize`
    /// (facts §5).
    pub fn caller(&self) -> String {
        match self {
            Self::Lead => "lead_agent".to_owned(),
            Self::Subagent(name) => format!("subagent:{name}"),
            Self::Summary => SUMMARY_CALLER.to_owned(),
        }
    }
}

/// A piece of a reply while it is being made: for live views only, never stored. The complete reply
/// is what [`ChatModel::call`] returns; when a call fails, its pieces are void.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Visible text, to be appended.
    Text(String),
    /// The model began to call the tool of this name.
    ToolCallStarted(String),
}

/// Where the pieces of a reply go. Called from inside the model's future; must not block.
pub type Deltas<'a> = &'a (dyn Fn(Delta) + Send + Sync);

/// Ignores the pieces of a reply.
pub fn no_deltas(_: Delta) {}

/// Something that answers an agent's messages.
pub trait ChatModel: Send + Sync {
    /// The configured name; shown as `model_name`.
    fn name(&self) -> &str;

    /// Tokens that fit into one request, where the configuration says so.
    fn context_tokens(&self) -> Option<u32> {
        None
    }

    /// Asks once; asking again is [`call_with_retries`]. Dropping the future ends the call
    /// and closes its connection.
    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: Deltas<'a>,
    ) -> BoxFuture<'a, Result<AssistantMessage, ModelError>>;
}
