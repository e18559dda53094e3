//! What tools are about to do.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::family::family;
use crate::{ids::ToolCallId, tool_spec::SideEffect};

family! {
    /// What tools are about to do: the intent, durable before anything happens.
    pub enum ToolEvent {
        /// A tool call is about to run. Without a later result, what it did is unknown.
        Started(ToolStarted) = "tool.started" in Tool,
    }
}

/// A tool call is about to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolStarted {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The tool.
    pub tool_name: String,
    /// SHA-256 of the arguments as compact JSON, in hexadecimal.
    pub args_sha256: String,
    /// What running it twice would do.
    pub side_effect: SideEffect,
    /// When it was started.
    pub started_at: Timestamp,
}
