//! What the owner of a server decides, from four layers: the defaults, one file, the environment
//! and the command line, later ones first.
//!
//! Everything is checked while it is loaded: an unknown key or a value outside its range is an
//! error that names the key, what would have been accepted, and who set it. Nothing here looks at
//! the world except for reading the one file, and nothing reads the configuration again later.

mod check;
mod delegation;
mod effective;
mod environment;
mod error;
mod file;
mod guards;
mod layers;
mod llm_call;
mod master_key;
mod nearest;
mod plain_words;
mod pricing;
mod process;
mod provenance;
mod redaction;
mod summarization;
#[cfg(test)]
mod tests;
mod tool_progress;

use std::{ffi::OsString, path::PathBuf};

use domain::{
    definition::{SubagentsSettings, TokenBudgetSettings},
    redaction::RedactionSettings,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::check::limit_problems;
pub use self::{
    delegation::{SubagentBatches, SubagentRuntime, Verification},
    effective::Entry,
    error::{ConfigError, Problem, Problems},
    file::{YamlError, parse_yaml},
    guards::{LoopDetection, ToolFrequencyOverride},
    llm_call::{CircuitBreaker, LlmCall},
    master_key::MasterKeySource,
    nearest::nearest,
    pricing::{ModelPrice, Pricing},
    process::{Log, Recovery, Server},
    provenance::Provenance,
    summarization::{Extent, Summarization},
    tool_progress::ToolProgress,
};
use self::{layers::Layers, provenance::Origins};
use crate::{models::ModelSettings, sandbox::SandboxSettings};

/// Ends the name of the folder for backups, behind the data folder's.
const BACKUPS_SUFFIX: &str = "-backups";

/// The whole configuration, complete and within its ranges.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The models; without any, the built-in offline model answers.
    pub models: Vec<ModelSettings>,
    /// The model that is used when none is named; `None` means the first.
    pub default_model: Option<String>,
    /// The kinds of subagent and their limits.
    pub subagents: SubagentsSettings,
    /// How many subagents run at once.
    pub subagent_runtime: SubagentRuntime,
    /// How much of a batch runs at once, and how often.
    pub subagent_batches: SubagentBatches,
    /// What is proven of a subagent's work.
    pub verification: Verification,
    /// When and how far history is compacted.
    pub summarization: Summarization,
    /// How models are called.
    pub llm_call: LlmCall,
    /// When a model is left alone.
    pub circuit_breaker: CircuitBreaker,
    /// When an agent goes round in circles.
    pub loop_detection: LoopDetection,
    /// When a tool brings an agent no further.
    pub tool_progress: ToolProgress,
    /// The lead's token budget; `None` sets none.
    pub token_budget: Option<TokenBudgetSettings>,
    /// What shell lines may do.
    pub sandbox: SandboxSettings,
    /// Where the log is, and the key to it.
    pub log: Log,
    /// How secrets are masked before anything is written.
    pub redaction: RedactionSettings,
    /// What the tokens of models cost.
    pub pricing: Pricing,
    /// Where the server listens, and where it puts backups.
    pub server: Server,
    /// What becomes of unfinished work when the server starts.
    pub recovery: Recovery,
}

/// Where a configuration comes from.
pub struct ConfigSources {
    /// The file that `--config` names; `None` looks for one in the working folder.
    pub explicit_file: Option<PathBuf>,
    /// Where files are looked for, and what relative paths are relative to.
    pub working_dir: PathBuf,
    /// The environment; what does not begin with `REMIT__` is passed over.
    pub env: Box<dyn Iterator<Item = (OsString, OsString)>>,
    /// What the command line sets.
    pub flags: Vec<Flag>,
}

/// One setting from the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Flag {
    /// The full key, such as `log.path`.
    pub key: String,
    /// The value.
    pub value: Value,
    /// The flag as the person wrote it, such as `--data`.
    pub name: String,
}

/// A configuration that was loaded, with who set what in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    origins: Origins,
}

impl Config {
    /// Reads, merges and checks all layers.
    pub fn load(sources: ConfigSources) -> Result<Loaded, ConfigError> {
        let mut layers = Layers::default();
        let file = file::read(sources.explicit_file.as_deref(), &sources.working_dir)?;
        let path = file.as_ref().map(|file| file.path.clone());
        if let Some(file) = file {
            layers.lay(&[], file.tree, &Provenance::File { path: file.path });
        }
        for variable in environment::read(sources.env)? {
            layers.lay(&variable.key, variable.value, &Provenance::Env { name: variable.name });
        }
        for flag in sources.flags {
            let key: Vec<_> = flag.key.split('.').map(str::to_owned).collect();
            layers.lay(&key, flag.value, &Provenance::Flag { name: flag.name });
        }
        let (config, origins) = layers.finish()?;
        Ok(Loaded { config, file: path, origins })
    }
}

impl Config {
    /// The folder that a server's backups go into: `server.backups`, or else one beside the data
    /// folder, so that they neither fill it nor go with it.
    pub fn backups_folder(&self) -> PathBuf {
        self.server.backups.clone().unwrap_or_else(|| {
            let data: PathBuf = self.log.path.components().collect();
            let name = data.file_name().map_or_else(|| "remit-data".into(), ToOwned::to_owned);
            let mut beside = name;
            beside.push(BACKUPS_SUFFIX);
            // A path such as `..` has no name of its own, and is not inside of itself either.
            if data.file_name().is_some() {
                data.with_file_name(beside)
            } else {
                data.join("..").join(beside)
            }
        })
    }
}

impl Loaded {
    /// Who set a key, such as `subagents.max_turns`. For a key inside a list it is who set the list.
    pub fn provenance(&self, key: &str) -> &Provenance {
        self.origins.of_key(key)
    }
}
