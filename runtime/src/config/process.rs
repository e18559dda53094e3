//! Where the process keeps its log, where it listens, and what it does when it starts.

use std::{net::SocketAddr, path::PathBuf};

use domain::definition::SettingProblem;
use serde::{Deserialize, Serialize};

use super::check::Checks;

/// The `log` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// The folder of the embedded log.
    pub path: PathBuf,
}

impl Default for Log {
    fn default() -> Self {
        Self { path: PathBuf::from("./remit-data") }
    }
}

impl Log {
    pub(super) fn problems(&self) -> Vec<SettingProblem> {
        let mut checks = Checks::below("log");
        let path = self.path.to_string_lossy();
        if path.is_empty() || path.contains("://") {
            checks.problem(
                "path",
                &format!("{path:?}"),
                "a folder; logs on other servers are not supported yet",
            );
        }
        checks.found()
    }
}

/// The `server` section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Where it listens; only this machine can reach the default.
    pub listen: SocketAddr,
}

impl Default for Server {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 8700)) }
    }
}

/// What becomes of unfinished work when the server starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// It goes on where it stopped.
    #[default]
    Resume,
    /// It is recorded as failed.
    Fail,
}
