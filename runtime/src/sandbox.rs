//! What an agent may touch: a thread's folders, and a confinement around every shell line.
//!
//! Agents see `/mnt/user-data/{workspace,uploads,outputs}` and nothing else. File tools resolve
//! virtual paths here; shell lines run inside the best confinement that this machine offers. A
//! machine that offers none has no `bash`, unless its owner allowed the bare host.

mod bubblewrap;
mod capabilities;
mod confinement;
mod folders;
mod landlock;
mod limits;
mod mask;
mod paths;
mod private_temp;
mod processes;
mod rewrite;
mod seccomp;
pub(crate) mod shell;
mod system;
mod watchman;

pub use confinement::{Confinement, NoConfinement};
pub(crate) use folders::real_workspace;
pub use folders::{ThreadFolders, VIRTUAL_OUTPUTS, VIRTUAL_ROOT, VIRTUAL_UPLOADS, VIRTUAL_WORKSPACE};
pub(crate) use paths::ResolvedPath;
pub use paths::{PathRefusal, PathRefused};
pub(crate) use processes::end_leftovers;
#[cfg(test)]
pub(crate) use processes::mark_of_data;
pub(crate) use watchman::Excess;

/// The `sandbox` section of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSettings {
    /// Whether shell lines may run unconfined when no confinement works here. They can then read
    /// and change whatever the server can, its own log and keys among it.
    pub allow_host_bash: bool,
    /// Whether shell lines may use the network.
    pub network: bool,
}
