//! Managed definitions.

use contracts::wire::{managed as wire, problem::ProblemCode};
use domain::{
    definition::CustomAgent,
    managed::{Change, Version},
};
use runtime::Managed;
use serde_json::{Map, Value};

use super::subagent;
use crate::error::{Answer, ApiError};

/// A managed definition as it is.
pub(crate) fn to_wire(one: Managed) -> wire::ManagedSubagent {
    let Managed { kept, hidden_by } = one;
    wire::ManagedSubagent {
        name: kept.name.to_string(),
        version: kept.version,
        enabled: kept.is_enabled,
        hidden_by: hidden_by.map(subagent::source),
        definition: definition_to_wire(kept.definition),
        created_at: kept.created_at.to_string(),
        updated_at: kept.changed_at.to_string(),
    }
}

/// One of its versions.
pub(crate) fn version_to_wire(version: Version) -> wire::ManagedVersion {
    let (change, to_version) = match version.change {
        Change::Created { .. } => (wire::ManagedChange::Created, None),
        Change::Updated => (wire::ManagedChange::Updated, None),
        Change::Enabled => (wire::ManagedChange::Enabled, None),
        Change::Disabled => (wire::ManagedChange::Disabled, None),
        Change::Deleted => (wire::ManagedChange::Deleted, None),
        Change::RolledBack { to_version } => (wire::ManagedChange::RolledBack, Some(to_version)),
    };
    wire::ManagedVersion {
        version: version.version,
        change,
        to_version,
        enabled: version.is_enabled,
        definition: version.definition.map(definition_to_wire),
        at: version.at.to_string(),
    }
}

fn definition_to_wire(agent: CustomAgent) -> wire::SubagentDefinition {
    wire::SubagentDefinition {
        description: agent.description,
        system_prompt: agent.system_prompt,
        tools: agent.tools,
        disallowed_tools: agent.disallowed_tools,
        skills: agent.skills,
        model: agent.model.into(),
        max_turns: agent.max_turns,
        timeout_seconds: agent.timeout_seconds,
    }
}

/// A definition as somebody wrote it: the keys and the rules of the configuration.
pub(crate) fn from_wire(written: Map<String, Value>) -> Answer<Box<CustomAgent>> {
    let read = serde_json::from_value(Value::Object(written));
    read.map_err(|error| ApiError::new(ProblemCode::Invalid, format!("invalid definition: {error}")))
}
