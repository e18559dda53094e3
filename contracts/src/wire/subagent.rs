//! Types of subagent.

use serde::{Deserialize, Serialize};

/// A type of subagent, with everything that a delegation to it obeys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subagent {
    /// The name by which a `task` call asks for it.
    pub name: String,
    /// When to delegate to it, for the lead.
    pub description: String,
    /// Where it comes from.
    pub source: SubagentSource,
    /// Whether a lead may delegate to it: here and now, or in the run that was asked about.
    pub available: bool,
    /// Its model; `inherit` is the lead's.
    pub model: String,
    /// Its model calls.
    pub max_turns: u32,
    /// Its wall-clock limit, in seconds.
    pub timeout_seconds: u64,
    /// The only tools that it may have; null allows all.
    pub tools: Option<Vec<String>>,
    /// Tools that it may not have; null denies none.
    pub disallowed_tools: Option<Vec<String>>,
    /// The skills that it may use; null allows all.
    pub skills: Option<Vec<String>>,
    /// Its token budget.
    pub token_budget: SubagentBudget,
    /// What it is told first; null tells it nothing of its own.
    pub system_prompt: Option<String>,
}

/// Where a type of subagent comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentSource {
    /// Part of Remit.
    BuiltIn,
    /// Written in the configuration.
    Configured,
    /// Kept by administrators, in the registry.
    Managed,
}

/// The token budget of a type of subagent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SubagentBudget {
    /// Whether it is enforced.
    pub enabled: bool,
    /// Input and output together.
    pub max_tokens: u64,
    /// Input alone; null sets no limit.
    pub max_input_tokens: Option<u64>,
    /// Output alone; null sets no limit.
    pub max_output_tokens: Option<u64>,
    /// The used share of a limit at which the model is warned, 0 to 1.
    pub warn_threshold: f64,
    /// The used share of a limit at which the work is stopped, 0 to 1.
    pub hard_stop_threshold: f64,
}
