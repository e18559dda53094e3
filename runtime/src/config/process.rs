//! Where the process keeps its log, where it listens, and what it does when it starts.

use std::{
    net::SocketAddr,
    path::{Component, Path, PathBuf},
};

use domain::definition::SettingProblem;
use serde::{Deserialize, Serialize};

use super::{check::Checks, master_key::MasterKeySource};

/// The `log` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// The folder of the embedded log.
    pub path: PathBuf,
    /// Where the key comes from that wraps all others.
    pub master_key: MasterKeySource,
    /// The file with the key that signs exports; without one, a key is made in the folder.
    pub signing_key: Option<PathBuf>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            path: PathBuf::from("./remit-data"),
            master_key: MasterKeySource::default(),
            signing_key: None,
        }
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Where it listens; only this machine can reach the default.
    pub listen: SocketAddr,
    /// The folder that its backups go into; without one, a folder beside the data folder.
    pub backups: Option<PathBuf>,
}

impl Default for Server {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 8700)), backups: None }
    }
}

impl Server {
    /// Backups in the data folder would fill it, and be lost together with it.
    pub(super) fn problems(&self, data: &Path) -> Vec<SettingProblem> {
        let mut checks = Checks::below("server");
        let plain =
            |path: &Path| path.components().filter(|part| *part != Component::CurDir).collect::<PathBuf>();
        if let Some(folder) = &self.backups {
            let shown = format!("{:?}", folder.display().to_string());
            if folder.as_os_str().is_empty() || plain(folder).starts_with(plain(data)) {
                checks.problem("backups", &shown, "a folder outside of log.path");
            }
        }
        checks.found()
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
