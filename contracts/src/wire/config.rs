//! The configuration that is in force.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer of `GET /config`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Every value, in the order of the sections. Secrets are masked.
    pub settings: Vec<Setting>,
}

/// One value, and who set it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The full key, such as `subagents.max_total_per_run`.
    pub key: String,
    /// The value that is obeyed.
    pub value: Value,
    /// Who set it.
    pub set_by: SetBy,
    /// The file, variable or flag; absent for a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Who set a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetBy {
    /// Nobody did.
    Default,
    /// A file.
    File,
    /// An environment variable.
    Env,
    /// The command line.
    Flag,
}
