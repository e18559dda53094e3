//! Managed definitions: types of subagent that administrators keep in the registry.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::subagent::SubagentSource;

/// A managed definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagedSubagent {
    /// The name by which a `task` call asks for it.
    pub name: String,
    /// Counts its changes, from 1.
    pub version: u64,
    /// Whether leads are offered it.
    pub enabled: bool,
    /// The source that has the name before it and hides it; null when nothing does.
    pub hidden_by: Option<SubagentSource>,
    /// What it is.
    pub definition: SubagentDefinition,
    /// When it was added.
    pub created_at: String,
    /// When it was last changed.
    pub updated_at: String,
}

/// What a type of subagent is, as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentDefinition {
    /// When to delegate to it, for the lead.
    pub description: String,
    /// What it is told first.
    pub system_prompt: String,
    /// The only tools that it may have; null allows all.
    pub tools: Option<Vec<String>>,
    /// Tools that it may not have; null denies none.
    pub disallowed_tools: Option<Vec<String>>,
    /// The skills that it may use; null allows all.
    pub skills: Option<Vec<String>>,
    /// Its model; `inherit` is the lead's.
    pub model: String,
    /// Its model calls.
    pub max_turns: u32,
    /// Its wall-clock limit, in seconds.
    pub timeout_seconds: u64,
}

/// Adds a managed definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateManagedSubagent {
    /// Its name.
    pub name: String,
    /// Whether leads are offered it at once; true when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// What it is: the keys of `subagents.custom_agents` in the configuration.
    pub definition: Map<String, Value>,
    /// The version that this is for: 0 where the name was never used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
}

/// Writes a managed definition anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateManagedSubagent {
    /// What it is to be, whole: what is left out has its default.
    pub definition: Map<String, Value>,
    /// The version that this is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
}

/// Makes a managed definition what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollBackManagedSubagent {
    /// The version to go back to.
    pub to_version: u64,
    /// The version that this is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
}

/// Changes a managed definition in a way that needs no words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchManagedSubagent {
    /// The version that this is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
}

/// One version of a managed definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagedVersion {
    /// From 1.
    pub version: u64,
    /// What made it.
    pub change: ManagedChange,
    /// The version whose text it took, where it was rolled back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_version: Option<u64>,
    /// Whether it was enabled from then on.
    pub enabled: bool,
    /// What it was from then on; null after a deletion.
    pub definition: Option<SubagentDefinition>,
    /// When.
    pub at: String,
}

/// What made a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ManagedChange {
    /// It was added.
    Created,
    /// It was written anew.
    Updated,
    /// Leads were offered it.
    Enabled,
    /// No lead was offered it any more.
    Disabled,
    /// It was removed.
    Deleted,
    /// It was made what it had been.
    RolledBack,
}

impl ManagedChange {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::Deleted => "deleted",
            Self::RolledBack => "rolled_back",
        }
    }
}
