//! What may be asked of a managed definition, and what follows.

use super::{ManagedDefinition, ManagedDefinitions};
use crate::{
    definition::{CustomAgent, SettingProblem},
    event::{DefinitionCreated, DefinitionRolledBack, DefinitionSwitched, DefinitionUpdated, RegistryEvent},
    ids::SubagentType,
    limits::{DEFINITION_DESCRIPTION_CHARS_MAX, DEFINITION_PROMPT_CHARS_MAX, MANAGED_DEFINITIONS_MAX},
};

/// What may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManageCommand {
    /// Add it.
    Create {
        /// What it is to be.
        definition: Box<CustomAgent>,
        /// Whether leads are offered it at once.
        enabled: bool,
    },
    /// Write it anew. Whether it is enabled stays.
    Update {
        /// What it is to be.
        definition: Box<CustomAgent>,
    },
    /// Offer it to leads.
    Enable,
    /// Offer it to no lead.
    Disable,
    /// Remove it. Its history stays.
    Delete,
    /// Make it again what it was. Whether it is enabled stays.
    RollBack {
        /// The version to go back to.
        to_version: u64,
        /// What it was then; none if there was no such version, or none with a text.
        was: Option<Box<CustomAgent>>,
    },
}

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManageRejection {
    /// There is no definition of this name.
    #[error("managed definition {0} not found")]
    Unknown(SubagentType),
    /// There is one already.
    #[error("managed definition {name} exists at version {version}; update it instead")]
    Exists {
        /// Its name.
        name: SubagentType,
        /// Where it is.
        version: u64,
    },
    /// It has changed since.
    #[error(
        "managed definition {name} is at version {actual}, not {expected}; look at it again and repeat the change"
    )]
    Changed {
        /// Its name.
        name: SubagentType,
        /// The version that the change was for.
        expected: u64,
        /// Where it is; 0 where there was never one of this name.
        actual: u64,
    },
    /// There is nothing to go back to.
    #[error("managed definition {name} had no text at version {version}; its history lists the versions")]
    NoVersion {
        /// Its name.
        name: SubagentType,
        /// What was asked for.
        version: u64,
    },
    /// There are as many as there may be.
    #[error("there are {MANAGED_DEFINITIONS_MAX} managed definitions, and no more fit; delete one first")]
    TooMany,
    /// Values are out of their range.
    #[error("the definition cannot be used: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<SettingProblem>),
}

impl ManagedDefinitions {
    /// What follows from the command; nothing where all is so already. `expected_version` is the version
    /// that the command is for, if its sender says so.
    pub fn decide(
        &self,
        name: &SubagentType,
        command: ManageCommand,
        expected_version: Option<u64>,
    ) -> Result<Option<RegistryEvent>, ManageRejection> {
        let actual = self.version(name);
        if let Some(expected) = expected_version.filter(|expected| *expected != actual) {
            return Err(ManageRejection::Changed { name: name.clone(), expected, actual });
        }
        let known = || self.get(name).ok_or_else(|| ManageRejection::Unknown(name.clone()));
        let next = Next { name, version: actual + 1 };
        Ok(match command {
            ManageCommand::Create { definition, enabled } => Some(self.create(next, definition, enabled)?),
            ManageCommand::Update { definition } => next.update(known()?, definition)?,
            ManageCommand::Enable => {
                (!known()?.is_enabled).then(|| RegistryEvent::DefinitionEnabled(next.switched()))
            }
            ManageCommand::Disable => {
                known()?.is_enabled.then(|| RegistryEvent::DefinitionDisabled(next.switched()))
            }
            ManageCommand::Delete => {
                known().map(|_| Some(RegistryEvent::DefinitionDeleted(next.switched())))?
            }
            ManageCommand::RollBack { to_version, was } => next.roll_back(known()?, to_version, was)?,
        })
    }

    fn create(
        &self,
        next: Next<'_>,
        definition: Box<CustomAgent>,
        enabled: bool,
    ) -> Result<RegistryEvent, ManageRejection> {
        let Next { name, version } = next;
        if let Some(known) = self.get(name) {
            return Err(ManageRejection::Exists { name: name.clone(), version: known.version });
        }
        if self.iter().count() >= MANAGED_DEFINITIONS_MAX {
            return Err(ManageRejection::TooMany);
        }
        check(&definition)?;
        let name = name.clone();
        Ok(RegistryEvent::DefinitionCreated(DefinitionCreated { name, version, definition, enabled }))
    }
}

/// The version that a change would make.
#[derive(Clone, Copy)]
struct Next<'a> {
    name: &'a SubagentType,
    version: u64,
}

impl Next<'_> {
    fn switched(self) -> DefinitionSwitched {
        DefinitionSwitched { name: self.name.clone(), version: self.version }
    }

    fn update(
        self,
        known: &ManagedDefinition,
        definition: Box<CustomAgent>,
    ) -> Result<Option<RegistryEvent>, ManageRejection> {
        check(&definition)?;
        if known.definition == *definition {
            return Ok(None);
        }
        let (name, version) = (self.name.clone(), self.version);
        Ok(Some(RegistryEvent::DefinitionUpdated(DefinitionUpdated { name, version, definition })))
    }

    fn roll_back(
        self,
        known: &ManagedDefinition,
        to_version: u64,
        was: Option<Box<CustomAgent>>,
    ) -> Result<Option<RegistryEvent>, ManageRejection> {
        let (name, version) = (self.name.clone(), self.version);
        let Some(definition) = was else {
            return Err(ManageRejection::NoVersion { name, version: to_version });
        };
        check(&definition)?;
        let back = DefinitionRolledBack { name, version, to_version, definition };
        let is_same = known.definition == *back.definition;
        Ok((!is_same).then_some(RegistryEvent::DefinitionRolledBack(back)))
    }
}

/// The rules of the configuration, and bounds on texts: what is managed is frozen into every run.
fn check(definition: &CustomAgent) -> Result<(), ManageRejection> {
    let mut problems = definition.problems("definition");
    problems.extend(too_long("description", &definition.description, DEFINITION_DESCRIPTION_CHARS_MAX));
    problems.extend(too_long("system_prompt", &definition.system_prompt, DEFINITION_PROMPT_CHARS_MAX));
    problems.extend(blank("description", &definition.description));
    if problems.is_empty() { Ok(()) } else { Err(ManageRejection::Invalid(problems)) }
}

fn too_long(key: &str, text: &str, chars_max: usize) -> Option<SettingProblem> {
    let chars = text.chars().count();
    (chars > chars_max).then(|| SettingProblem {
        key: format!("definition.{key}"),
        value: format!("{chars} characters long"),
        allowed: format!("{chars_max} characters at most"),
    })
}

/// A lead chooses by the description.
fn blank(key: &str, text: &str) -> Option<SettingProblem> {
    text.trim().is_empty().then(|| SettingProblem {
        key: format!("definition.{key}"),
        value: "blank".to_owned(),
        allowed: "a text that says when to delegate to it".to_owned(),
    })
}
