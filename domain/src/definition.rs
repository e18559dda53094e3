//! Subagent definitions: which kinds of subagent there are, and what a delegation to one obeys.
//!
//! A definition comes from a source: the built-in ones, then the configuration's. The first source
//! that has a name owns it. What the configuration says about a name is laid over the definition
//! when it is looked up; a definition itself never changes.

mod budget;
mod builtin;
mod resolve;
mod select;
mod settings;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use self::{
    budget::{TokenBudget, TokenBudgetSettings},
    builtin::{BASH, GENERAL_PURPOSE},
    resolve::{Listed, Origin, Registry, Resolved},
    select::{NoModel, effective_skills, model_name},
    settings::{CustomAgent, InConfigOrder, Override, SettingProblem, SubagentsSettings},
};
use crate::{ids::SubagentType, tool_spec::TASK_TOOL};

/// The model choice that stands for the parent's model.
const INHERIT: &str = "inherit";

/// Which model a subagent uses.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ModelChoice {
    /// The model of the lead that delegates.
    #[default]
    Inherit,
    /// The model with this name.
    Named(String),
}

impl From<String> for ModelChoice {
    fn from(name: String) -> Self {
        if name == INHERIT { Self::Inherit } else { Self::Named(name) }
    }
}

impl From<ModelChoice> for String {
    fn from(choice: ModelChoice) -> Self {
        match choice {
            ModelChoice::Inherit => INHERIT.to_owned(),
            ModelChoice::Named(name) => name,
        }
    }
}

/// One kind of subagent (facts §1.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The name by which a `task` call asks for it.
    pub name: SubagentType,
    /// When to delegate to it, for the lead.
    pub description: String,
    /// What it is told first; `None` tells it nothing of its own.
    pub system_prompt: Option<String>,
    /// The only tools that it may have, by exact name; `None` allows all.
    pub tools: Option<Vec<String>>,
    /// Tools that it may not have, by exact name; `None` denies none.
    pub disallowed_tools: Option<Vec<String>>,
    /// The skills that it may use; `None` allows all, an empty list none.
    pub skills: Option<Vec<String>>,
    /// Its model.
    pub model: ModelChoice,
    /// Its model calls.
    pub max_turns: u32,
    /// Its wall-clock limit, in seconds.
    pub timeout_seconds: u64,
}

impl Definition {
    /// Whether it may have the tool. No subagent has `task`: only a lead delegates.
    pub fn allows_tool(&self, tool_name: &str) -> bool {
        let names = |list: &Vec<String>| list.iter().any(|name| name == tool_name);
        tool_name != TASK_TOOL
            && self.tools.as_ref().is_none_or(names)
            && !self.disallowed_tools.as_ref().is_some_and(names)
    }

    /// The candidates that it may have, in their order (facts §1.7).
    pub fn select_tools(&self, candidates: &[String]) -> Vec<String> {
        candidates.iter().filter(|tool_name| self.allows_tool(tool_name)).cloned().collect()
    }
}

/// Tools that no subagent has unless its definition says otherwise (facts §1.2).
fn denied_by_default() -> Option<Vec<String>> {
    Some([TASK_TOOL, "ask_clarification", "present_files"].map(str::to_owned).to_vec())
}
