//! Managed definitions: looking at them, and changing them.

use domain::{
    definition::{CustomAgent, Origin, Resolved},
    ids::SubagentType,
    managed::{ManageCommand, ManagedDefinition, ManagedDefinitions, Version},
};
use eventlog::{AppendError, Position};

use super::Runtime;
use crate::{
    journal::JournalError,
    managed_registry,
    registry::Registrar,
    request::{HistoryError, ManageError},
};

/// What is asked of a managed definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManageOrder {
    /// Add it.
    Create {
        /// What it is to be.
        definition: Box<CustomAgent>,
        /// Whether leads are offered it at once.
        enabled: bool,
    },
    /// Write it anew.
    Update(Box<CustomAgent>),
    /// Offer it to leads.
    Enable,
    /// Offer it to no lead.
    Disable,
    /// Remove it.
    Delete,
    /// Make it what it was at this version.
    RollBack(u64),
}

/// A managed definition, and whether leads can see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Managed {
    /// The definition.
    pub kept: ManagedDefinition,
    /// The source that has its name before it, and hides it.
    pub hidden_by: Option<Origin>,
}

impl Runtime {
    /// Every type of subagent with what a delegation to it obeys, in listing order, and whether leads
    /// may delegate to it here.
    pub async fn subagent_types(&self) -> Result<Vec<(Resolved, bool)>, HistoryError> {
        let managed = self.managed().await?;
        let registry = self.services.registry.clone().with_managed(managed.enabled().as_ref());
        let has_shell = self.services.allows_bash();
        let types = registry.available(true, None).into_iter().filter_map(|listed| {
            let name = listed.definition.name.as_str();
            let is_available = registry.permit(name, has_shell, None).is_ok();
            Some((registry.resolve(name)?, is_available))
        });
        Ok(types.collect())
    }

    /// All managed definitions by name, also those that are disabled or hidden, as they were when an event
    /// was the log's newest; `None` is now. What hides them is today's configuration.
    pub async fn managed_definitions(&self, as_of: Option<Position>) -> Result<Vec<Managed>, HistoryError> {
        let managed = self.managed_then(as_of).await?;
        Ok(managed.iter().cloned().map(|kept| self.shown(kept)).collect())
    }

    /// The managed definition with this name at such a moment; none if there is none.
    pub async fn managed_definition(
        &self,
        name: &SubagentType,
        as_of: Option<Position>,
    ) -> Result<Option<Managed>, HistoryError> {
        Ok(self.managed_then(as_of).await?.get(name).cloned().map(|kept| self.shown(kept)))
    }

    /// The versions of what has or had this name at such a moment, the first one first; none of a name that
    /// was never used.
    pub async fn definition_history(
        &self,
        name: &SubagentType,
        as_of: Option<Position>,
    ) -> Result<Vec<Version>, HistoryError> {
        let (name, last) = (name.clone(), as_of.unwrap_or(Position::new(u64::MAX)));
        self.read(move |log| managed_registry::history(log, &name, last)).await
    }

    /// Changes a definition, and gives it as it is then: none once it is deleted. Runs that were started
    /// keep what they have. `expected_version` is the version that the change is for.
    pub async fn manage(
        &self,
        name: &SubagentType,
        order: ManageOrder,
        expected_version: Option<u64>,
    ) -> Result<Option<Managed>, ManageError> {
        // A shutdown waits for it.
        let _among_the_runs = self.runs.token();
        loop {
            if self.stop.cause().is_some() {
                return Err(ManageError::ShuttingDown);
            }
            let command = self.command(name, order.clone()).await?;
            let (managed, expected) = self.managed_at().await?;
            let Some(event) = managed.decide(name, command, expected_version)? else { break };
            match self.registrar().record(expected, event).await {
                Ok(()) => break,
                // Somebody else was faster; each time somebody gets on.
                Err(JournalError::Registry(AppendError::Conflict { .. })) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.managed_definition(name, None).await?)
    }

    async fn command(&self, name: &SubagentType, order: ManageOrder) -> Result<ManageCommand, HistoryError> {
        Ok(match order {
            ManageOrder::Create { definition, enabled } => ManageCommand::Create { definition, enabled },
            ManageOrder::Update(definition) => ManageCommand::Update { definition },
            ManageOrder::Enable => ManageCommand::Enable,
            ManageOrder::Disable => ManageCommand::Disable,
            ManageOrder::Delete => ManageCommand::Delete,
            ManageOrder::RollBack(to_version) => {
                let versions = self.definition_history(name, None).await?;
                let then = versions.into_iter().find(|one| one.version == to_version);
                let was = then.and_then(|one| one.definition).map(Box::new);
                ManageCommand::RollBack { to_version, was }
            }
        })
    }

    /// The managed definitions as the log has them now.
    pub(super) async fn managed(&self) -> Result<ManagedDefinitions, HistoryError> {
        Ok(self.managed_at().await?.0)
    }

    async fn managed_then(&self, as_of: Option<Position>) -> Result<ManagedDefinitions, HistoryError> {
        match as_of {
            None => self.managed().await,
            Some(position) => self.read(move |log| managed_registry::then(log, position)).await,
        }
    }

    async fn managed_at(&self) -> Result<(ManagedDefinitions, eventlog::Expected), HistoryError> {
        let services = self.services.clone();
        self.read(move |log| services.managed.now(log)).await
    }

    /// Writes to the registry.
    pub(super) fn registrar(&self) -> Registrar<'_> {
        let services = &*self.services;
        Registrar { log: &services.log, ids: &*services.ids, clock: &*services.clock }
    }

    fn shown(&self, kept: ManagedDefinition) -> Managed {
        let hidden_by = self.services.registry.hides(kept.name.as_str());
        Managed { kept, hidden_by }
    }
}
