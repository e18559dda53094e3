//! Types of subagent, of a running server or of the data folder. Changes go through a runtime, so that
//! both obey the same rules.

use anyhow::Context as _;
use contracts::wire::{
    managed::{CreateManagedSubagent, ManagedSubagent, ManagedVersion},
    subagent::Subagent,
};
use domain::{definition::CustomAgent, ids::SubagentType, managed::ManageRejection};
use runtime::{ManageError, ManageOrder};
use serde_json::{Map, Value};

use super::Server;
use crate::{
    context::{Context, existing_data_folder},
    failure::{Exit, Failure},
    host::{self, Host},
};

/// A change of a managed definition.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// Add it.
    Create { definition: Map<String, Value>, enabled: bool },
    /// Write it anew.
    Update(Map<String, Value>),
    /// Offer it.
    Enable,
    /// Do not offer it.
    Disable,
    /// Remove it.
    Delete,
    /// Make it what it was.
    RollBack(u64),
}

/// Where the types are.
pub(crate) enum Agents {
    /// A running server.
    Server(Server),
    /// The data folder, with a runtime of this process.
    Here(Box<Host>),
}

impl Agents {
    /// Opens what the options name. Only a change may make a data folder.
    pub(crate) async fn open(context: &Context, is_change: bool) -> anyhow::Result<Self> {
        if let Some(url) = &context.global.server {
            return Ok(Self::Server(Server::new(url)?));
        }
        let config = context.config(Vec::new())?.config;
        if !is_change {
            existing_data_folder(&config)?;
        }
        let models = host::models(&config)?;
        Ok(Self::Here(Box::new(Host::open(config, models).await?)))
    }

    /// Releases the data folder, after what was done with it.
    pub(crate) async fn close_after<T>(self, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
        match self {
            Self::Server(_) => outcome,
            Self::Here(host) => host.close_after(outcome).await,
        }
    }

    /// The types in listing order: what leads are offered now.
    pub(crate) async fn types(&self) -> anyhow::Result<Vec<Subagent>> {
        match self {
            Self::Server(server) => server.subagents().await,
            Self::Here(host) => {
                let types = host.runtime.subagent_types().await.context("could not read the definitions")?;
                Ok(types.into_iter().map(|(one, available)| api::records::subagent(one, available)).collect())
            }
        }
    }

    /// All managed definitions by name.
    pub(crate) async fn managed(&self) -> anyhow::Result<Vec<ManagedSubagent>> {
        match self {
            Self::Server(server) => server.managed().await,
            Self::Here(host) => {
                let kept = host.runtime.managed_definitions(None).await;
                let kept = kept.context("could not read the managed definitions")?;
                Ok(kept.into_iter().map(api::records::managed).collect())
            }
        }
    }

    /// The versions, the first one first; none of a name that was never used.
    pub(crate) async fn history(&self, name: &SubagentType) -> anyhow::Result<Vec<ManagedVersion>> {
        match self {
            Self::Server(server) => server.managed_history(name.as_str()).await,
            Self::Here(host) => {
                let versions = host.runtime.definition_history(name, None).await;
                let versions = versions.context("could not read the history of the definition")?;
                Ok(versions.into_iter().map(api::records::managed_version).collect())
            }
        }
    }

    /// Makes the change, and gives the definition as it is then: none once it is deleted.
    pub(crate) async fn change(
        &self,
        name: &SubagentType,
        change: Change,
        expected_version: Option<u64>,
    ) -> anyhow::Result<Option<ManagedSubagent>> {
        match self {
            Self::Server(server) => server.change_managed(name.as_str(), change, expected_version).await,
            Self::Here(host) => {
                let order = order(change)?;
                let changed = host.runtime.manage(name, order, expected_version).await.map_err(refused)?;
                Ok(changed.map(api::records::managed))
            }
        }
    }
}

fn order(change: Change) -> anyhow::Result<ManageOrder> {
    Ok(match change {
        Change::Create { definition, enabled } => {
            ManageOrder::Create { definition: definition_of(definition)?, enabled }
        }
        Change::Update(definition) => ManageOrder::Update(definition_of(definition)?),
        Change::Enable => ManageOrder::Enable,
        Change::Disable => ManageOrder::Disable,
        Change::Delete => ManageOrder::Delete,
        Change::RollBack(to_version) => ManageOrder::RollBack(to_version),
    })
}

fn definition_of(written: Map<String, Value>) -> anyhow::Result<Box<CustomAgent>> {
    serde_json::from_value(Value::Object(written))
        .map_err(|error| Failure::usage(format!("invalid definition: {error}")).into())
}

fn refused(error: ManageError) -> anyhow::Error {
    let exit = match &error {
        ManageError::Rejected(ManageRejection::Unknown(_) | ManageRejection::NoVersion { .. }) => {
            Exit::NotFound
        }
        ManageError::Rejected(
            ManageRejection::Exists { .. } | ManageRejection::Changed { .. } | ManageRejection::TooMany,
        )
        | ManageError::ShuttingDown => Exit::Refused,
        ManageError::Rejected(ManageRejection::Invalid(_)) => Exit::Usage,
        ManageError::History(_) | ManageError::Journal(_) => {
            return anyhow::Error::new(error).context("could not change the definition");
        }
    };
    Failure::new(exit, error.to_string()).into()
}

/// The body that creates it.
pub(super) fn created(
    name: &str,
    definition: Map<String, Value>,
    enabled: bool,
    expected_version: Option<u64>,
) -> CreateManagedSubagent {
    CreateManagedSubagent { name: name.to_owned(), enabled: Some(enabled), definition, expected_version }
}
