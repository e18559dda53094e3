//! What a model is told of a tool, and what running the tool twice would do.

use serde::{Deserialize, Serialize};

/// The tool by which a lead delegates.
pub const TASK_TOOL: &str = "task";

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name by which it is called.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments: an object.
    pub parameters: serde_json::Value,
}

/// What running a tool call twice would do. Recovery repeats only what is harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffect {
    /// Changes nothing.
    ReadOnly,
    /// Leaves the same state as running it once.
    Idempotent,
    /// Changes something each time.
    Effectful,
}
