//! The `subagents` block of the configuration (facts §1.2).

mod checks;
mod ordered;

use serde::{Deserialize, Serialize};

pub(super) use self::checks::Checks;
pub use self::{checks::SettingProblem, ordered::InConfigOrder};
use super::{Definition, ModelChoice, TokenBudgetSettings, denied_by_default};
use crate::{
    ids::SubagentType,
    limits::{DELEGATIONS_PER_RUN_DEFAULT, DELEGATIONS_PER_RUN_RANGE},
};

/// The `subagents` block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SubagentsSettings {
    /// Wall-clock limit of built-in subagents, in seconds, from 1.
    pub timeout_seconds: u64,
    /// Turns of built-in subagents, from 1; `None` leaves each type's own.
    pub max_turns: Option<u32>,
    /// Delegations per run.
    pub max_total_per_run: u32,
    /// Every subagent's token budget. Absent, and not equal to its default, when nobody wrote it:
    /// the default depends on other settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<TokenBudgetSettings>,
    /// What holds for one type only.
    pub agents: InConfigOrder<Override>,
    /// Types that the configuration adds.
    pub custom_agents: InConfigOrder<CustomAgent>,
}

impl Default for SubagentsSettings {
    fn default() -> Self {
        Self {
            timeout_seconds: 1_800,
            max_turns: None,
            max_total_per_run: DELEGATIONS_PER_RUN_DEFAULT,
            token_budget: None,
            agents: InConfigOrder::default(),
            custom_agents: InConfigOrder::default(),
        }
    }
}

/// What the configuration says of one type; what it leaves out it has no opinion on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Override {
    /// Wall-clock limit in seconds, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Turns, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The model; never empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// The skills; an empty list counts and means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// The token budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<TokenBudgetSettings>,
}

/// A type that the configuration adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomAgent {
    /// When to delegate to it, for the lead, who sees the first line.
    pub description: String,
    /// What it is told first.
    pub system_prompt: String,
    /// The only tools that it may have; `null` allows all.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Tools that it may not have; `null` denies none.
    #[serde(default = "denied_by_default")]
    pub disallowed_tools: Option<Vec<String>>,
    /// The skills that it may use; `null` allows all.
    #[serde(default)]
    pub skills: Option<Vec<String>>,
    /// Its model; never empty.
    #[serde(default)]
    pub model: ModelChoice,
    /// Its turns, from 1.
    #[serde(default = "custom_max_turns")]
    pub max_turns: u32,
    /// Its wall-clock limit in seconds, from 1.
    #[serde(default = "custom_timeout_seconds")]
    pub timeout_seconds: u64,
}

const fn custom_max_turns() -> u32 {
    50
}

const fn custom_timeout_seconds() -> u64 {
    900
}

impl SubagentsSettings {
    /// Checks every value against its range and names all that are outside.
    pub fn validate(&self) -> Result<(), Vec<SettingProblem>> {
        let mut checks = Checks::below("subagents");
        checks.at_least("timeout_seconds", Some(self.timeout_seconds), 1);
        checks.at_least("max_turns", self.max_turns.map(u64::from), 1);
        checks.within("max_total_per_run", self.max_total_per_run, &DELEGATIONS_PER_RUN_RANGE);
        let mut problems = checks.found();
        problems.extend(budget_problems(self.token_budget.as_ref(), "subagents"));
        for (name, agent) in self.agents.iter() {
            problems.extend(agent.problems(&format!("subagents.agents.{name}")));
        }
        for (name, agent) in self.custom_agents.iter() {
            problems.extend(agent.problems(&format!("subagents.custom_agents.{name}")));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

impl Override {
    fn problems(&self, key: &str) -> Vec<SettingProblem> {
        let mut checks = Checks::below(key);
        checks.at_least("timeout_seconds", self.timeout_seconds, 1);
        checks.at_least("max_turns", self.max_turns.map(u64::from), 1);
        checks.named_model("model", self.model.as_ref());
        let budget = budget_problems(self.token_budget.as_ref(), key);
        checks.found().into_iter().chain(budget).collect()
    }
}

impl CustomAgent {
    /// What is outside its range; `key` is where it stands.
    pub(crate) fn problems(&self, key: &str) -> Vec<SettingProblem> {
        let mut checks = Checks::below(key);
        checks.at_least("timeout_seconds", Some(self.timeout_seconds), 1);
        checks.at_least("max_turns", Some(self.max_turns.into()), 1);
        checks.named_model("model", Some(&self.model));
        checks.found()
    }

    pub(super) fn definition(&self, name: &SubagentType) -> Definition {
        Definition {
            name: name.clone(),
            description: self.description.clone(),
            system_prompt: Some(self.system_prompt.clone()),
            tools: self.tools.clone(),
            disallowed_tools: self.disallowed_tools.clone(),
            skills: self.skills.clone(),
            model: self.model.clone(),
            max_turns: self.max_turns,
            timeout_seconds: self.timeout_seconds,
        }
    }
}

fn budget_problems(budget: Option<&TokenBudgetSettings>, key: &str) -> Vec<SettingProblem> {
    budget.map(|budget| budget.problems(&format!("{key}.token_budget"))).unwrap_or_default()
}
