//! `remit agents`: the types of subagent, and those that administrators keep.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::ids::SubagentType;

/// `remit agents`.
#[derive(Debug, Args)]
#[command(
    after_help = "A definition has the keys of subagents.custom_agents in the configuration, as YAML or JSON:\n\n  \
                        description: Reviews a change before it is merged\n  \
                        system_prompt: You look for what could break.\n  \
                        tools: [read_file, grep]\n\n\
                        Examples:\n  remit agents list\n  remit agents create reviewer --file reviewer.yaml\n  \
                        remit agents update reviewer --file - --expect 3 < reviewer.yaml\n  \
                        remit agents rollback reviewer --to 2\n\n\
                        Runs keep what they were started with: a change holds for the next one."
)]
pub(crate) struct AgentsArguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) order: AgentsOrder,
}

/// What `remit agents` does.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentsOrder {
    /// List the types of subagent, and which of them leads may delegate to
    List,
    /// Show one type whole, with its system prompt
    Show(AgentNamed),
    /// Add a managed definition
    Create(AgentCreated),
    /// Write a managed definition anew
    Update(AgentWritten),
    /// Offer a managed definition to leads
    Enable(AgentChanged),
    /// Offer it to no lead any more
    Disable(AgentChanged),
    /// Remove a managed definition; its history stays
    Delete(AgentChanged),
    /// List the versions of a managed definition, also of one that was deleted
    History(AgentNamed),
    /// Make a managed definition what it was at an earlier version
    Rollback(AgentRolledBack),
}

/// Which one.
#[derive(Debug, Args)]
pub(crate) struct AgentNamed {
    /// Its name
    #[arg(value_name = "NAME")]
    pub(crate) name: SubagentType,
}

/// Which one, and in which state.
#[derive(Debug, Args)]
pub(crate) struct AgentChanged {
    /// Its name
    #[arg(value_name = "NAME")]
    pub(crate) name: SubagentType,
    /// Only if this is its version
    #[arg(long, value_name = "VERSION")]
    pub(crate) expect: Option<u64>,
}

/// What it is to be.
#[derive(Debug, Args)]
pub(crate) struct AgentWritten {
    /// Which one.
    #[command(flatten)]
    pub(crate) changed: AgentChanged,
    /// The file with the definition; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// A new one.
#[derive(Debug, Args)]
pub(crate) struct AgentCreated {
    /// What it is to be.
    #[command(flatten)]
    pub(crate) written: AgentWritten,
    /// Do not offer it to leads yet
    #[arg(long)]
    pub(crate) disabled: bool,
}

/// What it was.
#[derive(Debug, Args)]
pub(crate) struct AgentRolledBack {
    /// Which one.
    #[command(flatten)]
    pub(crate) changed: AgentChanged,
    /// The version to go back to
    #[arg(long, value_name = "VERSION")]
    pub(crate) to: u64,
}
