//! The versions of one name, as the registry's events tell of them.

use jiff::Timestamp;

use crate::{definition::CustomAgent, event::RegistryEvent, ids::SubagentType};

/// What made a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It was added.
    Created {
        /// Whether it was enabled at once.
        enabled: bool,
    },
    /// It was written anew.
    Updated,
    /// Leads were offered it.
    Enabled,
    /// No lead was offered it any more.
    Disabled,
    /// It was removed.
    Deleted,
    /// It was made what it had been.
    RolledBack {
        /// The version whose text it took.
        to_version: u64,
    },
}

/// One version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// From 1.
    pub version: u64,
    /// What made it.
    pub change: Change,
    /// When.
    pub at: Timestamp,
    /// What it was from then on; none after a deletion.
    pub definition: Option<CustomAgent>,
    /// Whether it was enabled from then on.
    pub is_enabled: bool,
}

/// The versions of what has or had this name, the first one first.
pub fn history<'a>(
    events: impl IntoIterator<Item = (&'a RegistryEvent, Timestamp)>,
    name: &SubagentType,
) -> Vec<Version> {
    let mut versions: Vec<Version> = Vec::new();
    for (event, at) in events {
        let of = |changed: &SubagentType| changed == name;
        let last = versions.last();
        let was = || last.and_then(|last| last.definition.clone());
        let was_enabled = last.is_some_and(|last| last.is_enabled);
        let (version, change, definition, is_enabled) = match event {
            RegistryEvent::DefinitionCreated(one) if of(&one.name) => {
                let change = Change::Created { enabled: one.enabled };
                (one.version, change, Some((*one.definition).clone()), one.enabled)
            }
            RegistryEvent::DefinitionUpdated(one) if of(&one.name) => {
                (one.version, Change::Updated, Some((*one.definition).clone()), was_enabled)
            }
            RegistryEvent::DefinitionRolledBack(one) if of(&one.name) => {
                let change = Change::RolledBack { to_version: one.to_version };
                (one.version, change, Some((*one.definition).clone()), was_enabled)
            }
            RegistryEvent::DefinitionEnabled(one) if of(&one.name) => {
                (one.version, Change::Enabled, was(), true)
            }
            RegistryEvent::DefinitionDisabled(one) if of(&one.name) => {
                (one.version, Change::Disabled, was(), false)
            }
            RegistryEvent::DefinitionDeleted(one) if of(&one.name) => {
                (one.version, Change::Deleted, None, false)
            }
            RegistryEvent::DefinitionCreated(_)
            | RegistryEvent::DefinitionUpdated(_)
            | RegistryEvent::DefinitionRolledBack(_)
            | RegistryEvent::DefinitionEnabled(_)
            | RegistryEvent::DefinitionDisabled(_)
            | RegistryEvent::DefinitionDeleted(_)
            | RegistryEvent::ErasureRequested(_)
            | RegistryEvent::ThreadErased(_)
            | RegistryEvent::RunErased(_)
            | RegistryEvent::ErasureRepeated(_) => continue,
        };
        versions.push(Version { version, change, at, definition, is_enabled });
    }
    versions
}
