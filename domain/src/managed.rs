//! Managed definitions: types of subagent that administrators keep in the registry (facts §1.8).
//!
//! Each change of one is an event and makes a version of it, which counts up also over a deletion, so
//! that a version names one state for ever. Nobody changes what they have not seen: a change may say
//! which version it is for.

mod command;
mod history;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;

pub use self::{
    command::{ManageCommand, ManageRejection},
    history::{Change, Version, history},
};
use crate::{
    definition::{CustomAgent, InConfigOrder},
    event::RegistryEvent,
    ids::SubagentType,
};

/// A definition that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedDefinition {
    /// Its name.
    pub name: SubagentType,
    /// Changes of what has this name, from 1.
    pub version: u64,
    /// Whether leads may be offered it.
    pub is_enabled: bool,
    /// What it is.
    pub definition: CustomAgent,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub changed_at: Timestamp,
}

/// All definitions that are kept, as far as the registry's events tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManagedDefinitions {
    kept: BTreeMap<SubagentType, ManagedDefinition>,
    /// The last version of each name that is not there any more.
    deleted: BTreeMap<SubagentType, u64>,
}

impl ManagedDefinitions {
    /// Those that are there, by name.
    pub fn iter(&self) -> impl Iterator<Item = &ManagedDefinition> {
        self.kept.values()
    }

    /// The one with this name.
    pub fn get(&self, name: &SubagentType) -> Option<&ManagedDefinition> {
        self.kept.get(name)
    }

    /// Those that are enabled, by name; none if there is none.
    pub fn enabled(&self) -> Option<InConfigOrder<CustomAgent>> {
        let enabled = self.kept.values().filter(|one| one.is_enabled);
        let enabled: InConfigOrder<_> =
            enabled.map(|one| (one.name.clone(), one.definition.clone())).collect();
        (!enabled.is_empty()).then_some(enabled)
    }

    /// The last version of what has or had this name; 0 for a name that was never used.
    fn version(&self, name: &SubagentType) -> u64 {
        let kept = self.kept.get(name).map(|one| one.version);
        kept.or_else(|| self.deleted.get(name).copied()).unwrap_or(0)
    }

    /// Takes one fact into the state. Facts about other things change nothing.
    pub fn evolve(&mut self, event: &RegistryEvent, at: Timestamp) {
        match event {
            RegistryEvent::DefinitionCreated(created) => {
                self.deleted.remove(&created.name);
                let one = ManagedDefinition {
                    name: created.name.clone(),
                    version: created.version,
                    is_enabled: created.enabled,
                    definition: (*created.definition).clone(),
                    created_at: at,
                    changed_at: at,
                };
                self.kept.insert(created.name.clone(), one);
            }
            RegistryEvent::DefinitionUpdated(updated) => {
                self.change(&updated.name, updated.version, at, |one| {
                    one.definition.clone_from(&updated.definition);
                });
            }
            RegistryEvent::DefinitionRolledBack(back) => {
                self.change(&back.name, back.version, at, |one| one.definition.clone_from(&back.definition));
            }
            RegistryEvent::DefinitionEnabled(switched) => {
                self.change(&switched.name, switched.version, at, |one| one.is_enabled = true);
            }
            RegistryEvent::DefinitionDisabled(switched) => {
                self.change(&switched.name, switched.version, at, |one| one.is_enabled = false);
            }
            RegistryEvent::DefinitionDeleted(switched) => {
                self.kept.remove(&switched.name);
                self.deleted.insert(switched.name.clone(), switched.version);
            }
            RegistryEvent::ErasureRequested(_)
            | RegistryEvent::ThreadErased(_)
            | RegistryEvent::RunErased(_)
            | RegistryEvent::ErasureRepeated(_) => {}
        }
    }

    fn change(
        &mut self,
        name: &SubagentType,
        version: u64,
        at: Timestamp,
        change: impl FnOnce(&mut ManagedDefinition),
    ) {
        if let Some(one) = self.kept.get_mut(name) {
            change(one);
            one.version = version;
            one.changed_at = at;
        }
    }
}
